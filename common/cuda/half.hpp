#pragma once
// The 16-bit types, and how they are rounded and packed.
#include "common/cuda/cuda.hpp"
#if defined(__CUDACC__)
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#else
#include "common/cuda_on_cpu/half.hpp"
#endif

namespace flashsteps::gpu {

/// @{
/// @param x  a number
/// @return the same as float, exactly
__host__ __device__ __forceinline__ float to_float(float x) { return x; }
__host__ __device__ __forceinline__ float to_float(__half x) { return __half2float(x); }
__host__ __device__ __forceinline__ float to_float(__nv_bfloat16 x) { return __bfloat162float(x); }
/// @}

/// @{
/// x rounded to T (float, __half, __nv_bfloat16), to nearest, ties to even.
/// @param x  a number
/// @return it as T
template <class T> __host__ __device__ __forceinline__ T from_float(float x);
template <> __host__ __device__ __forceinline__ float from_float<float>(float x) { return x; }
template <> __host__ __device__ __forceinline__ __half from_float<__half>(float x) { return __float2half_rn(x); }
template <> __host__ __device__ __forceinline__ __nv_bfloat16 from_float<__nv_bfloat16>(float x) { return __float2bfloat16_rn(x); }
/// @}

/// @{
/// Two floats, rounded to T, in a register as mma takes it: the first in the lower half.
/// @param low,high  two neighbours of a row
/// @return both
template <class T> __device__ __forceinline__ std::uint32_t pack(float low, float high);
template <> __device__ __forceinline__ std::uint32_t pack<__half>(float low, float high) {
  const __half2 pair = __floats2half2_rn(low, high);
  std::uint32_t bits;
  memcpy(&bits, &pair, sizeof bits);
  return bits;
}
template <> __device__ __forceinline__ std::uint32_t pack<__nv_bfloat16>(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  std::uint32_t bits;
  memcpy(&bits, &pair, sizeof bits);
  return bits;
}
/// @}

}  // namespace flashsteps::gpu
