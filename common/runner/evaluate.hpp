#pragma once
// Runs a step on its input, and finds out what its program reports.
#include "common/runner/outcome.hpp"

namespace flashsteps {

/// Computes with every form of the step, compares, counts, times; writes the output files if a folder was asked for.
/// @param step     the step
/// @param options  what was typed
/// @return what was found out
/// @throws BadInput with one line
Outcome evaluate(const Step& step, const Options& options);

/// The same of the step's kernels, on the device of this program: they are held to the definition, to the same algorithms on the CPU,
/// and to the kernels of the step before.
/// @param steps    all steps, to name those that have a kernel when this one has none
/// @param step     the step
/// @param options  what was typed
/// @return what was found out
/// @throws BadInput with one line
Outcome evaluate_kernels(const std::vector<const Step*>& steps, const Step& step, const Options& options);

}  // namespace flashsteps
