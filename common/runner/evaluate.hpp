#pragma once
// Runs a step on its input, and finds out what its program reports.
#include "common/runner/outcome.hpp"

namespace flashsteps {

/// Computes with every form of the step, compares, counts, times; writes the output files if a folder was asked for.
/// @throws BadInput with one line
Outcome evaluate(const Step& step, const Options& options);

}  // namespace flashsteps
