#include "tests/benchmarks/peak.hpp"

#include "common/memory/packet.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <omp.h>
#include <stdexcept>

namespace flashsteps::bench {
namespace {

/// Independent sums: more than latency times ports of any core (4 x 2, 5 x 2), and few enough to stay in registers beside two operands.
constexpr int chains = simd_registers == 32 ? 24 : 12;
constexpr long first_rounds = 1 << 12;

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// x = x f + s in every lane of every chain, `rounds` times, from different numbers.
/// @return the sum of all lanes
template <class T> [[gnu::noinline]] double multiply_adds(long rounds, T f, T s) {
  const Packet<T> factor = broadcast<T>(f), summand = broadcast<T>(s);
  Packet<T> x[chains];
  for (int c = 0; c < chains; ++c) x[c] = broadcast<T>(T(100 + c));
  for (long r = 0; r < rounds; ++r) {
#pragma GCC unroll 32
    for (int c = 0; c < chains; ++c) x[c] = multiply_add<T>(x[c], factor, summand);
  }
  double sum = 0;
  for (int c = 0; c < chains; ++c)
    for (int lane = 0; lane < lanes<T>; ++lane) sum += double(x[c][lane]);
  return sum;
}

/// Seconds for as many rounds on each of `threads` threads, from the first to begin to the last to end.
template <class T> double seconds(long rounds, int threads) {
  // What the compiler cannot know: x -> x / 2 + 1 has the limit 2
  volatile T half = T(0.5), one = T(1);
  bool right = true;
  double begin = 0, end = 0;
#pragma omp parallel num_threads(threads)
  {
#pragma omp barrier
#pragma omp master
    begin = now();
    const double sum = multiply_adds<T>(rounds, half, one);
#pragma omp barrier
#pragma omp master
    end = now();
    if (!(std::abs(sum - 2.0 * chains * lanes<T>) <= 1e-3)) {
#pragma omp critical
      right = false;
    }
  }
  if (!right) throw std::runtime_error("the loop of multiply-adds did not reach its limit");
  return end - begin;
}

}  // namespace

template <class T> double peak(int threads) {
  // Long enough for a few milliseconds
  long rounds = first_rounds;
  while (seconds<T>(rounds, threads) < 4e-3 && rounds < (1L << 40)) rounds *= 2;
  double once = seconds<T>(rounds, threads), twice = seconds<T>(2 * rounds, threads);
  for (int r = 0; r < 8; ++r) once = std::min(once, seconds<T>(rounds, threads)), twice = std::min(twice, seconds<T>(2 * rounds, threads));
  if (!(twice >= 1.4 * once)) throw std::runtime_error("the loop of multiply-adds was optimised away: twice the rounds take no longer");
  return 2.0 * double(rounds) * chains * lanes<T> * threads / std::min(once, twice / 2) / 1e9;
}

template double peak<float>(int);
template double peak<double>(int);

}  // namespace flashsteps::bench
