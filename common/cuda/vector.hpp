#pragma once
// Accesses of 4, 8 and 16 bytes in one instruction. A plain compiler may split the copy of a struct, and it would be counted as several.
#include "common/cuda/cuda.hpp"

namespace flashsteps::gpu {

/// A Vector (float2, float4, uint2, uint4, or std::uint32_t for two halves) from p, which is aligned to it.
/// @param p     in shared or global memory
/// @param site  the line of the call: to be left out
/// @return what stands there
template <class Vector, class T> __device__ __forceinline__ Vector load_vector(const T* p, [[maybe_unused]] Site site = here()) {
#if defined(__CUDACC__)
  return *reinterpret_cast<const Vector*>(p);
#else
  Vector v;
  cuda_on_cpu::load(&v, p, sizeof v, site);
  return v;
#endif
}
/// v to p, which is aligned to it.
/// @param p     in shared or global memory
/// @param v     what is written
/// @param site  the line of the call: to be left out
template <class Vector, class T> __device__ __forceinline__ void store_vector(T* p, Vector v, [[maybe_unused]] Site site = here()) {
#if defined(__CUDACC__)
  *reinterpret_cast<Vector*>(p) = v;
#else
  cuda_on_cpu::store(p, &v, sizeof v, site);
#endif
}

/// @{
/// The same for 2 or 4 floats.
/// @param p     in shared or global memory
/// @param site  the line of the call: to be left out
/// @return what stands there
__device__ __forceinline__ float2 load_float2(const float* p, Site site = here()) { return load_vector<float2>(p, site); }
__device__ __forceinline__ float4 load_float4(const float* p, Site site = here()) { return load_vector<float4>(p, site); }
/// @}
/// @{
/// The same for 2 or 4 floats.
/// @param p     in shared or global memory
/// @param v     what is written
/// @param site  the line of the call: to be left out
__device__ __forceinline__ void store_float2(float* p, float2 v, Site site = here()) { store_vector(p, v, site); }
__device__ __forceinline__ void store_float4(float* p, float4 v, Site site = here()) { store_vector(p, v, site); }
/// @}

}  // namespace flashsteps::gpu
