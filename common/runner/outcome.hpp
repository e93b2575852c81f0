#pragma once
// What a program found out, in numbers: the text for a person, the JSON and the ladder are written from it.
#include "common/attention/compare.hpp"
#include "common/runner/options.hpp"
#include "common/runner/problem.hpp"

namespace flashsteps {

/// A form after it ran. Counts are totals over batch and heads.
struct FormOutcome {
  std::string name, home;
  bool backward = false, tiled = false;
  TileShape tiles{};
  Traffic traffic{}, traffic_formula{};
  bool counted_is_formula = false;          // tensor by tensor, and the peak
  Index peak = 0, peak_formula = 0, capacity = 0;
  Flops flops{};
  double seconds = 0;
};

/// One result held to another.
struct Check {
  std::string form, against, of;            // "row order", "definition" or a step, "dq"
  Comparison comparison;
};

/// What is known of the traced row, for every head of numbers a double holds.
struct TraceOutcome {
  Index row = 0, head = 0;
  std::string form;
  std::vector<Moment<double>> moments;
};

/// The unsafe softmax of step 01 in half precision and in float.
struct UnsafeOutcome {
  Index rows = 0, nan_rows = 0, zero_rows = 0;
  double headroom = 0;
};

struct Outcome {
  const Step* step = nullptr;
  Dtype dtype = Dtype::float32;
  bool causal = false;
  Index batch = 0, heads = 0, kv_heads = 0, seq_q = 0, seq_k = 0, head_dim = 0, value_dim = 0;
  std::string source;
  double scale = 0;
  std::vector<FormOutcome> forms;           // the main form first
  std::optional<FormOutcome> before, before_backward;      // the forms that costs are compared with
  std::string before_name, before_backward_name;
  std::optional<FormOutcome> standard, standard_backward;  // what standard attention costs on this input, by formula
  std::vector<Check> checks;
  Index rows = 0, rows_checked = 0;         // query rows, of all heads, and how many of them were held to the definition
  std::vector<std::string> notes;
  std::optional<TraceOutcome> trace;
  std::optional<UnsafeOutcome> unsafe;

  /// The form of the step before, and the standard form, that a form is laid beside; nullptr if there is none.
  const FormOutcome* beside(const FormOutcome& form) const {
    const std::optional<FormOutcome>& other = form.backward ? before_backward : before;
    return other && (other->name != form.name || other->home != form.home) ? &*other : nullptr;
  }
  const std::string& beside_name(const FormOutcome& form) const { return form.backward ? before_backward_name : before_name; }
  const FormOutcome* beside_standard(const FormOutcome& form) const {
    const std::optional<FormOutcome>& other = form.backward ? standard_backward : standard;
    return other && other->name != form.name ? &*other : nullptr;
  }

  bool equal() const {
    for (const Check& check : checks)
      if (!check.comparison.equal()) return false;
    for (const FormOutcome& form : forms)
      if (!form.counted_is_formula) return false;
    return true;
  }
};

}  // namespace flashsteps
