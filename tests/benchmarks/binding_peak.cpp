// The peak of bench, for compare.py.
#include "tests/benchmarks/peak.hpp"

#include <cstdint>
#include <exception>

/// Multiply-adds on registers alone, in float, on so many threads at once.
/// @param threads  at least 1
/// @return billions of operations a second of all threads together, two for a multiply-add; 0 if that cannot be measured
extern "C" [[gnu::visibility("default")]] double flashsteps_peak(std::int64_t threads) {
  try {
    return threads < 1 || threads > 4096 ? 0 : flashsteps::bench::peak<float>(int(threads));
  } catch (const std::exception&) {
    return 0;
  }
}
