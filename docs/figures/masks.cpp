// The three kinds of tile under a causal mask.
#include <fmt/format.h>

#include "figures.hpp"

namespace flashsteps::figures {
namespace {

struct Census {
  int of[3] = {0, 0, 0};
};

/// A mask of nq queries and nk keys, cut into tiles, with its corner at (x, y).
Census mask(Figure& f, double x, double y, double cell, Index nq, Index nk, Index br, Index bc) {
  const Index diagonal = nk - nq;
  static const char* const classes[] = {"panel", "blue-soft", "orange-soft"};  // skip, full, partial
  Census census;
  for (const Range i : tiles(nq, br))
    for (const Range j : tiles(nk, bc)) {
      const TileKind kind = kind_of_tile(i, j, diagonal);
      ++census.of[kind];
      const double left = x + cell * double(j.begin), top = y + cell * double(i.begin), w = cell * double(j.size()), h = cell * double(i.size());
      if (kind == skip) f.hatched(left + 2, top + 2, w - 4, h - 4);
      else f.rect(left + 2, top + 2, w - 4, h - 4, classes[kind], 4);
      for (Index r = i.begin; r < i.end; ++r)
        for (Index c = j.begin; c < j.end; ++c) {
          const Point at{x + cell * (double(c) + 0.5), y + cell * (double(r) + 0.5)};
          if (kind_of_tile({r, r + 1}, {c, c + 1}, diagonal) == full) f.circle(at, 6, kind == full ? "blue" : "orange");
          else f.circle(at, 2.5, "muted-area");
        }
    }
  for (const Range i : tiles(nq, br)) f.line({x - 6, y + cell * double(i.end)}, {x + cell * double(nk) + 6, y + cell * double(i.end)}, "muted-line");
  for (const Range j : tiles(nk, bc)) f.line({x + cell * double(j.end), y - 6}, {x + cell * double(j.end), y + cell * double(nq) + 6}, "muted-line");
  f.line({x - 6, y}, {x + cell * double(nk) + 6, y}, "muted-line");
  f.line({x, y - 6}, {x, y + cell * double(nq) + 6}, "muted-line");
  return census;
}

std::string counts(const Census& census) { return fmt::format("{} skip, {} full, {} partial", census.of[skip], census.of[full], census.of[partial]); }

/// How many of each kind, without a figure.
Census count(Index nq, Index nk, Index br, Index bc) {
  Census census;
  for (const Range i : tiles(nq, br))
    for (const Range j : tiles(nk, bc)) ++census.of[kind_of_tile(i, j, nk - nq)];
  return census;
}

}  // namespace

Figure causal_tiles() {
  const Census nine = count(9, 9, 3, 3), wide = count(2, 5, 2, 2), tall = count(5, 2, 2, 2);
  Figure f(
      "causal-tiles", "Three kinds of tile under a causal mask",
      fmt::format(
          "Query i sees key j if j is at most i + N_k - N_q. Each element is a large dot if it is seen and a small one if it is masked. 9 queries by 9 keys in "
          "tiles of 3 by 3: {}. 2 by 5 in tiles of 2 by 2: {}; the last query sees all 5 keys. 5 by 2 in tiles of 2 by 2: {}; the first 3 queries see no key.",
          counts(nine), counts(wide), counts(tall)),
      700);
  const double cell = 34;
  f.text(20, 74, "bold", "9 × 9 in tiles of 3 × 3");
  f.text(20, 96, "small muted", counts(nine));
  mask(f, 30, 116, cell, 9, 9, 3, 3);

  double y = 134;
  const auto entry = [&](const char* classes, const char* name, const std::vector<std::string>& words) {
    if (*classes) f.rect(362, y - 14, 44, 44, classes, 4);
    else f.hatched(362, y - 14, 44, 44);
    f.text(420, y + 2, "bold", name);
    f.lines(420, y + 24, "small muted", words, 20);
    y += 92;
  };
  entry("", "skip", {"no pair is seen:", "not loaded at all"});
  entry("orange-soft", "partial", {"some pairs are seen:", "computed and masked"});
  entry("blue-soft", "full", {"all pairs are seen:", "computed, no mask"});
  f.circle({372, y - 18}, 6, "blue");
  f.text(388, y - 12, "small", "seen");
  f.circle({462, y - 18}, 2.5, "muted-area");
  f.text(474, y - 12, "small", "masked");

  const double low = 508;
  f.text(20, 472, "bold", "2 × 5 in tiles of 2 × 2");
  f.text(20, 494, "small muted", counts(wide));
  mask(f, 30, low, cell, 2, 5, 2, 2);
  f.lines(20, low + 2 * cell + 34, "small muted", {"Query i sees the keys", "j ≤ i + N_k − N_q."}, 20);
  f.text(360, 472, "bold", "5 × 2 in tiles of 2 × 2");
  f.text(360, 494, "small muted", counts(tall));
  mask(f, 370, low, cell, 5, 2, 2, 2);
  f.lines(460, low + 36, "small muted", {"these 3 queries", "see no key:", "O = 0, L = −∞"}, 20);
  return f;
}

}  // namespace flashsteps::figures
