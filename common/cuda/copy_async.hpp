#pragma once
// Copies from global to shared memory that go on while the thread computes (compute capability 8.0 and newer).
#include "common/cuda/cuda.hpp"

namespace flashsteps::gpu {

/// 16 bytes, both sides aligned to them. Unless valid, zeros, and `from` is not read.
/// @param to     in shared memory
/// @param from   in global memory
/// @param valid  whether to read `from`
/// @param site   the line of the call: to be left out
__device__ __forceinline__ void copy_async_16(void* to, const void* from, bool valid = true, [[maybe_unused]] Site site = here()) {
#if defined(__CUDACC__)
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(static_cast<unsigned>(__cvta_generic_to_shared(to))), "l"(from), "r"(valid ? 16 : 0)
               : "memory");
#else
  cuda_on_cpu::async_copy(to, from, 16, valid ? 16 : 0, site);
#endif
}
/// 4 bytes, in the same way.
/// @param to     in shared memory
/// @param from   in global memory
/// @param valid  whether to read `from`
/// @param site   the line of the call: to be left out
__device__ __forceinline__ void copy_async_4(void* to, const void* from, bool valid = true, [[maybe_unused]] Site site = here()) {
#if defined(__CUDACC__)
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(static_cast<unsigned>(__cvta_generic_to_shared(to))), "l"(from), "r"(valid ? 4 : 0)
               : "memory");
#else
  cuda_on_cpu::async_copy(to, from, 4, valid ? 4 : 0, site);
#endif
}
/// The thread's copies since the last commit become a group.
__device__ __forceinline__ void copy_async_commit() {
#if defined(__CUDACC__)
  asm volatile("cp.async.commit_group;" ::: "memory");
#else
  cuda_on_cpu::async_commit();
#endif
}
/// Until at most Pending of this thread's groups are in flight. Other threads see what was copied after a barrier.
/// @tparam Pending  groups, the newest ones
template <int Pending = 0> __device__ __forceinline__ void copy_async_wait() {
#if defined(__CUDACC__)
  asm volatile("cp.async.wait_group %0;" ::"n"(Pending) : "memory");
#else
  cuda_on_cpu::async_wait(Pending);
#endif
}

}  // namespace flashsteps::gpu
