#include "tests/benchmarks/peak.hpp"

#include "common/memory/packet.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>
#include <limits>
#include <omp.h>
#include <stdexcept>

namespace flashsteps::bench {
namespace {

/// Independent sums: more than latency times ports of any core (4 x 2, 5 x 2), and few enough to stay in registers beside two operands.
constexpr int chains = simd_registers == 32 ? 24 : 12;
constexpr long first_rounds = 1 << 12;

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// Seconds that this thread had a core.
double own_time() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

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

/// Twice the rounds take about twice the time of this thread, which others that run beside it do not change much.
/// @throws std::runtime_error if they do not
template <class T> void check_rounds_count(long rounds) {
  volatile T half = T(0.5), one = T(1);
  double once = std::numeric_limits<double>::infinity(), twice = once;
  for (int r = 0; r < 50; ++r) {
    const double begin = own_time();
    multiply_adds<T>(rounds, half, one);
    const double middle = own_time();
    multiply_adds<T>(2 * rounds, half, one);
    once = std::min(once, middle - begin), twice = std::min(twice, own_time() - middle);
    if (r >= 2 && twice >= 1.6 * once) return;
  }
  throw std::runtime_error("the loop of multiply-adds was optimised away: twice the rounds take no longer");
}

}  // namespace

template <class T> double peak(int threads) {
  // Long enough for a few milliseconds
  long rounds = first_rounds;
  while (seconds<T>(rounds, threads) < 4e-3 && rounds < (1L << 40)) rounds *= 2;
  check_rounds_count<T>(rounds);
  double best = std::numeric_limits<double>::infinity();
  const double start = now();
  for (int r = 0; r < 10 || (r < 100 && now() - start < 0.3); ++r) best = std::min(best, seconds<T>(rounds, threads));
  return 2.0 * double(rounds) * chains * lanes<T> * threads / best / 1e9;
}

template double peak<float>(int);
template double peak<double>(int);

}  // namespace flashsteps::bench
