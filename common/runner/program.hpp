#pragma once
// The program of a step.
#include "common/runner/step.hpp"

namespace flashsteps {

/// Runs the program of a step: reads the arguments, computes, compares, reports.
/// @param steps      all steps, in order
/// @param number     the step whose program this is
/// @param argc,argv  as main got them
/// @return 0 equal, 1 not equal, 2 usage or bad input, 77 no GPU where one was asked for
int run_program(const std::vector<const Step*>& steps, int number, int argc, const char* const* argv);

}  // namespace flashsteps
