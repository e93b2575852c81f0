#pragma once
// What a program prints.
#include "common/runner/outcome.hpp"

namespace flashsteps {

/// The report for a person.
/// @param outcome  what the program found out
/// @param next     the program to run next, empty after the last
/// @param color    are escape sequences for colour wanted?
/// @return lines
std::string text_report(const Outcome& outcome, const std::string& next, bool color);

/// The report as one JSON object.
/// @param outcome  what the program found out
/// @return the object and a newline
std::string json_report(const Outcome& outcome);

/// Elements moved: an atomic add counts as one read and one write.
/// @param traffic  elements
/// @return their number
Index moved(const Traffic& traffic);
/// @param n  elements or operations
/// @return the number with commas: 1,234,567
std::string with_commas(Index n);
/// @param seconds  a time
/// @return it in the unit that fits: "1.23 ms"
std::string duration(double seconds);

}  // namespace flashsteps
