// Our half and bfloat16 equal those of the CUDA toolkit's headers, bit for bit: all patterns to float, and back every float that a type
// holds, every one halfway between two, their neighbours, and every 1021st of all. Exit code 77, skipped, where there is no toolkit.
#include "tests/half_toolkit.hpp"
#include <bit>
#include <cstdio>

namespace flashsteps {
namespace {

long tried = 0, wrong = 0;
void hold(const char* what, std::uint32_t in, std::uint32_t ours, std::uint32_t theirs) {
  ++tried;
  if (ours == theirs) return;
  if (++wrong <= 20) std::printf("%s of %08x: %08x here, %08x in the toolkit\n", what, in, ours, theirs);
}

int compare() {
  if (!theirs()) return std::puts("skipped: the headers of the CUDA toolkit are not here"), 77;
  const Conversions a = ours(), b = *theirs();
  const auto bits = [](float x) { return std::bit_cast<std::uint32_t>(x); };
  const auto word = [](std::pair<Bits, Bits> x) { return std::uint32_t(x.second) << 16 | x.first; };
  const auto back = [&](std::uint32_t pattern) {
    const float x = std::bit_cast<float>(pattern);
    hold("half", pattern, a.half_from_float(x), b.half_from_float(x));
    hold("bfloat16", pattern, a.bfloat16_from_float(x), b.bfloat16_from_float(x));
  };
  // A float halfway between neighbours of half has bit 12 set and none below, or other ones where half is subnormal; of bfloat16, bit 15
  const auto around = [&](std::uint32_t pattern) {
    for (const std::uint32_t by : {0u, 1u, 0xffffffffu}) back(pattern + by);
  };
  for (std::uint32_t n = 0; n < 0x10000; ++n) {
    const float half = a.half_to_float(Bits(n)), next = a.half_to_float(Bits(n + 1));
    hold("float of half", n, bits(half), bits(b.half_to_float(Bits(n))));
    hold("float of bfloat16", n, bits(a.bfloat16_to_float(Bits(n))), bits(b.bfloat16_to_float(Bits(n))));
    around(bits(half));
    around(bits((half + next) / 2));
    around(n << 16);
    around(n << 16 | 0x8000u);
  }
  for (std::uint64_t pattern = 0; pattern <= 0xffffffffu; pattern += 1021) {
    back(std::uint32_t(pattern));
    const float x = std::bit_cast<float>(std::uint32_t(pattern)), y = std::bit_cast<float>(std::uint32_t(~pattern));
    hold("two halves", std::uint32_t(pattern), word(a.halves_from_floats(x, y)), word(b.halves_from_floats(x, y)));
    hold("two bfloat16s", std::uint32_t(pattern), word(a.bfloat16s_from_floats(x, y)), word(b.bfloat16s_from_floats(x, y)));
  }
  std::printf("%ld conversions, %ld of them differ from the toolkit's\n", tried, wrong);
  return wrong == 0 ? 0 : 1;
}

}  // namespace
}  // namespace flashsteps

int main() { return flashsteps::compare(); }
