#pragma once
// AddressSanitizer has to be told of stacks and of memory that is off limits. Without it these do nothing.
#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#define FLASHSTEPS_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FLASHSTEPS_ADDRESS_SANITIZER 1
#endif
#endif
#if defined(FLASHSTEPS_ADDRESS_SANITIZER)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace flashsteps::cuda_on_cpu::sanitizer {

/// @cond
#if defined(FLASHSTEPS_ADDRESS_SANITIZER)
inline void leave(void** frames, const void* stack, std::size_t bytes) { __sanitizer_start_switch_fiber(frames, stack, bytes); }
inline void arrive(void* frames, const void** from, std::size_t* bytes) { __sanitizer_finish_switch_fiber(frames, from, bytes); }
inline void forbid(const void* p, std::size_t bytes) { __asan_poison_memory_region(p, bytes); }
inline void allow(const void* p, std::size_t bytes) { __asan_unpoison_memory_region(p, bytes); }
#else
inline void leave(void**, const void*, std::size_t) {}
inline void arrive(void*, const void**, std::size_t*) {}
inline void forbid(const void*, std::size_t) {}
inline void allow(const void*, std::size_t) {}
#endif
/// @endcond

}  // namespace flashsteps::cuda_on_cpu::sanitizer
