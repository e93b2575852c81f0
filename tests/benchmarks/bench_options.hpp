#pragma once
// The arguments of the benchmark of all steps.
#include "common/memory/range.hpp"
#include <optional>
#include <string>
#include <vector>

namespace flashsteps::bench {

/// What is timed.
struct BenchOptions {
  std::vector<Index> lengths{512, 1024, 2048, 4096, 8192, 16384};  ///< N: queries, and as many keys
  std::vector<Index> head_dims{32, 64, 128, 256};                  ///< d
  std::vector<int> threads;                                        ///< 1 and all, unless typed
  Index group = 1;                                                 ///< query heads that share K and V in step 08
  bool in_double = false;                                          ///< also step 05 in double
  double seconds = 3;                                              ///< a case that is estimated to take longer is skipped; infinity for none
  double least_seconds = 0.1;                                      ///< a case is repeated until so much time has passed
  std::optional<Index> memory;                                     ///< bytes that a case may take, instead of those that are free
  bool list = false;                                               ///< print the names of the cases and stop
  std::string folder = ".";                                        ///< gets bench.json and bench.svg
};

/// Reads what Google Benchmark has left of the arguments. With --help, prints the help.
/// @param argc,argv  the program's name first
/// @return the options, or nothing after --help
/// @throws BadInput with one line
std::optional<BenchOptions> parse_bench(int argc, const char* const* argv);

}  // namespace flashsteps::bench
