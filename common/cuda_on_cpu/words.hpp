#pragma once
// The words of CUDA C++ for a plain compiler, so that it accepts a kernel: common/cuda/cuda.hpp includes this unless nvcc
// compiles.
#include "common/cuda_on_cpu/device.hpp"
#include <bit>
#include <cmath>
#include <cstdint>

#define __global__
#define __device__
#define __host__
#define __constant__ static const
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __align__(n) alignas(n)
#define __shared__ static thread_local

#define threadIdx (flashsteps::cuda_on_cpu::thread_index)
#define blockIdx (flashsteps::cuda_on_cpu::block_index)
#define blockDim (flashsteps::cuda_on_cpu::block_size)
#define gridDim (flashsteps::cuda_on_cpu::grid_size)

using flashsteps::cuda_on_cpu::dim3;
using flashsteps::cuda_on_cpu::uint3;
constexpr int warpSize = 32;

/// @cond
struct alignas(8) float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
/// @endcond
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }

// Barriers and warp operations: a default argument notes the line of the call

inline void __syncthreads(flashsteps::cuda_on_cpu::Site site = flashsteps::cuda_on_cpu::here()) { flashsteps::cuda_on_cpu::block_barrier(site); }
inline void __syncwarp(unsigned mask = 0xffffffffu, flashsteps::cuda_on_cpu::Site site = flashsteps::cuda_on_cpu::here()) {
  flashsteps::cuda_on_cpu::warp_sync(mask, site);
}
template <class T> T __shfl_sync(unsigned mask, T value, int lane, int width = 32, flashsteps::cuda_on_cpu::Site site = flashsteps::cuda_on_cpu::here()) {
  return flashsteps::cuda_on_cpu::shuffle(mask, value, flashsteps::cuda_on_cpu::Shuffle::index, lane, width, site);
}
template <class T> T __shfl_up_sync(unsigned mask, T value, unsigned by, int width = 32, flashsteps::cuda_on_cpu::Site site = flashsteps::cuda_on_cpu::here()) {
  return flashsteps::cuda_on_cpu::shuffle(mask, value, flashsteps::cuda_on_cpu::Shuffle::up, int(by), width, site);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned by, int width = 32, flashsteps::cuda_on_cpu::Site site = flashsteps::cuda_on_cpu::here()) {
  return flashsteps::cuda_on_cpu::shuffle(mask, value, flashsteps::cuda_on_cpu::Shuffle::down, int(by), width, site);
}
template <class T> T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32, flashsteps::cuda_on_cpu::Site site = flashsteps::cuda_on_cpu::here()) {
  return flashsteps::cuda_on_cpu::shuffle(mask, value, flashsteps::cuda_on_cpu::Shuffle::exclusive_or, bits, width, site);
}
inline unsigned __ballot_sync(unsigned mask, int predicate, flashsteps::cuda_on_cpu::Site site = flashsteps::cuda_on_cpu::here()) {
  return flashsteps::cuda_on_cpu::ballot(mask, predicate != 0, site);
}
inline int __any_sync(unsigned mask, int predicate, flashsteps::cuda_on_cpu::Site site = flashsteps::cuda_on_cpu::here()) {
  return flashsteps::cuda_on_cpu::ballot(mask, predicate != 0, site) != 0;
}
inline int __all_sync(unsigned mask, int predicate, flashsteps::cuda_on_cpu::Site site = flashsteps::cuda_on_cpu::here()) {
  return flashsteps::cuda_on_cpu::ballot(mask, predicate == 0, site) == 0;
}
template <class T> T atomicAdd(T* to, T value, flashsteps::cuda_on_cpu::Site site = flashsteps::cuda_on_cpu::here()) {
  return flashsteps::cuda_on_cpu::atomic_add(to, value, site);
}

// Arithmetic

template <class T> T __ldg(const T* p) { return *p; }
inline float __expf(float x) { return flashsteps::cuda_on_cpu::exp_of(x); }
inline float __logf(float x) { return flashsteps::cuda_on_cpu::log_of(x); }
inline float __fdividef(float a, float b) { return a / b; }
inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }
inline float __frcp_rn(float x) { return 1.0f / x; }
inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
inline unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
inline float __uint_as_float(unsigned x) { return std::bit_cast<float>(x); }
inline int __float_as_int(float x) { return std::bit_cast<int>(x); }
inline float __int_as_float(int x) { return std::bit_cast<float>(x); }
inline int __popc(unsigned x) { return std::popcount(x); }
inline int __ffs(int x) { return x == 0 ? 0 : std::countr_zero(unsigned(x)) + 1; }
inline int __clz(int x) { return std::countl_zero(unsigned(x)); }
inline int min(int a, int b) { return a < b ? a : b; }
inline int max(int a, int b) { return a > b ? a : b; }
