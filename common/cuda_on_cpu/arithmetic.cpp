// exp, 2^x and log from additions, multiplications and one division of doubles, in a fixed order: every machine that rounds as
// IEEE 754 says gives these bits. Compile without contraction to fused operations.
#include "common/cuda_on_cpu/device.hpp"
#include <bit>
#include <limits>

namespace flashsteps::cuda_on_cpu {
namespace {

constexpr double ln2 = 0x1.62e42fefa39efp-1, log2_e = 0x1.71547652b82fep+0;
constexpr float infinity = std::numeric_limits<float>::infinity();

/// To the nearest integer, for |x| < 2^51: there, doubles are integers.
double nearest(double x) { return (x + 0x1.8p52) - 0x1.8p52; }

/// 2^k e^r for |r| <= ln 2 / 2. The series leaves out 7e-12.
float scaled_exp(double r, double k) {
  double sum = 1.0 / 362880;
  for (const double c : {1.0 / 40320, 1.0 / 5040, 1.0 / 720, 1.0 / 120, 1.0 / 24, 1.0 / 6, 0.5, 1.0, 1.0}) sum = sum * r + c;
  const auto exponent = std::uint64_t(std::int64_t(k) + 1023);
  return float(sum * std::bit_cast<double>(exponent << 52));  // rounds once, subnormal results too
}

}  // namespace

float exp_of(float x) {
  if (x != x) return x;
  if (x > 89.0f) return infinity;
  if (x < -104.0f) return 0.0f;
  const double k = nearest(x * log2_e);
  return scaled_exp(x - k * ln2, k);
}

float exp2_of(float x) {
  if (x != x) return x;
  if (x >= 128.0f) return infinity;
  if (x < -150.0f) return 0.0f;
  const double k = nearest(x);
  return scaled_exp((x - k) * ln2, k);
}

// log x = k ln 2 + 2 artanh(s) for x = 2^k m, s = (m - 1) / (m + 1), |s| < 0.172. The series leaves out 3e-14 of s.
float log_of(float x) {
  if (x != x) return x;
  if (x < 0.0f) return std::numeric_limits<float>::quiet_NaN();
  if (x == 0.0f) return -infinity;
  if (x == infinity) return x;
  const auto bits = std::bit_cast<std::uint64_t>(double(x));
  int k = int(bits >> 52) - 1023;
  double m = std::bit_cast<double>((bits & 0x000fffffffffffffu) | 0x3ff0000000000000u);
  if (m > 0x1.6a09e667f3bcdp+0) {  // sqrt 2
    m *= 0.5;
    ++k;
  }
  const double s = (m - 1) / (m + 1), s2 = s * s;
  double sum = 1.0 / 15;
  for (const double c : {1.0 / 13, 1.0 / 11, 1.0 / 9, 1.0 / 7, 1.0 / 5, 1.0 / 3, 1.0}) sum = sum * s2 + c;
  return float(k * ln2 + 2 * s * sum);
}

}  // namespace flashsteps::cuda_on_cpu
