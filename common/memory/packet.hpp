#pragma once
// One SIMD register of numbers: the compiler's own vector types, no intrinsics.
// A type without SIMD form, such as a number of 50 digits, is a packet of one lane.
#include <Eigen/Core>
#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

#ifdef __FAST_MATH__
#error "flashsteps computes with infinity and NaN: build it without -ffast-math"
#endif
#if defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__
#error "flashsteps computes with infinity and NaN: build it without -ffinite-math-only (-ffast-math, -Ofast)"
#endif

namespace flashsteps {

/// @{
/// Bytes of a SIMD register of this processor, and how many it has.
#if defined(__AVX512F__)
inline constexpr int simd_bytes = 64, simd_registers = 32;
#elif defined(__AVX__)
inline constexpr int simd_bytes = 32, simd_registers = 16;
#else
inline constexpr int simd_bytes = 16, simd_registers = 16;
#endif
/// @}

/// @{
/// Numbers in a packet.
template <class T> inline constexpr int lanes = 1;
template <> inline constexpr int lanes<float> = simd_bytes / sizeof(float);
template <> inline constexpr int lanes<double> = simd_bytes / sizeof(double);
/// @}

// The compiler's vector of N numbers: `type`, and `unaligned`, which may start anywhere; one number is a vector of itself
/// @cond
template <class T, int N> struct Simd {
  typedef T type __attribute__((vector_size(sizeof(T) * N), may_alias));
  typedef T unaligned __attribute__((vector_size(sizeof(T) * N), may_alias, aligned(alignof(T))));
};
template <class T> struct Simd<T, 1> { using type = T; using unaligned = T; };
/// @endcond

/// A SIMD register of lanes<T> numbers.
template <class T> using Packet = typename Simd<T, lanes<T>>::type;
/// The same, where it need not start on its own size.
template <class T> using LoosePacket = typename Simd<T, lanes<T>>::unaligned;

/// The same number in every lane. (Packet{} + x would be an addition, for -0 + 0 is not -0.)
/// @param x  a number
/// @return x in every lane
template <class T> [[gnu::always_inline]] inline Packet<T> broadcast(const T& x) {
  if constexpr (lanes<T> > 1) return std::bit_cast<Packet<T>>(Eigen::internal::pset1<typename Eigen::internal::packet_traits<T>::type>(x));
  else return x;
}
/// a b + c, rounded once where the processor can. Said out loud, for the bits must not depend on the loop that it stands in, and a
/// compiler may fuse in one loop and not in another (g++ does, tuned for AMD's Zen).
/// @param a,b,c  packets
/// @return a b + c, lane by lane
template <class T> [[gnu::always_inline]] inline Packet<T> multiply_add(const Packet<T>& a, const Packet<T>& b, const Packet<T>& c) {
  if constexpr (lanes<T> > 1) {
    using Lanes = typename Eigen::internal::packet_traits<T>::type;
    return std::bit_cast<Packet<T>>(Eigen::internal::pmadd(std::bit_cast<Lanes>(a), std::bit_cast<Lanes>(b), std::bit_cast<Lanes>(c)));
  } else {
    return a * b + c;
  }
}
/// The same for one number.
/// @param a,b,c  numbers
/// @return a b + c
template <class T> inline T multiply_add_number(const T& a, const T& b, const T& c) {
#ifdef __FMA__
  if constexpr (lanes<T> > 1) return std::fma(a, b, c);
#endif
  return a * b + c;
}

template <class T> const T infinity = std::numeric_limits<T>::infinity();  ///< infinity of a floating-point type

}  // namespace flashsteps
