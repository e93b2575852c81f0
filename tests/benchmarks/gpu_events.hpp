#pragma once
// The card, and how long kernels take on it.
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace flashsteps {

/// What the card says of itself. 0: it does not say.
struct Card {
  std::string name;
  int capability, processors;          // 80 for 8.0; multiprocessors
  double clock_ghz;                    // the highest of the multiprocessors
  double memory_gb_per_s;              // from the clock and the width of its memory
  std::size_t memory_bytes, l2_bytes;
  int driver, runtime;                 // 13000 for CUDA 13.0
};
/// @throws std::runtime_error where there is none
Card card();

/// Milliseconds of each of several runs, between two events on the card, after one run that does not count. Before each run as much is written
/// as overflows the L2 cache. Runs until `budget` milliseconds have passed, but at least 3 and at most 30 times.
std::vector<double> milliseconds(const std::function<void()>& run, double budget = 500);

/// After a call that failed, so that the next one does not report its error.
void forget_error();

}  // namespace flashsteps
