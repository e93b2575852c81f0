#pragma once
// The list of arguments, as data: what options.cpp takes, refuses and suggests, and what --help says, all come from it.

#include <string>
#include <string_view>
#include <vector>

#include "common/runner/options.hpp"

namespace flashsteps {

/// @{
/// A step that brings new arguments.
inline constexpr std::string_view kTiledStep = "04_fa1_tiled";
inline constexpr std::string_view kBackwardStep = "06_backward_recompute";
inline constexpr std::string_view kCausalStep = "07_causal_early_exit";
inline constexpr std::string_view kGqaStep = "08_gqa";
/// @}
/// Those that take --trace-tiles.
inline constexpr std::string_view kTileTraceSteps = "04, 05, 07 and 08";

/// One argument of the programs.
struct Argument {
  std::string group;           ///< its heading in the help
  std::string name;            ///< with its dashes
  std::string value;           ///< what stands for its value in the help; empty for a flag
  std::string help;            ///< what it means
  bool taken = true;           ///< whether the step takes it
  std::string_view since = {}; ///< the first step that takes it, when it is not every step
  std::string_view only = {};  ///< the steps that take it, when it is not all from one on
};

/// @return every argument of every step, in the order of the help, marked with whether this step takes it
/// @param step  the step
std::vector<Argument> arguments_of(const StepFeatures& step);

/// @return what --help prints: an example, what the step is, and the arguments that it takes
/// @param step  the step
std::string help_text(const StepFeatures& step);

/// @return of the arguments that are taken, the name that is most like `name`: one that contains it if there is one, then by edits
/// @param arguments  of the step
/// @param name       what was typed
std::string nearest(const std::vector<Argument>& arguments, std::string_view name);

}  // namespace flashsteps
