#pragma once
// In which mode a benchmark was built: one with assertions is not timed.

namespace flashsteps::bench {

/// Eigen's assertions check every index and cost a third of the speed.
/// @param program  its name
/// @return was it built with assertions on? Then one line on stderr says so
bool refuses_assertions(const char* program);

}  // namespace flashsteps::bench
