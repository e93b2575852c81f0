#include "tests/benchmarks/peak.hpp"

#include "common/memory/packet.hpp"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <limits>
#include <stdexcept>

namespace flashsteps::bench {
namespace {

/// Independent sums: more than latency times ports of any core (4 x 2, 5 x 2), and few enough to stay in registers beside two operands.
constexpr int chains = simd_registers == 32 ? 24 : 12;
constexpr long first_rounds = 1 << 12;

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
  // A function without effect could be moved to before the clock is read, and its result kept
  asm volatile("" : : : "memory");
  double sum = 0;
  for (int c = 0; c < chains; ++c)
    for (int lane = 0; lane < lanes<T>; ++lane) sum += double(x[c][lane]);
  return sum;
}

// What the compiler cannot know: x -> x / 2 + 1 has the limit 2
/// @return is that the sum of all lanes at the limit? Who does not ask for the sum may find the loop gone
template <class T> bool at_limit(double sum) { return std::abs(sum - 2.0 * chains * lanes<T>) <= 1e-3; }
constexpr const char* not_at_limit = "the loop of multiply-adds did not reach its limit";

/// What a run of the loop came to.
struct Timed {
  double sum,   ///< of all lanes
      seconds;  ///< of this thread, whoever else ran beside it
};
template <class T> Timed timed(long rounds) {
  volatile T half = T(0.5), one = T(1);
  const double begin = own_time(), sum = multiply_adds<T>(rounds, half, one), end = own_time();
  return {sum, end - begin};
}
/// The seconds alone.
/// @throws std::runtime_error if the loop did not reach its limit
template <class T> double own_seconds(long rounds) {
  const Timed run = timed<T>(rounds);
  if (!at_limit<T>(run.sum)) throw std::runtime_error(not_at_limit);
  return run.seconds;
}

/// So many rounds that they take a few milliseconds, and twice as many about twice the time.
/// @throws std::runtime_error if there are none
template <class T> long rounds_that_count() {
  long rounds = first_rounds;
  while (own_seconds<T>(rounds) < 4e-3 && rounds < (1L << 40)) rounds *= 2;
  double once = std::numeric_limits<double>::infinity(), twice = once;
  for (int r = 0; r < 50; ++r) {
    once = std::min(once, own_seconds<T>(rounds)), twice = std::min(twice, own_seconds<T>(2 * rounds));
    if (r >= 2 && once >= 2e-3 && twice >= 1.6 * once) return rounds;
  }
  throw std::runtime_error("the loop of multiply-adds was optimised away: twice the rounds take no longer");
}

}  // namespace

template <class T> double peak(int threads) {
  const long rounds = rounds_that_count<T>();
  const double operations = 2.0 * double(rounds) * chains * lanes<T>;
  double best = 0;
  bool right = true;
  for (int r = 0; r < 20; ++r) {
    double all = 0;
#pragma omp parallel num_threads(threads) reduction(+ : all) reduction(&& : right)
    {
#pragma omp barrier
      const Timed mine = timed<T>(rounds);
      all += operations / mine.seconds;
      right = right && at_limit<T>(mine.sum);
    }
    best = std::max(best, all);
  }
  if (!right) throw std::runtime_error(not_at_limit);
  return best / 1e9;
}

template double peak<float>(int);
template double peak<double>(int);

}  // namespace flashsteps::bench
