#pragma once
// Runs cases through the runner, as the programs of the steps do.
#include "common/runner/execute.hpp"
#include "common/runner/tile_choice.hpp"
#include "tests/benchmarks/bench_case.hpp"
#include <array>
#include <map>
#include <optional>

namespace flashsteps::bench {

/// Tiles of a form as its program chooses them when nothing is typed.
/// @param step   the step
/// @param form   one of its forms
/// @param p      the problem
/// @return Br, Bc and the capacity
template <class T> TileChoice default_tiles(const Step& step, const Form& form, const Problem<T>& p);

/// Runs cases. What does not depend on the form - Q, K, V, dO, and O and L for a backward pass - is made once for a problem.
class Runner {
 public:
  /// @param options  say what a case may cost
  explicit Runner(const BenchOptions& options) : options_(options) {}

  /// Holds every form to the definition, on small problems of the head dimensions and masks that are timed.
  /// @param cases  what will be timed
  /// @return a line for each result that is outside of its budget
  static std::vector<std::string> wrong_results(const std::deque<Case>& cases);

  /// @param c  a case
  /// @return why it is not run, with the numbers; empty if it is
  std::string why_not(const Case& c);

  /// Runs a case once and keeps what it cost.
  /// @param c  gets tiles, traffic, memory and the wall time
  /// @return the seconds that count
  double once(Case& c);

 private:
  /// Numbers in T of one shape.
  template <class T> struct Numbers {
    Problem<T> p;
    Output<T> out;
    std::optional<bool> o_of_mask = {};  // does `out` have O and L, and under which mask?
  };
  /// The last shapes: those timed without and with groups, and the one that times are estimated from.
  template <class T> using Kept = std::map<int, Numbers<T>>;

  BenchOptions options_;
  Kept<float> in_float_;
  Kept<double> in_double_;
  std::map<std::string, std::pair<double, double>> known_;  // by series: operations and wall time of a run

  template <class T> Kept<T>& kept() {
    if constexpr (std::is_same_v<T, float>) return in_float_;
    else return in_double_;
  }
  template <class T> Numbers<T>& numbers(const Case& c, bool estimate);
  template <class T> double once_in(Case& c, bool estimate);
  double run_once(Case& c, bool estimate);
};

}  // namespace flashsteps::bench
