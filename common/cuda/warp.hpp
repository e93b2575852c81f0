#pragma once
// Reductions over the lanes of a warp. All lanes take part, and all get the result.
#include "common/cuda/cuda.hpp"

namespace flashsteps::gpu {

/// @return which lane of its warp this thread is, 0 to 31
__device__ __forceinline__ int lane_id() { return int((threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) % 32); }

/// @{
/// The value of the lane whose number differs in these bits.
/// @param value  this lane's
/// @param bits   1 to 31
/// @param site   the line that messages name
/// @return the other lane's value
// Passing on the site costs a kernel nothing, and names its line
#if defined(__CUDACC__)
template <class T> __device__ __forceinline__ T shuffle_xor(T value, int bits, Site) { return __shfl_xor_sync(full_warp, value, bits); }
#else
template <class T> T shuffle_xor(T value, int bits, Site site) { return __shfl_xor_sync(full_warp, value, bits, 32, site); }
#endif
/// @}

/// The sum over each group of Width neighbouring lanes (a power of two), in the order of a butterfly.
/// @param value  this lane's
/// @param site   the line of the call: to be left out
/// @return the sum
template <int Width = 32, class T> __device__ __forceinline__ T warp_sum(T value, Site site = here()) {
  for (int bits = Width / 2; bits > 0; bits /= 2) value += shuffle_xor(value, bits, site);
  return value;
}

/// The maximum over each group of Width neighbouring lanes.
/// @param value  this lane's
/// @param site   the line of the call: to be left out
/// @return the maximum
template <int Width = 32, class T> __device__ __forceinline__ T warp_max(T value, Site site = here()) {
  for (int bits = Width / 2; bits > 0; bits /= 2) {
    const T other = shuffle_xor(value, bits, site);
    value = value < other ? other : value;
  }
  return value;
}

}  // namespace flashsteps::gpu
