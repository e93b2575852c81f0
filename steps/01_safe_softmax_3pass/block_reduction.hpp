#pragma once
// Reductions over a block: shuffles within each warp, shared memory between the warps. All threads take part, and all get the result.
// `parts` is used for one reduction only.
#include "common/cuda/warp.hpp"

namespace flashsteps::step01 {

/// The maximum over the block.
/// @tparam Warps  warps of the block
/// @param parts   room in shared memory for one number a warp
/// @param value   this thread's
/// @return the maximum over all threads
template <int Warps> __device__ __forceinline__ float block_max(float (&parts)[Warps], float value) {
  value = gpu::warp_max(value);
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
  __syncthreads();  // the maxima of all warps are there
  for (const float part : parts) value = fmaxf(value, part);
  return value;
}

/// The sum over the block.
/// @tparam Warps  warps of the block
/// @param parts   room in shared memory for one number a warp
/// @param value   this thread's
/// @return the sum over all threads
template <int Warps> __device__ __forceinline__ float block_sum(float (&parts)[Warps], float value) {
  value = gpu::warp_sum(value);
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
  __syncthreads();  // the sums of all warps are there
  float sum = 0.0f;
  for (const float part : parts) sum += part;
  return sum;
}

}  // namespace flashsteps::step01
