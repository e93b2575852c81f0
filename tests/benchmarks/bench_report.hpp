#pragma once
// What the benchmark prints and writes.
#include "tests/benchmarks/bench_case.hpp"
#include <map>

namespace flashsteps::bench {

/// GF/s of multiply-adds in registers, by type and number of threads.
using Peaks = std::map<std::pair<Dtype, int>, double>;

/// @param c  a case
/// @return what is the same for all forms of its problem
std::string problem_line(const Case& c);
/// @param c      a case
/// @param peaks  for the share
/// @return its row for a person: what it cost, or why it was not run
std::string case_line(const Case& c, const Peaks& peaks);

/// @param cases  those that ran, and those that were skipped
/// @param peaks  of the machine
/// @return one JSON object and a newline
std::string bench_json(const std::deque<Case>& cases, const Peaks& peaks);

/// Time and memory against N, of the cases in float on the fewest threads with d = 64, or the first d there is.
/// @param cases  those that ran
/// @return an SVG file; empty if nothing ran
std::string bench_svg(const std::deque<Case>& cases);

}  // namespace flashsteps::bench
