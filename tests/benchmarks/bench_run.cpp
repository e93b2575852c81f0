#include "tests/benchmarks/bench_run.hpp"

#include "common/runner/checks.hpp"
#include "common/runner/report.hpp"
#include "steps/all.hpp"
#include "tests/benchmarks/machine.hpp"
#include "tests/heap.hpp"

#include <chrono>
#include <fmt/format.h>
#include <omp.h>
#include <set>

namespace flashsteps::bench {
namespace {

constexpr Index estimate_n = 512;  ///< where nothing of a series was run yet, its time is estimated from this length
constexpr Index check_n = 100;     ///< two tiles and a ragged one

/// Seeded numbers for a step that takes everything: gradients, a mask, groups.
template <class T> Problem<T> make_numbers(Index n, Index d, Index heads, Index kv_heads) {
  Options options;
  options.seed = 1;
  options.heads = heads, options.kv_heads = kv_heads, options.seq_q = n, options.head_dim = d;
  return make_problem<T>(step08::step(), options);
}

template <class T> double execute_step(const Step& step, const Form& form, const Problem<T>& p, Output<T>& out, Memory& memory, TileShape tiles) {
  return execute_once(form, p, out, tiles, step.kv_head, memory);
}

/// O and L, which a backward pass needs, from step 08.
template <class T> void make_o(const Problem<T>& p, Output<T>& out) {
  const Step& step = step08::step();
  Memory memory;
  execute_step(step, step.forward(), p, out, memory, default_tiles(step, step.forward(), p).tiles);
}

/// Elements that a form may hold on chip.
Index room(const Form& form, const TileChoice& choice) { return form.tiled ? choice.capacity : std::numeric_limits<Index>::max(); }

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

std::string gib(double bytes) { return fmt::format("{:.3g} GiB", bytes / (1 << 30)); }

}  // namespace

template <class T> TileChoice default_tiles(const Step& step, const Form& form, const Problem<T>& p) {
  Options options;
  options.dtype = std::is_same_v<T, double> ? Dtype::float64 : Dtype::float32;
  return tiles_of(step, form, p, options, cache_bytes() / Index(sizeof(T)));  // the chip is the cache that the tiles live in
}

template <class T> Runner::Numbers<T>& Runner::numbers(const Case& c, bool estimate) {
  Kept<T>& all = kept<T>();
  const int place = estimate ? 2 : c.heads != c.kv_heads ? 1 : 0;
  const auto found = all.find(place);
  if (found != all.end()) {
    const Problem<T>& p = found->second.p;
    if (p.seq_q() == c.n && p.head_dim() == c.d && p.heads() == c.heads && p.kv_heads() == c.kv_heads) return found->second;
    all.erase(found);
  }
  Problem<T> p = make_numbers<T>(c.n, c.d, c.heads, c.kv_heads);
  Output<T> out(p);
  return all.emplace(place, Numbers<T>{std::move(p), std::move(out)}).first->second;
}

template <class T> double Runner::once_in(Case& c, bool estimate) {
  Numbers<T>& x = numbers<T>(c, estimate);
  x.p.causal = c.causal;
  if (c.form->backward() && x.o_of_mask != c.causal) make_o(x.p, x.out);
  const TileChoice choice = default_tiles(*c.step, *c.form, x.p);
  Memory memory(room(*c.form, choice));
  double seconds = 0;
  const double start = now();
  c.extra_bytes = extra_bytes([&] { seconds = execute_step(*c.step, *c.form, x.p, x.out, memory, choice.tiles); });
  c.wall = now() - start;
  c.tiles = choice.tiles;
  c.moved = moved(memory.counts().total());
  x.o_of_mask = c.causal;
  return seconds;
}

double Runner::run_once(Case& c, bool estimate) {
  omp_set_num_threads(c.threads);
  const double seconds = c.dtype == Dtype::float64 ? once_in<double>(c, estimate) : once_in<float>(c, estimate);
  known_[c.series()] = {c.flop(), c.wall};
  return seconds;
}
double Runner::once(Case& c) { return run_once(c, false); }

std::string Runner::why_not(const Case& c) {
  // Inputs and outputs, twice where groups share K and V
  const double tensors = 9.0 * double(c.heads * c.n * c.d) * double(c.element()) * (c.heads == c.kv_heads ? 1 : 2), scores = c.score_bytes();
  const double there = double(options_.memory.value_or(free_memory()));
  if (!(scores + tensors <= there))
    return fmt::format("would not fit: {} of scores and {} of inputs and outputs, {} are free", gib(scores), gib(tensors), gib(there));
  if (!(options_.seconds < std::numeric_limits<double>::infinity())) return "";
  if (!known_.contains(c.series()) && c.n > estimate_n) {
    Case small = c;
    small.n = estimate_n;
    for (int r = 0; r < 2; ++r) run_once(small, true);
  }
  const auto known = known_.find(c.series());
  if (known == known_.end()) return "";
  const double estimate = known->second.second * c.flop() / known->second.first;
  if (estimate <= options_.seconds) return "";
  return fmt::format("would take about {}, and --seconds is {:g}", duration(estimate), options_.seconds);
}

namespace {

/// Holds one form to the definition on a small problem.
/// @param c      the form, the mask, d, and how many heads share K and V
/// @param wrong  gets a line for each result that is outside of its budget
template <class T> void check(const Case& c, std::vector<std::string>& wrong) {
  Problem<T> p = make_numbers<T>(check_n, c.d, 2 * c.heads / c.kv_heads, 2);
  p.causal = c.causal;
  if (!c.step->gqa && p.heads() != p.kv_heads()) p = repeat_heads(p);
  Output<T> out(p);
  if (c.form->backward()) make_o(p, out);
  const TileChoice choice = default_tiles(*c.step, *c.form, p);
  Memory memory(room(*c.form, choice));
  execute_step(*c.step, *c.form, p, out, memory, choice.tiles);
  const RowSample rows = sample_rows(p.seq_q(), p.heads(), 1, std::numeric_limits<double>::infinity(), 1);
  const Judgement<T> judgement = judge(p, out, c.form->backward(), rows);
  const std::vector<Result> results =
      c.form->backward() ? std::vector<Result>{Result::dq, Result::dk, Result::dv} : std::vector<Result>{Result::o, Result::lse};
  for (const Result result : results) {
    const Comparison comparison = judgement.of(result);
    if (comparison.equal()) continue;
    wrong.push_back(fmt::format("{}, d {}: {} differs from the definition by {:.3g}, which may be {:.3g}", c.series(), c.d, result_text[int(result)],
                                comparison.max_error, comparison.budget));
  }
}

}  // namespace

std::vector<std::string> Runner::wrong_results(const std::deque<Case>& cases) {
  std::vector<std::string> wrong;
  std::set<std::pair<std::string, Index>> done;
  for (const Case& c : cases) {
    if (!done.emplace(c.series(), c.d).second) continue;
    omp_set_num_threads(c.threads);
    if (c.dtype == Dtype::float64) check<double>(c, wrong);
    else check<float>(c, wrong);
  }
  return wrong;
}

template TileChoice default_tiles(const Step&, const Form&, const Problem<float>&);
template TileChoice default_tiles(const Step&, const Form&, const Problem<double>&);

}  // namespace flashsteps::bench
