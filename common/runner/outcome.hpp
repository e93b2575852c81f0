#pragma once
// What a program found out, in numbers: the text for a person, the JSON and the ladder are written from it.
#include "common/attention/compare.hpp"
#include "common/cuda/device.hpp"
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

/// A kernel after it ran.
struct KernelOutcome {
  std::string name, form;                   // "fp32"; the form on the CPU that is the same algorithm, empty for none
  bool backward = false;
  TileShape tiles{};
  int threads = 0;                          // of a block
  Index shared_bytes = 0;                   // of a block
  Index bytes_of_element = 4;               // of Q, K, V and O
  Counts traffic_formula{};                 // elements
  double seconds = 0;
  std::string before_name = "";             // the kernel that it is laid beside, empty for none
  double before_seconds = 0;
  std::optional<gpu::Counters> traced = {};
  bool traced_is_formula = true;            // tensor by tensor, in bytes

  /// Bytes of one element of a tensor: statistics and gradients are always float.
  Index bytes_of(Name name) const { return name == tensor::q || name == tensor::k || name == tensor::v || name == tensor::o ? bytes_of_element : 4; }
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
  Device device = Device::cpu;
  std::string device_name;                  // of what runs the kernels, empty if none do
  bool causal = false;
  Index batch = 0, heads = 0, kv_heads = 0, seq_q = 0, seq_k = 0, head_dim = 0, value_dim = 0;
  std::string source;
  double scale = 0;
  std::vector<FormOutcome> forms;           // the main form first; beside kernels, the forms of the same algorithms
  std::vector<KernelOutcome> kernels;
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
    for (const KernelOutcome& kernel : kernels)
      if (!kernel.traced_is_formula) return false;
    return true;
  }
};

}  // namespace flashsteps
