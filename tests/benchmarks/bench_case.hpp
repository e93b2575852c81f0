#pragma once
// What is timed: one form of a step on one problem.
#include "common/runner/problem.hpp"
#include "tests/benchmarks/bench_options.hpp"
#include <deque>

namespace flashsteps::bench {

/// A case, and what came out of it.
struct Case {
  const Step* step = nullptr;    ///< whose code it is
  const Form* form = nullptr;    ///< its form
  bool causal = false;           ///< is there a mask?
  Dtype dtype = Dtype::float32;  ///< float or double
  Index n = 0,                   ///< queries, and as many keys
      d = 0,                     ///< head dimension
      heads = 1,                 ///< query heads
      kv_heads = 1;              ///< heads of K and V
  int threads = 1;               ///< that run it
  const Case* before = nullptr;  ///< the case that it is laid beside: the step before on the same Q, K and V

  TileShape tiles{};                 ///< that it took
  std::vector<double> seconds = {};  ///< of each run
  double wall = 0;                   ///< seconds of the last run, with what is not timed
  Index moved = 0;                   ///< elements that moved, an atomic add being two
  long extra_bytes = 0;              ///< the most that it allocated at once
  std::string not_run = "";          ///< why it was skipped

  bool ran() const { return !seconds.empty(); }                      ///< @return was it timed?
  Index element() const { return dtype == Dtype::float64 ? 8 : 4; }  ///< @return bytes of a number
  double median() const;                                             ///< @return seconds of a run
  /// Operations that count: 4 N^2 d a head forward and 10 N^2 d backward; under a mask of the N^2 pairs those that it admits, N (N + 1) / 2.
  /// @return their number
  double flop() const;
  double gflops() const { return flop() / median() / 1e9; }  ///< @return billions of them a second
  /// @return bytes moved over N d numbers of a head
  double bytes_per_element() const { return double(moved * element()) / double(heads * n * d); }
  /// @return the name of the benchmark
  std::string name() const;
  /// @return what is the same for all N and d
  std::string series() const;
  /// Bytes of S and P, or of P, dP and dS, where a form keeps them, for as many pieces as are worked on at once.
  /// @return bytes, 0 for a form that keeps none
  double score_bytes() const;
};

/// All cases, those of one problem together and in the order of the ladder.
/// @param options  what is wanted
/// @return cases that do not move
std::deque<Case> make_cases(const BenchOptions& options);

}  // namespace flashsteps::bench
