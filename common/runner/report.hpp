#pragma once
// What a program prints.
#include "common/runner/outcome.hpp"

namespace flashsteps {

/// The report for a person.
/// @param next the program to run next, empty after the last
/// @param color are escape sequences for colour wanted?
std::string text_report(const Outcome& outcome, const std::string& next, bool color);

/// The report as one JSON object.
std::string json_report(const Outcome& outcome);

/// Elements moved: an atomic add counts as one read and one write.
Index moved(const Traffic& traffic);
/// A number of elements or operations with commas: 1,234,567.
std::string with_commas(Index n);
/// Seconds in the unit that fits: "1.23 ms".
std::string duration(double seconds);

}  // namespace flashsteps
