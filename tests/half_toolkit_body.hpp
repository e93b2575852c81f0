// What half_toolkit_ours.cpp and half_toolkit_theirs.cpp have in common: the words of CUDA, whichever header they come from.
#include "tests/half_toolkit.hpp"
#include <cstring>

namespace flashsteps {
namespace {

template <class To, class From> To bits_as(const From& from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(static_cast<void*>(&to), static_cast<const void*>(&from), sizeof to);
  return to;
}
template <class Pair> std::pair<Bits, Bits> both(const Pair& pair) {
  const std::uint32_t x = bits_as<std::uint32_t>(pair);
  return {Bits(x & 0xffffu), Bits(x >> 16)};
}

const Conversions conversions{[](Bits x) { return __half2float(bits_as<__half>(x)); },
                              [](float x) { return bits_as<Bits>(__float2half_rn(x)); },
                              [](float x, float y) { return both(__floats2half2_rn(x, y)); },
                              [](Bits x) { return __bfloat162float(bits_as<__nv_bfloat16>(x)); },
                              [](float x) { return bits_as<Bits>(__float2bfloat16_rn(x)); },
                              [](float x, float y) { return both(__floats2bfloat162_rn(x, y)); }};

}  // namespace
}  // namespace flashsteps
