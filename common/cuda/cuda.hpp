#pragma once
// What a kernel is written with: CUDA under nvcc, the layer of common/cuda_on_cpu under any other compiler. A .cu file includes
// this, and neither Eigen nor Catch2. See docs/cuda-on-cpu.md.
#include "common/cuda/device.hpp"
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <tuple>

#if defined(__CUDACC__)
#include <cuda_runtime.h>
#else
#include "common/cuda_on_cpu/words.hpp"
#endif

namespace flashsteps::gpu {

#if defined(__CUDACC__)
/// The CPU layer notes the lines of calls in default arguments. Here there is nothing to note.
struct Site {};
/// @return nothing to note
__host__ __device__ constexpr Site here() { return {}; }
#else
using cuda_on_cpu::here;
using cuda_on_cpu::Site;
#endif

constexpr unsigned full_warp = 0xffffffffu;  ///< the mask of all 32 lanes

/// The block's dynamic shared memory as one struct. Launch with at least sizeof(T) bytes; the CPU layer refuses less.
/// @param site  the line of the call: to be left out
/// @return that struct, which starts unwritten
template <class T> __device__ __forceinline__ T& shared_storage([[maybe_unused]] Site site = here()) {
#if defined(__CUDACC__)
  extern __shared__ __align__(128) unsigned char flashsteps_shared_bytes[];
  return *reinterpret_cast<T*>(flashsteps_shared_bytes);
#else
  return *static_cast<T*>(cuda_on_cpu::shared_memory(sizeof(T), site));
#endif
}

/// @{
/// A function of the toolkit under nvcc.
/// @param x  a number
/// @return its value at x
// On the CPU with the layer's own arithmetic, so that bits depend neither on the machine nor on the C library
#if defined(__CUDACC__)
__device__ __forceinline__ float exp(float x) { return expf(x); }
__device__ __forceinline__ float exp2(float x) { return exp2f(x); }
__device__ __forceinline__ float log(float x) { return logf(x); }
#else
inline float exp(float x) { return cuda_on_cpu::exp_of(x); }
inline float exp2(float x) { return cuda_on_cpu::exp2_of(x); }
inline float log(float x) { return cuda_on_cpu::log_of(x); }
#endif
/// @}

#if defined(__CUDACC__)
/// Throws what CUDA says when a call fails.
/// @param error  what the call returned
/// @param call   its name
/// @throws std::runtime_error unless error is cudaSuccess
inline void check(cudaError_t error, const char* call) {
  if (error != cudaSuccess) throw std::runtime_error(std::string(call) + ": " + cudaGetErrorString(error));
}
#endif

/// A parameter that takes no part in the deduction of template arguments.
template <class T> struct NotDeduced { using type = T; /**< T */ };

/// `kernel<<<grid, block, shared_bytes>>>(arguments...)`, checked.
/// @param kernel        a __global__ function
/// @param grid,block    blocks of the grid, threads of a block
/// @param shared_bytes  dynamic shared memory of a block
/// @param arguments     of the kernel
/// @throws std::runtime_error says what is wrong with the launch; on the CPU cuda_on_cpu::Error, with the kernel too
template <class... P> void launch(void (*kernel)(P...), dim3 grid, dim3 block, std::size_t shared_bytes, typename NotDeduced<P>::type... arguments) {
#if defined(__CUDACC__)
  const auto sizes = [](dim3 d) { return std::to_string(d.x) + " x " + std::to_string(d.y) + " x " + std::to_string(d.z); };
  if (grid.x < 1 || grid.y < 1 || grid.z < 1 || grid.x > 0x7fffffffu || grid.y > 65535 || grid.z > 65535)
    throw std::runtime_error("a grid has 1 to 2147483647 x 65535 x 65535 blocks, not " + sizes(grid));
  if (shared_bytes > 48 * 1024) {  // more has to be asked for
    const std::size_t limit = device() ? device()->shared_bytes : 0;
    if (shared_bytes > limit)
      throw std::runtime_error("the launch asks for " + std::to_string(shared_bytes) + " bytes of shared memory a block; the device has " +
                               std::to_string(limit));
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, int(shared_bytes)), "cudaFuncSetAttribute");
  }
  kernel<<<grid, block, shared_bytes>>>(arguments...);
  check(cudaGetLastError(), "kernel launch");
#else
  struct Call {
    void (*kernel)(P...);
    std::tuple<P...> arguments;
  };
  const Call call{kernel, {arguments...}};
  const auto run = [](const void* p) {
    const Call& c = *static_cast<const Call*>(p);
    std::apply(c.kernel, c.arguments);
  };
  cuda_on_cpu::launch_blocks(grid, block, shared_bytes, {run, &call, sizeof call});
#endif
}

}  // namespace flashsteps::gpu
