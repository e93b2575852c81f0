#include "tests/benchmarks/bench_case.hpp"

#include "steps/all.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <functional>

namespace flashsteps::bench {
namespace {

/// What a form is laid beside, as its program does it.
struct Beside {
  const Form* form = nullptr;
  bool causal = false;
};
Beside beside(const Step& step, const Form& form, bool causal) {
  if (!step.before) return {};
  if (step.reference == Reference::step_before) {
    if (!form.backward()) return {&step.before->forms[step.beside], false};
    return form.name == "standard" ? Beside{} : Beside{&step.form("standard"), false};
  }
  // 07 beside what does not mask, 08 beside 07 with the same mask
  return {form.backward() ? step.before->backward() : &step.before->forward(), step.reference == Reference::repeated && causal};
}

/// The forms of a step, those first that others are laid beside.
std::vector<std::reference_wrapper<const Form>> standard_first(const Step& step) {
  std::vector<std::reference_wrapper<const Form>> forms(step.forms.begin(), step.forms.end());
  std::stable_partition(forms.begin(), forms.end(), [](const Form& form) { return form.name == "standard"; });
  return forms;
}

bool same_problem(const Case& a, const Case& b) { return a.dtype == b.dtype && a.threads == b.threads && a.d == b.d && a.n == b.n; }

}  // namespace

double Case::median() const {
  std::vector<double> sorted = seconds;
  std::sort(sorted.begin(), sorted.end());
  const std::size_t middle = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

double Case::flop() const {
  const double pairs = causal ? double(n) * double(n + 1) / 2 : double(n) * double(n);
  return (form->backward() ? 10 : 4) * pairs * double(d) * double(heads);
}

std::string Case::series() const {
  return fmt::format("{}/{}/{}/{}/{}/threads:{}", step->name, form->name, form->backward() ? "backward" : "forward", causal ? "causal" : "full", word(dtype),
                     threads);
}
std::string Case::name() const { return fmt::format("{}/d:{}/N:{}", series(), d, n); }

double Case::score_bytes() const {
  HeadSizes sizes{.nq = n, .nk = n, .d = d, .dv = d, .diagonal = n};
  const Counts counts = form->traffic(sizes);
  int matrices = 0;
  for (const Name name : {tensor::s, tensor::p, tensor::dp, tensor::ds}) matrices += counts[name].reads + counts[name].writes > 0;
  const Index pieces = std::min<Index>(form->pieces == Pieces::groups ? kv_heads : heads, threads);
  return double(matrices) * double(n) * double(n) * double(element()) * double(pieces);
}

std::deque<Case> make_cases(const BenchOptions& options) {
  std::deque<Case> cases;
  const auto add_problem = [&](Case c, bool only_five) {
    const std::size_t first = cases.size();
    for (const bool causal : {false, true})
      for (const bool backward : {false, true})
        for (const Step* step : all_steps())
          for (const Form& form : standard_first(*step)) {
            if (form.home != step->name || form.backward() != backward || (causal && !step->causal) || (only_five && step->number != 5)) continue;
            c.step = step, c.form = &form, c.causal = causal, c.before = nullptr;
            c.kv_heads = step->gqa ? c.heads / options.group : c.heads;
            const Beside other = beside(*step, form, causal);
            for (std::size_t x = first; other.form && x < cases.size(); ++x)
              if (cases[x].form->home == other.form->home && cases[x].form->name == other.form->name && cases[x].causal == other.causal &&
                  same_problem(cases[x], c))
                c.before = &cases[x];
            cases.push_back(c);
          }
  };
  for (const Dtype dtype : {Dtype::float32, Dtype::float64})
    for (const int threads : options.threads)
      for (const Index d : options.head_dims)
        for (const Index n : options.lengths) {
          if (dtype == Dtype::float64 && !options.in_double) continue;
          Case c;
          c.dtype = dtype, c.n = n, c.d = d, c.threads = threads;
          c.heads = tile_count(threads, options.group) * options.group;
          add_problem(c, dtype == Dtype::float64);
        }
  return cases;
}

}  // namespace flashsteps::bench
