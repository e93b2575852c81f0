#pragma once
// __half and __nv_bfloat16 for machines without the CUDA Toolkit: the names that kernels use, with the toolkit's roundings.
#include <bit>
#include <cstdint>

namespace flashsteps::cuda_on_cpu {

/// IEEE binary16, to nearest, ties to even; the NaN that the hardware gives.
/// @param f  a float
/// @return its 16 bits
inline std::uint16_t half_from_float(float f) {
  const std::uint32_t x = std::bit_cast<std::uint32_t>(f), sign = (x >> 16) & 0x8000u, magnitude = x & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return 0x7fffu;
  if (magnitude >= 0x477ff000u) return std::uint16_t(sign | 0x7c00u);  // rounds to infinity
  if (magnitude < 0x38800000u) {                                       // subnormal or zero: adding 0.5 rounds it
    const float r = std::bit_cast<float>(magnitude) + 0.5f;
    return std::uint16_t(sign | (std::bit_cast<std::uint32_t>(r) - 0x3f000000u));
  }
  return std::uint16_t(sign | ((magnitude + 0xc8000fffu + ((magnitude >> 13) & 1u)) >> 13));
}
/// Exact; the NaN that the hardware gives. Without a branch, so that loops over it become SIMD.
/// @param h  16 bits
/// @return their value
inline float half_to_float(std::uint16_t h) {
  const float scaled = std::bit_cast<float>(std::uint32_t(h & 0x7fffu) << 13) * 0x1p112f;  // also normalises subnormals
  std::uint32_t r = std::bit_cast<std::uint32_t>(scaled);
  const bool nan = (h & 0x7fffu) > 0x7c00u;
  r |= (h & 0x7c00u) == 0x7c00u ? 0x7f800000u : 0u;
  r |= nan ? 0x7fffffffu : std::uint32_t(h & 0x8000u) << 16;
  return std::bit_cast<float>(r);
}
/// The upper half of a float, to nearest, ties to even; the NaN that the hardware gives.
/// @param f  a float
/// @return its 16 bits
inline std::uint16_t bfloat16_from_float(float f) {
  const std::uint32_t x = std::bit_cast<std::uint32_t>(f);
  if ((x & 0x7fffffffu) > 0x7f800000u) return 0x7fffu;
  return std::uint16_t((x + 0x7fffu + ((x >> 16) & 1u)) >> 16);
}
/// Exact.
/// @param h  16 bits
/// @return their value
inline float bfloat16_to_float(std::uint16_t h) { return std::bit_cast<float>(std::uint32_t(h) << 16); }

}  // namespace flashsteps::cuda_on_cpu

/// @cond
struct alignas(2) __half {
  std::uint16_t bits;
};
struct alignas(4) __half2 {
  __half x, y;
};
struct alignas(2) __nv_bfloat16 {
  std::uint16_t bits;
};
struct alignas(4) __nv_bfloat162 {
  __nv_bfloat16 x, y;
};
/// @endcond

inline __half __float2half_rn(float f) { return {flashsteps::cuda_on_cpu::half_from_float(f)}; }
inline float __half2float(__half h) { return flashsteps::cuda_on_cpu::half_to_float(h.bits); }
inline __half2 __floats2half2_rn(float x, float y) { return {__float2half_rn(x), __float2half_rn(y)}; }
inline __nv_bfloat16 __float2bfloat16_rn(float f) { return {flashsteps::cuda_on_cpu::bfloat16_from_float(f)}; }
inline float __bfloat162float(__nv_bfloat16 h) { return flashsteps::cuda_on_cpu::bfloat16_to_float(h.bits); }
inline __nv_bfloat162 __floats2bfloat162_rn(float x, float y) { return {__float2bfloat16_rn(x), __float2bfloat16_rn(y)}; }
