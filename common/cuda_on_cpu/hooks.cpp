// The calls that -fsanitize=thread puts into the kernels.
#include "common/cuda_on_cpu/tracer.hpp"

namespace {
namespace trace = flashsteps::cuda_on_cpu::trace;
using trace::Kind;

void watch(trace::Place place, const void* p, std::size_t bytes, Kind kind) {
  if (trace::is_active()) trace::note_from_kernel(place, p, bytes, kind);
}
/// Copies of structs, as accesses of at most 16 bytes.
void note_range(trace::Place place, const void* p, std::size_t bytes, Kind kind) {
  for (std::size_t i = 0; i < bytes; i += 16) watch(place, static_cast<const char*>(p) + i, bytes - i < 16 ? bytes - i : 16, kind);
}
}  // namespace

#define HERE reinterpret_cast<trace::Place>(__builtin_return_address(0))
#define ACCESS(name, bytes)                                                         \
  void __tsan_##name##read##bytes(void* p) { watch(HERE, p, bytes, Kind::load); }   \
  void __tsan_##name##write##bytes(void* p) { watch(HERE, p, bytes, Kind::store); } \
  void __tsan_##name##read_write##bytes(void* p) {                                  \
    watch(HERE, p, bytes, Kind::load);                                              \
    watch(HERE, p, bytes, Kind::store);                                             \
  }
#define ACCESSES(name) ACCESS(name, 1) ACCESS(name, 2) ACCESS(name, 4) ACCESS(name, 8) ACCESS(name, 16)
// Atomic operations of the host code in the same file; a kernel's own go through atomicAdd
#define ATOMIC(bits, type)                                                                                      \
  type __tsan_atomic##bits##_load(const volatile type* p, int) { return __atomic_load_n(p, __ATOMIC_SEQ_CST); } \
  void __tsan_atomic##bits##_store(volatile type* p, type v, int) { __atomic_store_n(p, v, __ATOMIC_SEQ_CST); } \
  type __tsan_atomic##bits##_fetch_add(volatile type* p, type v, int) { return __atomic_fetch_add(p, v, __ATOMIC_SEQ_CST); }

extern "C" {
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
ACCESSES()
ACCESSES(unaligned_)
ACCESSES(volatile_)
ACCESSES(unaligned_volatile_)
ATOMIC(8, unsigned char)
ATOMIC(32, unsigned)
ATOMIC(64, unsigned long)
void __tsan_read_range(void* p, std::size_t n) { note_range(HERE, p, n, Kind::load); }
void __tsan_write_range(void* p, std::size_t n) { note_range(HERE, p, n, Kind::store); }
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}
void* __tsan_memcpy(void* to, const void* from, std::size_t n) {
  note_range(HERE, from, n, Kind::load);
  note_range(HERE, to, n, Kind::store);
  return __builtin_memcpy(to, from, n);
}
void* __tsan_memmove(void* to, const void* from, std::size_t n) {
  note_range(HERE, from, n, Kind::load);
  note_range(HERE, to, n, Kind::store);
  return __builtin_memmove(to, from, n);
}
void* __tsan_memset(void* to, int value, std::size_t n) {
  note_range(HERE, to, n, Kind::store);
  return __builtin_memset(to, value, n);
}
}
