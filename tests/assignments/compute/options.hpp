#pragma once
// The arguments of a program, and the number types that are linked into it.
#include "common/memory/range.hpp"
#include <limits>
#include <string>
#include <vector>

namespace flashsteps {

/// The arguments.
struct Options {
  std::string form, type, in, out;
  Index br = 4, bc = 4, heads = 1, kv_heads = 1, capacity = std::numeric_limits<Index>::max();
  bool causal = false;
  double scale = 1;
  double window = 0, softcap = 0, slope = 0;  ///< of variants, for `expected` alone
};

/// What main() knows of a type: how to run a form of it.
struct Type {
  std::string name;
  void (*run)(const Options&);
};
/// The types that are linked into this program.
std::vector<Type>& types();

/// The arguments, read.
/// @throws std::invalid_argument if they make no sense
Options read_options(int count, char** words);

}  // namespace flashsteps
