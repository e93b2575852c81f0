#pragma once
// The exponential on packets.
#include "common/memory/packet.hpp"
#include <bit>
#include <cmath>
#include <cstdint>
#include <initializer_list>

namespace flashsteps {

/// e^x for x <= 88 (float), 709 (double), relative error below 2e-7 and 4e-16 near 0: exactly 1 at 0, exactly 0 far below and at
/// -inf; NaN stays NaN.
/// @param x  a packet
/// @return e^x, lane by lane
// Adding 1.5 * 2^23 rounds x log2(e) to n and leaves n in the low bits: they become the exponent of 2^n, a polynomial gives 2^f,
// |f| <= 1/2. The coefficients of float are a minimax fit, those of double Taylor's.
template <class T> [[gnu::always_inline]] inline Packet<T> packet_exp(Packet<T> x) {
  if constexpr (std::is_same_v<T, float>) {
    using Bits = typename Simd<std::uint32_t, lanes<T>>::type;
    const Packet<T> magic = Packet<T>{} + (0x1.8p23f + 127), log2e = Packet<T>{} + 1.44269504f;
    const Packet<T> t = multiply_add<T>(x, log2e, magic), f = multiply_add<T>(x, log2e, magic - t);
    Packet<T> p = Packet<T>{} + 0.00132647272f;
#pragma GCC unroll 8
    for (float coefficient : {0.00967151264f, 0.0555073374f, 0.240222421f, 0.693146978f, 1.f}) p = multiply_add<T>(p, f, Packet<T>{} + coefficient);
    return x < -87.f ? Packet<T>{} : p * std::bit_cast<Packet<T>>(std::bit_cast<Bits>(t) << 23);
  } else if constexpr (std::is_same_v<T, double>) {
    using Bits = typename Simd<std::uint64_t, lanes<T>>::type;
    const Packet<T> magic = Packet<T>{} + (0x1.8p52 + 1023), log2e = Packet<T>{} + 1.4426950408889634;
    const Packet<T> t = multiply_add<T>(x, log2e, magic), r = multiply_add<T>(x, log2e, magic - t) * 0.6931471805599453;
    Packet<T> p = Packet<T>{} + 1 / 6227020800.;  // up to r^13 / 13!
#pragma GCC unroll 16
    for (double factorial : {479001600., 39916800., 3628800., 362880., 40320., 5040., 720., 120., 24., 6., 2., 1., 1.}) p = multiply_add<T>(p, r, Packet<T>{} + 1 / factorial);
    return x < -708. ? Packet<T>{} : p * std::bit_cast<Packet<T>>(std::bit_cast<Bits>(t) << 52);
  } else {
    using std::exp;
    return exp(x);
  }
}

}  // namespace flashsteps
