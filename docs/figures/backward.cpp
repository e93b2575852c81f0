// The two orders of the backward pass, and what they move.
#include <fmt/format.h>

#include "common/runner/report.hpp"
#include "common/runner/tile_choice.hpp"
#include "figures.hpp"
#include "steps/all.hpp"

namespace flashsteps::figures {
namespace {

constexpr Index grid = 4;

/// What stays, what is loaded and what is added, seen in the closed form: on a grid of 4 x 4 tiles, how often each tensor moves.
struct Order {
  const Form* form;
  Counts counts;
  HeadSizes sizes;
  Index times_read(Name name, Index size) const { return counts[name].reads / size; }
  Index times_added(Name name, Index size) const { return counts[name].atomics / size; }
};
Order order(const char* name) {
  const HeadSizes x{.nq = grid * 2, .nk = grid * 2, .d = 2, .dv = 2, .br = 2, .bc = 2, .diagonal = grid * 2};
  const Form& form = step06::step().form(name);
  return {&form, form.traffic(x), x};
}

void panel(Figure& f, double x, const char* heading, const Order& o, const HeadSizes& sizes) {
  const double cell = 42, top = 132, gx = x + 58;
  const bool by_columns = o.times_read(tensor::k, o.sizes.nk * o.sizes.d) == 1;  // K is read once: it stays
  f.text(x, 72, "bold", heading);
  const Index now = 1;
  for (Index t = 0; t < grid; ++t) {
    const bool mine = t == now, column = by_columns ? mine : true, row = by_columns ? true : mine;
    f.rect(gx + cell * double(t) + 2, top - 40, cell - 4, 32, column ? (by_columns ? "green-soft" : "orange-soft dash") : "rule", 3);
    f.text(gx + cell * (double(t) + 0.5), top - 18, "small", fmt::format("K_{}", t), Anchor::middle);
    f.rect(x, top + cell * double(t) + 2, 50, cell - 4, row ? (by_columns ? "orange-soft dash" : "green-soft") : "rule", 3);
    f.text(x + 25, top + cell * (double(t) + 0.5) + 5, "small", fmt::format("Q_{}", t), Anchor::middle);
  }
  for (Index i = 0; i < grid; ++i)
    for (Index j = 0; j < grid; ++j) f.rect(gx + cell * double(j), top + cell * double(i), cell, cell, (by_columns ? j : i) == now ? "blue-soft" : "rule");
  const double along = double(now) + 0.5, far = cell * grid;
  if (by_columns) f.arrow({gx + cell * along, top + 8}, {gx + cell * along, top + far - 6}, "ink-line", "ink-area");
  else f.arrow({gx + 8, top + cell * along}, {gx + far - 6, top + cell * along}, "ink-line", "ink-area");

  // What leaves: one tile at the end, and atomic adds from every tile
  const auto out = [&](double ox, double oy, double w, double h, const std::string& label, bool atomic) {
    f.rect(ox, oy, w, h, atomic ? "violet-soft dot" : "green-soft", 3);
    f.text(ox + w / 2, oy + h / 2 + 5, "small", label, Anchor::middle);
  };
  const auto both = [&](Index t, bool atomic) {
    out(gx + cell * double(t) + 2, top + far + 8, cell - 4, 28, fmt::format("dK_{}", t), atomic);
    out(gx + cell * double(t) + 2, top + far + 40, cell - 4, 28, fmt::format("dV_{}", t), atomic);
  };
  for (Index t = 0; t < grid; ++t) {
    if (by_columns) out(gx + far + 8, top + cell * double(t) + 2, 44, cell - 4, fmt::format("dQ_{}", t), true);
    else both(t, true);
  }
  if (by_columns) both(now, false);
  else out(gx + far + 8, top + cell * double(now) + 2, 44, cell - 4, fmt::format("dQ_{}", now), false);

  const Counts c = o.form->traffic(sizes);
  const Traffic total = c.total();
  double y = 468;
  const auto line = [&](const std::string& words, Index n, bool bold = false) {
    f.text(x, y, bold ? "small bold" : "small", words);
    f.text(x + 278, y, bold ? "small mono bold" : "small mono", with_commas(default_heads * n), Anchor::end);
    y += 25;
  };
  line("read", total.reads);
  line("written", total.writes);
  line(by_columns ? "added to dQ" : "added to dK and dV", total.atomics);
  f.line({x, y - 15}, {x + 278, y - 15}, "rule");
  y += 4;
  line("moved", moved(*o.form, sizes), true);
}

}  // namespace

Figure backward_orders() {
  const Order column = order("column order"), row = order("row order");
  HeadSizes sizes = default_sizes();
  sizes.br = sizes.bc = default_tile;
  const auto say = [&](const Order& o) {
    const Traffic t = o.form->traffic(sizes).total();
    return fmt::format("{} read, {} written, {} added", with_commas(default_heads * t.reads), with_commas(default_heads * t.writes), with_commas(default_heads * t.atomics));
  };
  Figure f("backward-orders", "Two orders of the backward pass",
           fmt::format("Column order: a thread block keeps one column tile K_J, V_J with dK_J and dV_J on chip and goes down the row tiles; to every dQ_I it adds atomically. On the "
                       "shipped input: {}. Row order: a block keeps one row tile Q_I, dO_I with dQ_I and goes along the column tiles; it adds atomically to every dK_J and "
                       "dV_J, two tensors: {}.",
                       say(column), say(row)),
           640);
  f.line({320, 58}, {320, 374}, "rule");
  f.line({320, 448}, {320, 566}, "rule");
  panel(f, 20, "column order: adds to dQ", column, sizes);
  panel(f, 342, "row order: adds to dK, dV", row, sizes);
  f.rect(20, 386, 28, 22, "green-soft", 3);
  f.text(56, 402, "small muted", "stays on chip");
  f.rect(190, 386, 28, 22, "orange-soft dash", 3);
  f.text(226, 402, "small muted", "loaded in turn");
  f.rect(370, 386, 28, 22, "violet-soft dot", 3);
  f.text(406, 402, "small muted", "atomic adds in slow memory");
  f.text(20, 430, "small muted", "With K_J goes V_J, with Q_I go dO_I, L_I and D_I (row order: O_I).");
  f.lines(20, 604, "small muted", {fmt::format("Elements on the shipped input, {} heads, tiles of {} × {}.", default_heads, default_tile, default_tile),
                                   "An element added counts as one read and one written."});
  return f;
}

}  // namespace flashsteps::figures
