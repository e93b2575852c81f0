#pragma once
// What a program found out, in numbers: the text for a person, the JSON and the ladder are written from it.
#include "common/attention/compare.hpp"
#include "common/cuda/device.hpp"
#include "common/runner/options.hpp"
#include "common/runner/problem.hpp"

namespace flashsteps {

/// A form after it ran. Counts are totals over batch and heads.
struct FormOutcome {
  std::string name,                 ///< of the form
      home;                         ///< the step whose code it is
  bool backward = false,            ///< does it compute gradients?
      tiled = false;                ///< does it take Br and Bc?
  TileShape tiles{};                ///< Br and Bc
  Traffic traffic{},                ///< elements, counted
      traffic_formula{};            ///< elements, by closed form
  bool counted_is_formula = false;  ///< tensor by tensor, and the peak
  Index peak = 0,                   ///< the most elements on chip at once, counted
      peak_formula = 0,             ///< the same by closed form
      capacity = 0;                 ///< elements that fit on chip
  Flops flops{};                    ///< operations, by closed form
  double seconds = 0;               ///< the shortest run
  /// Bytes that the first run took beyond inputs and outputs, as the system saw it; nothing where it does not say.
  std::optional<std::int64_t> extra_bytes = {};
};

/// A kernel after it ran.
struct KernelOutcome {
  std::string name,                          ///< "fp32"
      form;                                  ///< the form on the CPU that is the same algorithm, empty for none
  bool backward = false;                     ///< does it compute gradients?
  TileShape tiles{};                         ///< Br and Bc
  int threads = 0;                           ///< of a block
  Index shared_bytes = 0;                    ///< of a block
  Index bytes_of_element = 4;                ///< of Q, K, V and O
  Counts traffic_formula{};                  ///< elements
  double seconds = 0;                        ///< the shortest run
  std::string before_name = "";              ///< the kernel that it is laid beside, empty for none
  double before_seconds = 0;                 ///< the shortest run of that one
  std::optional<gpu::Counters> traced = {};  ///< what the tracer saw
  bool traced_is_formula = true;             ///< tensor by tensor, in bytes

  /// Bytes of one element of a tensor: statistics and gradients are always float.
  /// @param name  of the tensor
  /// @return 2 or 4
  Index bytes_of(Name name) const { return name == tensor::q || name == tensor::k || name == tensor::v || name == tensor::o ? bytes_of_element : 4; }
};

/// One result held to another.
struct Check {
  std::string form,       ///< "row order"
      against,            ///< "definition", or a step
      of;                 ///< "dq"
  Comparison comparison;  ///< error and budget
};

/// What is known of the traced row, for every head of numbers a double holds.
struct TraceOutcome {
  Index row = 0,                        ///< query row
      head = 0;                         ///< query head
  std::string form;                     ///< the form that was watched
  std::vector<Moment<double>> moments;  ///< in order
};

/// The unsafe softmax of step 01 in half precision and in float.
struct UnsafeOutcome {
  Index rows = 0,       ///< query rows
      nan_rows = 0,     ///< of them NaN in half
      zero_rows = 0;    ///< of them 0 in half
  double headroom = 0;  ///< of float: see UnsafeSoftmax
};

/// All that a program reports.
struct Outcome {
  const Step* step = nullptr;           ///< the step that ran
  Dtype dtype = Dtype::float32;         ///< the type that was computed in
  Device device = Device::cpu;          ///< where it was computed
  std::string device_name;              ///< of what runs the kernels, empty if none do
  bool causal = false;                  ///< was there a mask?
  Index batch = 0,                      ///< batch entries
      heads = 0,                        ///< query heads
      kv_heads = 0,                     ///< heads of K and V
      seq_q = 0,                        ///< Nq
      seq_k = 0,                        ///< Nk
      head_dim = 0,                     ///< d
      value_dim = 0;                    ///< dv
  std::string source;                   ///< where the numbers come from
  double scale = 0;                     ///< tau
  std::vector<FormOutcome> forms;       ///< the main form first; beside kernels, the forms of the same algorithms
  std::vector<KernelOutcome> kernels;   ///< those that ran
  std::optional<FormOutcome> before,    ///< the forward form that costs are compared with
      before_backward;                  ///< the backward form that costs are compared with
  std::string before_name,              ///< the step of the first
      before_backward_name;             ///< the step of the second
  std::optional<FormOutcome> standard,  ///< what standard attention costs on this input, by formula
      standard_backward;                ///< what its backward pass costs
  std::vector<Check> checks;            ///< results held to others
  Index rows = 0,                       ///< query rows of all heads
      rows_checked = 0;                 ///< how many of them were held to the definition
  std::vector<std::string> notes;       ///< what a person should know, a line each
  std::optional<TraceOutcome> trace;    ///< if a row was watched
  std::optional<UnsafeOutcome> unsafe;  ///< in step 01

  /// @param form  of this step
  /// @return the form of the step before that it is laid beside; nullptr if there is none
  const FormOutcome* beside(const FormOutcome& form) const {
    const std::optional<FormOutcome>& other = form.backward ? before_backward : before;
    return other && (other->name != form.name || other->home != form.home) ? &*other : nullptr;
  }
  /// @param form  of this step
  /// @return the step of that form
  const std::string& beside_name(const FormOutcome& form) const { return form.backward ? before_backward_name : before_name; }
  /// @param form  of this step
  /// @return the standard form that it is laid beside; nullptr if there is none
  const FormOutcome* beside_standard(const FormOutcome& form) const {
    const std::optional<FormOutcome>& other = form.backward ? standard_backward : standard;
    return other && other->name != form.name ? &*other : nullptr;
  }

  /// @return are all results inside their budgets, and all counts their closed forms?
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
