// The two orders of the backward pass, and what they move.
#include <algorithm>
#include <fmt/format.h>

#include "common/runner/report.hpp"
#include "common/runner/tile_choice.hpp"
#include "figures.hpp"
#include "steps/all.hpp"

namespace flashsteps::figures {
namespace {

constexpr Index grid = 4, tile = 2, dimension = 2;

/// What one thread block does, seen in a run on a grid of tiles: the second block of the outer loop.
struct Block {
  const Form* form;
  bool by_columns;                        // does it keep K and V?
  Index outer = 1;                        // the tile that it keeps
  std::vector<Index> loaded;              // the tiles that it loads in turn
  std::vector<Index> added[name_count];   // the tiles of a tensor that it adds to
  std::vector<Index> stored[name_count];  // the tiles of a tensor that it stores
};

class Recorder : public Observer {
 public:
  struct Event {
    Move move;
    Name name;
    Index tile;
  };
  void moved(Move move, Name name, Range rows, Index, Index) override { events.push_back({move, name, rows.begin / tile}); }
  void born(Index, Index) override {}
  void died(Index, Index) override {}
  std::vector<Event> events;
};

Block watch(const char* name) {
  constexpr Index n = grid * tile;
  std::vector<float> in(n * dimension, 1), o(n * dimension), lse(n), dq(n * dimension), dk(n * dimension), dv(n * dimension);
  const auto matrix = [](Name name, std::vector<float>& x) { return Slow<float>(name, x.data(), n, Index(x.size()) / n); };
  const Head<float> head{matrix(tensor::q, in), matrix(tensor::k, in), matrix(tensor::v, in), matrix(tensor::o, o), matrix(tensor::lse, lse), 1, tile, tile, n};
  const Gradients<float> gradients{matrix(tensor::d_o, in), {}, matrix(tensor::dq, dq), matrix(tensor::dk, dk), matrix(tensor::dv, dv)};
  Recorder recorder;
  Memory memory(std::numeric_limits<Index>::max(), &recorder);
  const Form& form = step06::step().form(name);
  form.in_float.backward({&head, 1}, {&gradients, 1}, memory);

  const auto loads = [&](Name x) {
    return std::count_if(recorder.events.begin(), recorder.events.end(), [&](auto& e) { return e.move == Move::load && e.name == x; });
  };
  Block block{&form, loads(tensor::k) < loads(tensor::q), 1, {}, {}, {}};
  const Name outer = block.by_columns ? tensor::k : tensor::q, inner = block.by_columns ? tensor::q : tensor::k;
  bool mine = false;
  for (const Recorder::Event& e : recorder.events) {
    if (e.move == Move::load && e.name == outer) mine = e.tile == block.outer;
    if (!mine) continue;
    if (e.move == Move::load && e.name == inner) block.loaded.push_back(e.tile);
    if (e.move == Move::atomic_add) block.added[int(e.name)].push_back(e.tile);
    if (e.move == Move::store) block.stored[int(e.name)].push_back(e.tile);
  }
  return block;
}

void panel(Figure& f, double x, const char* heading, const Block& block, const HeadSizes& sizes) {
  const double cell = 42, top = 132, gx = x + 58, far = cell * grid;
  const auto has = [](const std::vector<Index>& tiles, Index t) { return std::find(tiles.begin(), tiles.end(), t) != tiles.end(); };
  f.text(x, 72, "bold", heading);
  for (Index t = 0; t < grid; ++t) {
    const char* kept = t == block.outer ? "green-soft" : "rule";
    const char* in_turn = has(block.loaded, t) ? "orange-soft dash" : "rule";
    f.rect(gx + cell * double(t) + 2, top - 40, cell - 4, 32, block.by_columns ? kept : in_turn, 3);
    f.text(gx + cell * (double(t) + 0.5), top - 18, "small", fmt::format("K_{}", t), Anchor::middle);
    f.rect(x, top + cell * double(t) + 2, 50, cell - 4, block.by_columns ? in_turn : kept, 3);
    f.text(x + 25, top + cell * (double(t) + 0.5) + 5, "small", fmt::format("Q_{}", t), Anchor::middle);
  }
  for (Index i = 0; i < grid; ++i)
    for (Index j = 0; j < grid; ++j)
      f.rect(gx + cell * double(j), top + cell * double(i), cell, cell, (block.by_columns ? j : i) == block.outer ? "blue-soft" : "rule");
  const double along = cell * (double(block.outer) + 0.5), from = cell * double(block.loaded.front()) + 8, to = cell * double(block.loaded.back() + 1) - 6;
  if (block.by_columns) f.arrow({gx + along, top + from}, {gx + along, top + to}, "ink-line", "ink-area");
  else f.arrow({gx + from, top + along}, {gx + to, top + along}, "ink-line", "ink-area");

  // What leaves: tiles that are stored at the end, and atomic adds
  const auto out = [&](Name name, Index t, double ox, double oy, double w, double h, const char* label) {
    const bool added = has(block.added[int(name)], t);
    if (!added && !has(block.stored[int(name)], t)) return;
    f.rect(ox, oy, w, h, added ? "violet-soft dot" : "green-soft", 3);
    f.text(ox + w / 2, oy + h / 2 + 5, "small", fmt::format("{}_{}", label, t), Anchor::middle);
  };
  for (Index t = 0; t < grid; ++t) {
    out(tensor::dq, t, gx + far + 8, top + cell * double(t) + 2, 44, cell - 4, "dQ");
    out(tensor::dk, t, gx + cell * double(t) + 2, top + far + 8, cell - 4, 28, "dK");
    out(tensor::dv, t, gx + cell * double(t) + 2, top + far + 40, cell - 4, 28, "dV");
  }

  const Traffic total = block.form->traffic(sizes).total();
  double y = 468;
  const auto line = [&](const std::string& words, Index n, bool bold = false) {
    f.text(x, y, bold ? "small bold" : "small", words);
    f.text(x + 278, y, bold ? "small mono bold" : "small mono", with_commas(default_heads * n), Anchor::end);
    y += 25;
  };
  line("read", total.reads);
  line("written", total.writes);
  line(block.by_columns ? "added to dQ" : "added to dK and dV", total.atomics);
  f.line({x, y - 15}, {x + 278, y - 15}, "rule");
  y += 4;
  line("moved", moved(*block.form, sizes), true);
}

}  // namespace

Figure backward_orders() {
  const Block column = watch("column order"), row = watch("row order");
  HeadSizes sizes = default_sizes();
  sizes.br = sizes.bc = default_tile;
  const auto say = [&](const Block& block) {
    const Traffic t = block.form->traffic(sizes).total();
    return fmt::format("{} read, {} written, {} added", with_commas(default_heads * t.reads), with_commas(default_heads * t.writes),
                       with_commas(default_heads * t.atomics));
  };
  Figure f(
      "backward-orders", "Two orders of the backward pass",
      fmt::format(
          "Column order: a thread block keeps one column tile K_J, V_J with dK_J and dV_J on chip and goes down the row tiles; to every dQ_I it adds "
          "atomically. On the "
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
  f.lines(20, 604, "small muted",
          {fmt::format("Elements on the shipped input, {} heads, tiles of {} × {}.", default_heads, default_tile, default_tile),
           "An element added counts as one read and one written."});
  return f;
}

}  // namespace flashsteps::figures
