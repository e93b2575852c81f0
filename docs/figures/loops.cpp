// The order in which steps 04 and 05 visit the tiles: both are run, and watched after every tile.
#include <fmt/format.h>

#include "figures.hpp"
#include "steps/all.hpp"

namespace flashsteps::figures {
namespace {

constexpr Index row_tiles = 4, column_tiles = 3, tile = 2, dimension = 2;

/// A tile that was visited, and what moved since the visit before.
struct Visit {
  Index i, j;
  Counts moved;
};
struct Run {
  std::vector<Visit> visits;
  Counts total;
};

Counts difference(Counts a, const Counts& b) {
  for (int n = 0; n < name_count; ++n) a.of[n].reads -= b.of[n].reads, a.of[n].writes -= b.of[n].writes;
  return a;
}

/// Notes every tile, and what the memory has counted since the one before.
class Visits : public TileObserver<float> {
 public:
  explicit Visits(const Memory& memory) : memory_(memory) {}
  void visited(Range i, Range j, const Tile<float>&, const Tile<float>&, const Tile<float>&) override {
    all.push_back({i.begin / tile, j.begin / tile, difference(memory_.counts(), before_)});
    before_ = memory_.counts();
  }
  std::vector<Visit> all;

 private:
  const Memory& memory_;
  Counts before_;
};

Run watch(const Form& form) {
  const Index nq = row_tiles * tile, nk = column_tiles * tile;
  const std::vector<float> q(nq * dimension, 1), k(nk * dimension, 1), v(nk * dimension, 1);
  std::vector<float> o(nq * dimension), lse(nq);
  Memory memory;
  Visits visits(memory);
  form.in_float.forward({{tensor::q, q.data(), nq, dimension},
                         {tensor::k, k.data(), nk, dimension},
                         {tensor::v, v.data(), nk, dimension},
                         {tensor::o, o.data(), nq, dimension},
                         {tensor::lse, lse.data(), nq, 1},
                         1,
                         tile,
                         tile,
                         nk,
                         Watch<float>(visits)},
                        memory);
  return {visits.all, memory.counts()};
}

/// How often a tensor was read and written, in multiples of its size.
std::string times(Index elements, Index size) {
  if (elements % size != 0) throw std::logic_error("a tensor was moved in part");
  return elements == 0 ? "–" : fmt::format("{}×", elements / size);
}

void panel(Figure& f, double x, const char* heading, const Run& run, std::size_t now) {
  constexpr double cell = 58, top = 132;
  const double gx = x + 52, right = gx + cell * column_tiles;
  const Visit& current = run.visits[now];
  // What was loaded for this tile is set in dashes, what was there before is not
  const auto part = [&](Name name) { return current.moved[name].reads > 0 ? "orange-soft dash" : "green-soft"; };
  f.text(x, 72, "bold", heading);
  for (Index j = 0; j < column_tiles; ++j) {
    f.rect(gx + cell * j + 3, top - 40, cell - 6, 32, j == current.j ? part(tensor::k) : "rule", 3);
    f.text(gx + cell * (j + 0.5), top - 18, "small", fmt::format("K_{},V_{}", j, j), Anchor::middle);
  }
  for (Index i = 0; i < row_tiles; ++i) {
    const double y = top + cell * i;
    f.rect(x, y + 3, 44, cell - 6, i == current.i ? part(tensor::q) : "rule", 3);
    f.text(x + 22, y + cell / 2 + 6, "small", fmt::format("Q_{}", i), Anchor::middle);
    // O of FlashAttention-1 comes from slow memory; that of FlashAttention-2 was born on chip
    f.rect(right + 8, y + 3, 44, cell - 6, i == current.i ? part(tensor::o) : "rule", 3);
    f.text(right + 30, y + cell / 2 + 6, "small", fmt::format("O_{}", i), Anchor::middle);
  }
  for (Index i = 0; i < row_tiles; ++i)
    for (Index j = 0; j < column_tiles; ++j) f.rect(gx + cell * j, top + cell * i, cell, cell, "rule");
  f.rect(gx + cell * current.j, top + cell * current.i, cell, cell, "blue-soft");
  std::vector<Point> path;
  for (const Visit& visit : run.visits) path.push_back({gx + cell * (visit.j + 0.5), top + cell * (visit.i + 0.5)});
  f.polyline(path, "muted-line");
  for (std::size_t n = 0; n < path.size(); ++n) {
    f.circle(path[n], 16, n == now ? "blue" : "empty");
    f.text(path[n].x, path[n].y + 6, n == now ? "bold on-solid" : "", fmt::format("{}", n + 1), Anchor::middle);
  }

  const Index nq = row_tiles * tile, nk = column_tiles * tile;
  const struct {
    const char* label;
    Name name;
    Index size;
  } rows[] = {
      {"Q", tensor::q, nq * dimension}, {"K, V", tensor::k, nk * dimension}, {"O", tensor::o, nq * dimension}, {"m, l", tensor::m, nq}, {"L", tensor::lse, nq}};
  double y = 438;
  f.text(x, y, "small bold", "whole tensor");
  f.text(x + 198, y, "small bold", "read", Anchor::end);
  f.text(x + 278, y, "small bold", "written", Anchor::end);
  f.line({x, y + 8}, {x + 278, y + 8}, "rule");
  for (const auto& row : rows) {
    y += 25;
    f.text(x, y, "small", row.label);
    f.text(x + 198, y, "small mono", times(run.total[row.name].reads, row.size), Anchor::end);
    f.text(x + 278, y, "small mono", times(run.total[row.name].writes, row.size), Anchor::end);
  }
}

std::string spoken(const Run& run) {
  std::string text;
  for (const Visit& visit : run.visits) text += fmt::format("{}({},{})", text.empty() ? "" : " ", visit.i, visit.j);
  return text;
}

}  // namespace

Figure loop_order() {
  const Run fa1 = watch(step04::step().main()), fa2 = watch(step05::step().main());
  Figure f(
      "loop-order", "The order in which the tiles are visited",
      fmt::format("Two grids of {} row tiles by {} column tiles with numbers in the order in which the steps visit them, as (row tile, column tile). Step 04, "
                  "FlashAttention-1, goes down the columns: {}. K and V of a column stay on chip and are read once; Q, O, m and l are loaded for every tile, "
                  "and O, m, l "
                  "stored. Step 05, FlashAttention-2, goes along the rows: {}. Q, O, m and l of a row stay on chip; K and V are read {} times.",
                  row_tiles, column_tiles, spoken(fa1), spoken(fa2), fa2.total[tensor::k].reads / (column_tiles * tile * dimension)),
      646);
  panel(f, 20, "04: column tiles outside", fa1, 5);
  panel(f, 342, "05: row tiles outside", fa2, 5);
  f.line({320, 58}, {320, 366}, "rule");
  f.line({320, 420}, {320, 570}, "rule");
  f.circle({30, 389}, 9, "blue");
  f.text(46, 394, "small muted", "now");
  f.rect(128, 378, 28, 22, "green-soft", 3);
  f.text(166, 394, "small muted", "was on chip, stays");
  f.rect(372, 378, 28, 22, "orange-soft dash", 3);
  f.text(410, 394, "small muted", "loaded for this tile");
  f.lines(20, 604, "small muted",
          {"Both steps were run and watched. In 04, O, m and l are also filled", "at the start, and m and l are read once more for L."});
  return f;
}

}  // namespace flashsteps::figures
