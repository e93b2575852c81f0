// The numbers of the CPU layer: half, bfloat16, exp, 2^x and log, against definitions of their own.
#include "common/cuda_on_cpu/device.hpp"
#include "common/cuda_on_cpu/half.hpp"
#include "tests/catch.hpp"
#include "tests/cuda_layer.hpp"
#include <cmath>
#include <limits>

namespace flashsteps::cuda_layer {
namespace {

using namespace cuda_on_cpu;

/// What a 16-bit pattern with so many fraction bits means, from the definition.
double value_of(unsigned bits, int fraction_bits, int bias) {
  const int exponent_bits = 15 - fraction_bits, top = (1 << exponent_bits) - 1;
  const int exponent = int(bits >> fraction_bits) & top;
  const double fraction = double(bits & ((1u << fraction_bits) - 1)), sign = bits & 0x8000u ? -1 : 1;
  if (exponent == top) return fraction != 0 ? std::nan("") : sign * std::numeric_limits<double>::infinity();
  const double scale = std::ldexp(1.0, fraction_bits);
  return exponent == 0 ? sign * std::ldexp(fraction / scale, 1 - bias) : sign * std::ldexp(1 + fraction / scale, exponent - bias);
}

bool same(double a, double b) { return std::isnan(a) ? std::isnan(b) : a == b && std::signbit(a) == std::signbit(b); }

template <class To, class From> void check_type(To to_float, From from_float, int fraction_bits, int bias) {
  long wrong = 0;
  for (unsigned bits = 0; bits < 65536; ++bits) {
    const double value = value_of(bits, fraction_bits, bias);
    wrong += !same(double(to_float(std::uint16_t(bits))), value);
    wrong += from_float(float(value)) != (std::isnan(value) ? 0x7fffu : bits);
    // Between this number and the next: below the middle rounds down, above it up, the middle to the even one
    const unsigned next = bits + 1;
    const double upper = value_of(next, fraction_bits, bias);
    if ((bits & 0x7fffu) == 0x7fffu || !std::isfinite(value) || std::isnan(upper)) continue;
    const double end = std::isinf(upper) ? std::copysign(std::ldexp(2.0, bias), value) : upper;  // as if there were one more number
    const double middle = (value + end) / 2;
    if (double(float(middle)) != middle) continue;
    const float m = float(middle), far = std::copysign(std::numeric_limits<float>::infinity(), m);
    wrong += from_float(m) != (bits & 1u ? next : bits);
    wrong += from_float(std::nextafter(m, 0.0f)) != bits;
    wrong += from_float(std::nextafter(m, far)) != next;
  }
  CHECK(wrong == 0);
}

TEST_CASE("cuda layer - half and bfloat16 for all 65536 patterns and around every middle between two") {
  check_type(half_to_float, half_from_float, 10, 15);
  check_type(bfloat16_to_float, bfloat16_from_float, 7, 127);
}

TEST_CASE("cuda layer - roundings in a kernel put the first of a pair below") {
  const Words out = roundings({1.0f, -2.0f, 65520.0f, 1e-8f});
  CHECK(out == Words{0xc0003c00u, 0xc0003f80u, 0x00007c00u, 0x322c4780u});
}

double ulp(double x) {
  int exponent = 0;
  std::frexp(x, &exponent);
  return std::ldexp(1.0, std::max(exponent - 24, -149));
}

/// The largest error in units in the last place, over a sample of all floats; the C library's double functions are the reference.
template <class Own, class Reference> double worst(Own own, Reference reference) {
  double worst = 0;
  for (std::uint64_t bits = 0; bits < (1ull << 32); bits += 4099) {
    const float x = std::bit_cast<float>(std::uint32_t(bits));
    const float got = own(x);
    const double expected = reference(double(x));
    if (std::isnan(expected) || std::isnan(got) || std::isinf(float(expected)) || std::isinf(got)) {
      if (!same(double(float(expected)), double(got)) && !(std::isnan(expected) && std::isnan(got))) return 1e9;
      continue;
    }
    worst = std::max(worst, std::abs(double(got) - expected) / ulp(expected));
  }
  return worst;
}

TEST_CASE("cuda layer - exp and log are within 0-51 units in the last place") {
  CHECK(worst(exp_of, [](double x) { return std::exp(x); }) <= 0.51);
  CHECK(worst(exp2_of, [](double x) { return std::exp2(x); }) <= 0.51);
  CHECK(worst(log_of, [](double x) { return std::log(x); }) <= 0.51);
}

TEST_CASE("cuda layer - exp and log where they are exact or at an end") {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  CHECK((exp_of(0.0f) == 1 && exp_of(-infinity) == 0 && exp_of(infinity) == infinity && exp_of(88.7f) < infinity && exp_of(88.8f) == infinity));
  CHECK((std::isnan(exp_of(NAN)) && std::isnan(exp2_of(NAN)) && std::isnan(log_of(NAN)) && std::isnan(log_of(-1.0f))));
  CHECK((log_of(1.0f) == 0 && log_of(0.0f) == -infinity && log_of(-0.0f) == -infinity && log_of(infinity) == infinity));
  bool exact = true;
  for (int k = -149; k < 128; ++k) exact = exact && exp2_of(float(k)) == std::ldexp(1.0f, k);
  CHECK((exact && exp2_of(128.0f) == infinity && exp2_of(-151.0f) == 0 && exp2_of(-infinity) == 0));
}

}  // namespace
}  // namespace flashsteps::cuda_layer
