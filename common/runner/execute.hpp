#pragma once
// Runs one form of a step over all heads of a problem.
#include "common/runner/outcome.hpp"
#include "common/runner/key_parts.hpp"
#include "common/runner/resident.hpp"
#include <chrono>

namespace flashsteps {

/// Says which head of K and V a query head reads.
using HeadMap = Index (*)(Index h, Index heads, Index kv_heads);

/// All query heads, each with the head of K and V that `kv_head` gives it; the watched one watched.
/// @param p        the problem
/// @param out      its results
/// @param tiles    Br and Bc
/// @param kv_head  says which head of K and V a query head reads
/// @param watched  a query head of batch entry 0, or -1
/// @param watch    its watch
/// @return batch entry by batch entry
template <class T> std::vector<Head<T>> heads_of(const Problem<T>& p, Output<T>& out, TileShape tiles, HeadMap kv_head, Index watched, const Watch<T>& watch) {
  std::vector<Head<T>> heads;
  for (Index b = 0; b < p.batch(); ++b)
    for (Index h = 0; h < p.heads(); ++h) {
      heads.push_back(head_of(p, out, b, h, kv_head(h, p.heads(), p.kv_heads()), tiles));
      if (b == 0 && h == watched) heads.back().watch = watch;
    }
  return heads;
}

/// Every head of K and V with the query heads that read it.
/// @param p        the problem
/// @param out      its results
/// @param tiles    Br and Bc
/// @param kv_head  says which head of K and V a query head reads
/// @return batch entry by batch entry
template <class T> std::vector<Group<T>> groups_of(const Problem<T>& p, Output<T>& out, TileShape tiles, HeadMap kv_head) {
  std::vector<Group<T>> groups(p.batch() * p.kv_heads());
  for (Index b = 0; b < p.batch(); ++b)
    for (Index h = 0; h < p.heads(); ++h) {
      const Index kv = kv_head(h, p.heads(), p.kv_heads());
      Group<T>& group = groups[b * p.kv_heads() + kv];
      group.heads.push_back(head_of(p, out, b, h, kv, tiles));
      group.gradients.push_back(gradients_of(p, out, b, h, kv));
    }
  return groups;
}

/// Runs a form once: its outputs are NaN before, its traffic is added to `memory`.
/// @param form     the form
/// @param p        the problem
/// @param out      its results
/// @param tiles    Br and Bc
/// @param kv_head  says which head of K and V a query head reads
/// @param memory   has the capacity
/// @param watched  a query head of batch entry 0, or -1
/// @param watch    its watch
/// @return the seconds that it took, without what was done before the form began
template <class T>
double execute_once(const Form& form, const Problem<T>& p, Output<T>& out, TileShape tiles, HeadMap kv_head, Memory& memory, Index watched = -1, const Watch<T>& watch = {}) {
  const Algorithm<T>& algorithm = form.algorithm<T>();
  out.poison(form.backward());
  const auto start = std::chrono::steady_clock::now();
  if (form.backward()) {
    const std::vector<Group<T>> groups = groups_of(p, out, tiles, kv_head);
    if (form.by_keys && !groups.empty() && Index(groups.size()) < threads()) run_in_parts(groups, memory, form.name.c_str(), algorithm.backward);
    else run(groups, memory, form.name.c_str(), [&](const Group<T>& group, Memory& m) { algorithm.backward(group.heads, group.gradients, m); });
  } else {
    const std::vector<Head<T>> heads = heads_of(p, out, tiles, kv_head, watched, watch);
    run(form.pieces == Pieces::row_tiles ? row_tiles(heads) : heads, memory, form.name.c_str(), [&](const Head<T>& head, Memory& m) { algorithm.forward(head, m); });
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return std::max(0.0, seconds - memory.seconds_before() / threads());
}

/// The traffic of `count` pieces of a size, tensor by tensor.
/// @param all    of one piece
/// @param count  how many pieces
/// @return the product
inline Counts times(Counts all, Index count) {
  for (Traffic& t : all.of) t = {count * t.reads, count * t.writes, count * t.atomics};
  return all;
}
/// The closed form of a form's traffic over `count` pieces of a size.
/// @param form   the form
/// @param sizes  of one piece
/// @param count  how many pieces
/// @return elements, tensor by tensor
inline Counts traffic_formula(const Form& form, const HeadSizes& sizes, Index count) { return times(form.traffic(sizes), count); }
/// The sizes of one piece of a form, with its tiles.
/// @param form   the form
/// @param p      the problem
/// @param tiles  Br and Bc
/// @return the sizes
template <class T> HeadSizes sizes_of(const Form& form, const Problem<T>& p, TileShape tiles) {
  HeadSizes sizes = p.sizes(form.pieces);
  sizes.br = tiles.br, sizes.bc = tiles.bc;
  return sizes;
}

/// What a form costs by its closed forms.
/// @param form   the form
/// @param p      the problem
/// @param tiles  Br and Bc
/// @return an outcome in which nothing was counted or timed
template <class T> FormOutcome formula_of(const Form& form, const Problem<T>& p, TileShape tiles) {
  const HeadSizes sizes = sizes_of(form, p, tiles);
  const Index count = p.count(form.pieces);
  const Flops flops = form.flops(sizes);
  FormOutcome outcome{.name = form.name, .home = form.home, .backward = form.backward(), .tiled = form.tiled, .tiles = tiles};
  outcome.traffic_formula = traffic_formula(form, sizes, count).total();
  outcome.peak_formula = count == 0 ? 0 : form.on_chip(sizes);
  outcome.flops = {count * flops.matmul, count * flops.other};
  return outcome;
}

/// Runs a form `repeat` times, or, if that is 1 and it is short, up to five: the shortest time counts.
/// @param form      the form
/// @param p         the problem
/// @param out       its results
/// @param tiles     Br and Bc
/// @param capacity  elements that fit on chip
/// @param kv_head   says which head of K and V a query head reads
/// @param repeat    at least 1
/// @param watched   a query head of batch entry 0, or -1
/// @param moments   get what is known of one row in the first run; nullptr if nobody watches
/// @param row       that row
/// @return what it cost, counted and by closed form
template <class T>
FormOutcome execute(const Form& form, const Problem<T>& p, Output<T>& out, TileShape tiles, Index capacity, HeadMap kv_head, int repeat, Index watched = -1,
                    std::vector<Moment<T>>* moments = nullptr, Index row = 0) {
  FormOutcome outcome = formula_of(form, p, tiles);
  outcome.capacity = capacity;
  const Index room = form.tiled ? capacity : std::numeric_limits<Index>::max();
  double all = 0;
  for (int r = 0; r < repeat || (repeat == 1 && r < 5 && all < 0.2); ++r) {
    Memory memory(room);
    std::optional<ResidentGrowth> growth;
    if (r == 0) growth.emplace();
    const bool watching = moments && r == 0;
    const double seconds = execute_once(form, p, out, tiles, kv_head, memory, watching ? watched : -1, watching ? Watch<T>(*moments, row) : Watch<T>{});
    all += seconds;
    outcome.seconds = r == 0 ? seconds : std::min(outcome.seconds, seconds);
    if (r > 0) continue;
    outcome.extra_bytes = growth->most();
    outcome.traffic = memory.counts().total();
    outcome.peak = memory.peak();
    const Counts formula = traffic_formula(form, sizes_of(form, p, tiles), p.count(form.pieces));
    outcome.counted_is_formula = memory.counts() == formula && memory.peak() == outcome.peak_formula;
  }
  return outcome;
}

}  // namespace flashsteps
