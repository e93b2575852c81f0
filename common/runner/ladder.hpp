#pragma once
// The ladder table: all steps on the shipped input, side by side.
#include "common/runner/step.hpp"

namespace flashsteps {

/// The program `ladder`: runs every step on the default input in float and prints the table.
///
///     ladder                   prints it
///     ladder --update FILE     writes it into FILE, between the lines <!-- ladder --> and <!-- /ladder -->
///     ladder --check FILE      compares the exact columns in FILE (elements, ratios, footprints, operations) with what the steps do
///
/// @param steps      all steps, in order
/// @param argc,argv  as main got them
/// @return 0, 1 if a step is not equal or a column in FILE is not what the steps do, 2 usage or a file that cannot be read
int run_ladder(const std::vector<const Step*>& steps, int argc, const char* const* argv);

}  // namespace flashsteps
