#pragma once
// half and bfloat16 in two worlds whose names clash: each is one translation unit behind plain functions.
#include <cstdint>
#include <optional>
#include <utility>

namespace flashsteps {

using Bits = std::uint16_t;
struct Conversions {
  float (*half_to_float)(Bits);
  Bits (*half_from_float)(float);
  std::pair<Bits, Bits> (*halves_from_floats)(float, float);
  float (*bfloat16_to_float)(Bits);
  Bits (*bfloat16_from_float)(float);
  std::pair<Bits, Bits> (*bfloat16s_from_floats)(float, float);
};

Conversions ours();                   ///< half_toolkit_ours.cpp
std::optional<Conversions> theirs();  ///< half_toolkit_theirs.cpp, or half_toolkit_none.cpp where there is no toolkit

}  // namespace flashsteps
