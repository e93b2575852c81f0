#pragma once
// A problem for kernels, and a kernel held to the definition, to its CPU version and to the kernel of the step before.
#include "common/runner/checks.hpp"
#include "common/runner/device_problem.hpp"
#include "steps/all.hpp"
#include "tests/case.hpp"
#include "tests/catch.hpp"
#include "tests/kernel_schedules.hpp"

namespace flashsteps {

struct KernelShape {
  Index nq, nk, d, dv;
  Index batch = 1, heads = 1, kv_heads = 1;
  bool causal = false;
  Layout layout = Layout::bhsd;
  int offset = 0;           // elements before each tensor in device memory
  float q_factor = 1;       // large: peaked logits
  std::optional<double> scale = {};
};
inline std::ostream& operator<<(std::ostream& out, const KernelShape& x) {
  return out << "batch " << x.batch << " heads " << x.heads << "/" << x.kv_heads << " seq " << x.nq << " x " << x.nk << " dim " << x.d << ", " << x.dv
             << (x.causal ? " causal" : "") << (x.layout == Layout::bshd ? " bshd" : "") << " offset " << x.offset << " q times " << x.q_factor;
}

/// Seeded normal numbers, as the type of the kernel holds them.
inline Problem<float> kernel_problem(const KernelShape& x, gpu::Element element, bool gradients, unsigned seed = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  const auto draw = [&](Index heads, Index rows, Index cols, float factor) {
    Tensor<float> t(x.batch, heads, rows, cols, x.layout, 0.0f);
    for (float& y : t.numbers) y = rounded(element, factor * float(normal(random)));
    return t;
  };
  Problem<float> p;
  p.q = draw(x.heads, x.nq, x.d, x.q_factor);
  p.k = draw(x.kv_heads, x.nk, x.d, 1);
  p.v = draw(x.kv_heads, x.nk, x.dv, 1);
  p.gradients = gradients;
  if (gradients) p.d_o = draw(x.heads, x.nq, x.dv, 1);
  p.scale = float(x.scale.value_or(1 / std::sqrt(double(x.d))));
  p.causal = x.causal;
  return p;
}

/// All rows are held to the definition.
inline RowSample all_rows(const Problem<float>& p) {
  RowSample sample;
  for (Index i = 0; i < p.seq_q(); ++i) sample.rows.push_back(i);
  return sample;
}

/// The compiled shapes of a kernel that take these dimensions and that this device can run: a card without tensor cores, or with little
/// shared memory, leaves some out.
inline std::vector<const gpu::Compiled*> compiled_for(const Kernel& kernel, gpu::Element element, Index d, Index dv) {
  std::vector<const gpu::Compiled*> all;
  const gpu::Compiled* least = find_compiled(kernel.compiled, element, d, dv);
  for (const gpu::Compiled& c : kernel.compiled)
    if (least && c.element == element && c.dim == least->dim && gpu::device() && c.capability <= gpu::device()->capability && c.shared_bytes <= gpu::device()->shared_bytes)
      all.push_back(&c);
  return all;
}
inline std::vector<gpu::Element> elements_of(const Kernel& kernel) {
  return kernel.tensor_cores ? std::vector{gpu::Element::half, gpu::Element::bfloat16} : std::vector{gpu::Element::float32};
}
/// The step's results on the CPU by a form, with tiles of its kernel: O and L, or the gradients beside O and L in `out`.
inline void run_on_cpu(const Step& step, const Form& form, const Problem<float>& p, TileShape tiles, Output<float>& out) {
  Memory memory;
  execute_once(form, p, out, tiles, step.kv_head, memory);
}
inline Output<float> forward_on_cpu(const Step& step, const Problem<float>& p) {
  Output<float> out(p);
  forward_on_cpu(step, p, out);
  return out;
}

/// What is wrong, in words; empty if nothing is.
using Complaints = std::vector<std::string>;
inline void hold(const Complaints& complaints) {
  for (const std::string& complaint : complaints) UNSCOPED_INFO(complaint);
  CHECK(complaints.empty());
}

/// Two results of the same problem, each off by at most its budget.
inline Complaints distance_complaints(const std::string& what, const Output<float>& a, const Output<float>& b, const Judgement<float>& budget, bool backward) {
  Complaints complaints;
  const auto compare = [&](const char* name, const Tensor<float>& x, const Tensor<float>& y, Result result) {
    const double error = largest_distance(x, y, result == Result::lse ? Spoiled::same : Spoiled::either), most = 2 * budget.of(result).budget;
    if (!(error <= most)) complaints.push_back(what + ", " + name + ": " + std::to_string(error) + " of " + std::to_string(most));
  };
  if (backward) {
    compare("dq", a.dq, b.dq, Result::dq), compare("dk", a.dk, b.dk, Result::dk), compare("dv", a.dv, b.dv, Result::dv);
  } else {
    compare("o", a.o, b.o, Result::o), compare("lse", a.lse, b.lse, Result::lse);
  }
  return complaints;
}
inline Complaints budget_complaints(const Judgement<float>& judgement, bool backward) {
  Complaints complaints;
  for (const Result result : backward ? std::vector{Result::dq, Result::dk, Result::dv} : std::vector{Result::o, Result::lse}) {
    const Comparison c = judgement.of(result);
    if (!c.equal()) complaints.push_back(std::string("the definition, ") + result_text[int(result)] + ": " + std::to_string(c.max_error) + " of " + std::to_string(c.budget));
  }
  return complaints;
}

inline bool same_bits(const Output<float>& a, const Output<float>& b, bool backward) {
  if (!backward) return same_bits(a.o.numbers, b.o.numbers) && same_bits(a.lse.numbers, b.lse.numbers);
  return same_bits(a.dq.numbers, b.dq.numbers) && same_bits(a.dk.numbers, b.dk.numbers) && same_bits(a.dv.numbers, b.dv.numbers);
}

/// Runs a kernel in the schedules and holds it to everything that it must equal.
inline Complaints kernel_complaints(const Step& step, const Kernel& kernel, const gpu::Compiled& compiled, const KernelShape& shape, Schedules schedules, unsigned seed = 1) {
  Complaints all;
  const auto add = [&](const Complaints& more) { all.insert(all.end(), more.begin(), more.end()); };
  const Problem<float> p = kernel_problem(shape, compiled.element, kernel.backward, seed);
  const Output<float> forward = kernel.backward ? forward_on_cpu(step, p) : Output<float>(p);
  std::optional<Output<float>> first;
  const Rounding<float> type = rounding(compiled.element);
  Judgement<float> judgement(type);
  in_schedules(schedules, [&] {
    Output<float> out = forward;
    run_kernel(kernel, compiled, p, out, shape.offset);
    if (first && !kernel.atomics) {  // without float atomics every bit is the same
      if (!same_bits(out, *first, kernel.backward)) all.push_back("other bits in another schedule");
      return;
    }
    judgement = judge(p, out, kernel.backward, all_rows(p), type);
    add(budget_complaints(judgement, kernel.backward));
    if (!first) first = std::move(out);
  });

  if (!kernel.form.empty()) {
    Output<float> cpu = forward;
    run_on_cpu(step, step.form(kernel.form), p, {compiled.br, compiled.bc}, cpu);
    add(distance_complaints("the CPU version", *first, cpu, judgement, kernel.backward));
  }
  const Kernel* before = kernel_before(step, kernel).first;
  if (!before || (shape.causal && step.number <= 7)) return all;
  const bool repeated = shape.heads != shape.kv_heads;
  const Problem<float> q = repeated ? repeat_heads(p) : p;
  Output<float> out = kernel.backward ? forward_on_cpu(*step.before, q) : Output<float>(q);
  const gpu::Element element = before->tensor_cores ? compiled.element : gpu::Element::float32;
  const std::vector<const gpu::Compiled*> shapes = compiled_for(*before, element, shape.d, shape.dv);
  if (shapes.empty() && gpu::is_for_gpu()) return all;
  run_kernel(*before, *shapes.at(0), q, out);
  if (kernel.backward && repeated) {
    Output<float> summed(p);
    sum_groups(out, p, summed);
    out = std::move(summed);
  }
  add(distance_complaints("the kernel of the step before", *first, out, judgement, kernel.backward));
  return all;
}

inline void check_kernel(const Step& step, const Kernel& kernel, const gpu::Compiled& compiled, const KernelShape& shape, Schedules schedules, unsigned seed = 1) {
  INFO(step.name << ", " << kernel.name << ", tile " << compiled.br << " x " << compiled.bc << ", dim " << compiled.dim << ", element " << int(compiled.element)
                 << ": " << shape << ", seed " << seed);
  hold(kernel_complaints(step, kernel, compiled, shape, schedules, seed));
}

/// The shapes that every kernel is tried with: at least 64.
inline std::vector<KernelShape> kernel_shapes(const Step& step) {
  std::vector<KernelShape> all;
  for (const CaseShape& x : fixed_shapes()) all.push_back({.nq = x.nq, .nk = x.nk, .d = x.d, .dv = x.dv});
  for (const Index n : {1, 15, 16, 17, 31, 32, 33, 63, 64, 65}) all.push_back({.nq = n, .nk = n, .d = 16, .dv = 16});
  for (const Index d : {1, 3, 20, 33, 63, 65, 72, 96, 127}) all.push_back({.nq = 40, .nk = 37, .d = d, .dv = d});                        // C15
  all.push_back({.nq = 19, .nk = 50, .d = 128, .dv = 128});
  all.push_back({.nq = 50, .nk = 19, .d = 200, .dv = 200});
  all.push_back({.nq = 33, .nk = 70, .d = 256, .dv = 256});
  all.push_back({.nq = 33, .nk = 40, .d = 256, .dv = 1});
  all.push_back({.nq = 20, .nk = 33, .d = 1, .dv = 256});
  all.push_back({.nq = 20, .nk = 33, .d = 8, .dv = 129});
  for (const Index d : {1, 20, 33, 64, 72}) {
    all.push_back({.nq = 21, .nk = 35, .d = d, .dv = d, .batch = 2, .heads = 3, .kv_heads = 3, .layout = Layout::bshd});
    all.push_back({.nq = 21, .nk = 35, .d = d, .dv = d, .batch = 2, .heads = 2, .kv_heads = 2, .offset = 1});
  }
  all.push_back({.nq = 100, .nk = 130, .d = 64, .dv = 64});
  all.push_back({.nq = 130, .nk = 100, .d = 64, .dv = 64});
  all.push_back({.nq = 8, .nk = 256, .d = 64, .dv = 64, .q_factor = 20});  // a long row with peaked logits
  all.push_back({.nq = 40, .nk = 40, .d = 24, .dv = 24, .scale = 0});
  all.push_back({.nq = 40, .nk = 40, .d = 24, .dv = 24, .scale = -0.7});
  if (step.causal) {
    const std::size_t n = all.size();
    for (std::size_t i = 0; i < n; ++i) {
      all.push_back(all[i]);
      all.back().causal = true;
    }
  }
  if (step.gqa)
    for (std::size_t i = 0; i < all.size(); ++i) {
      const Index group = Index(i % 4);
      all[i].heads = std::max<Index>(1, group * all[i].kv_heads);
      if (group == 0) all[i].heads = all[i].kv_heads;
    }
  return all;
}
/// Twelve of them: tails, rows that see no key, several tiles, odd addresses.
inline std::vector<KernelShape> few_kernel_shapes(const Step& step) {
  std::vector<KernelShape> all{{.nq = 0, .nk = 5, .d = 3, .dv = 2},
                               {.nq = 5, .nk = 0, .d = 3, .dv = 2},
                               {.nq = 1, .nk = 1, .d = 1, .dv = 1},
                               {.nq = 33, .nk = 31, .d = 32, .dv = 32},
                               {.nq = 17, .nk = 65, .d = 20, .dv = 33},
                               {.nq = 65, .nk = 17, .d = 33, .dv = 20},
                               {.nq = 70, .nk = 70, .d = 8, .dv = 8, .batch = 2, .heads = 2, .kv_heads = 2},
                               {.nq = 37, .nk = 101, .d = 16, .dv = 16, .batch = 2, .heads = 2, .kv_heads = 2, .layout = Layout::bshd},
                               {.nq = 40, .nk = 20, .d = 64, .dv = 64},
                               {.nq = 20, .nk = 40, .d = 72, .dv = 72, .offset = 1},
                               {.nq = 64, .nk = 64, .d = 64, .dv = 64},
                               {.nq = 18, .nk = 34, .d = 130, .dv = 140}};
  for (KernelShape& x : all) {
    x.causal = step.causal;
    if (step.gqa) x.heads = 2 * x.kv_heads;
  }
  return all;
}

}  // namespace flashsteps
