// The tiles of a causal mask (math 7.1 to 7.3): which are skipped, which need no mask, and how many there are of each, against
// every pair of a query and a key, one by one.
#include "tests/catch.hpp"
#include "tests/memory_formulas.hpp"
#include "tests/steps.hpp"
#include <cstdio>

namespace flashsteps {
namespace {

using formula::Sizes;

struct TileCounts {
  Index skip = 0, full = 0, partial = 0;
  bool operator==(const TileCounts&) const = default;
  Index& of(TileKind kind) { return kind == TileKind::skip ? skip : kind == TileKind::full ? full : partial; }
};
std::ostream& operator<<(std::ostream& out, const TileCounts& c) { return out << c.skip << "/" << c.full << "/" << c.partial; }

/// By kind_of_tile.
TileCounts by_kind(const Sizes& x, Index diagonal) {
  TileCounts c;
  for (const Range i : tiles(x.nq, x.br))
    for (const Range j : tiles(x.nk, x.bc)) ++c.of(kind_of_tile(i, j, diagonal));
  return c;
}
/// By n_vis and n_full.
TileCounts by_formula(const Sizes& x, Index diagonal) {
  TileCounts c;
  for (Index I = 0; I < x.tr(); ++I) {
    const Index n_vis = formula::visited(x, I, diagonal), n_full = formula::unmasked(x, I, diagonal);
    c.full += n_full, c.partial += n_vis - n_full, c.skip += x.tc() - n_vis;
  }
  return c;
}
TileCounts square(Index n, Index br, Index bc) { return by_kind({n, n, 1, 1, br, bc}, 0); }

/// By looking at every pair.
TileKind look(Range i, Range j, Index diagonal) {
  Index seen = 0;
  for (Index r = i.begin; r < i.end; ++r)
    for (Index c = j.begin; c < j.end; ++c) seen += c <= r + diagonal;
  return seen == 0 ? TileKind::skip : seen == i.size() * j.size() ? TileKind::full : TileKind::partial;
}

/// Calls f(sizes, diagonal) for all small sizes, with the diagonal of a causal mask, without a mask, and with diagonals between.
template <class F> void for_small_sizes(F f) {
  for (Index nq = 0; nq <= 9; ++nq)
    for (Index nk = 0; nk <= 9; ++nk)
      for (Index br = 1; br <= nq + 2; ++br)
        for (Index bc = 1; bc <= nk + 2; ++bc)
          for (Index diagonal = -nq - 1; diagonal <= nk + 1; ++diagonal) f(Sizes{nq, nk, 1, 1, br, bc}, diagonal);
}
std::string text(const Sizes& x, Index diagonal) {
  std::string s = "nq nk br bc diagonal";
  for (const Index n : {x.nq, x.nk, x.br, x.bc, diagonal}) s += " " + std::to_string(n);
  return s;
}
std::string fixed(double x) {
  char text[64];
  std::snprintf(text, sizeof text, "%.2f", x);
  return text;
}

}  // namespace

TEST_CASE("step04 step05 tiles cover every row once") {
  for (Index n = 0; n <= 20; ++n)
    for (Index size = 1; size <= 25; ++size) {
      Index next = 0, count = 0;
      bool good = true;
      for (const Range i : tiles(n, size)) {
        good = good && i.begin == next && i.end > i.begin && i.end <= n && (i.size() == size || i.end == n);
        next = i.end, ++count;
      }
      CAPTURE(n, size);
      CHECK((good && next == n && count == tile_count(n, size)));
    }
  Index visits = 0;
  for (const Range i : tiles(5, std::numeric_limits<Index>::max())) visits += i.size();
  CHECK(visits == 5);
}

TEST_CASE("step07 step08 every tile is of the kind that its pairs say") {
  std::string wrong;
  for_small_sizes([&](const Sizes& x, Index diagonal) {
    for (const Range i : tiles(x.nq, x.br))
      for (const Range j : tiles(x.nk, x.bc))
        if (kind_of_tile(i, j, diagonal) != look(i, j, diagonal)) wrong = text(x, diagonal);
  });
  CHECK(wrong == "");
}

TEST_CASE("step07 step08 the visited tiles are those that are not skipped and in order") {
  std::string wrong;
  for_small_sizes([&](const Sizes& x, Index diagonal) {
    std::vector<Index> found, expected;
    const HeadSizes sizes{x.nq, x.nk, 1, 1, x.br, x.bc, diagonal};
    for_visited_tiles(sizes, [&](Range i, Range j) { found.insert(found.end(), {i.begin, i.end, j.begin, j.end}); });
    for (const Range i : tiles(x.nq, x.br))
      for (const Range j : tiles(x.nk, x.bc))
        if (look(i, j, diagonal) != TileKind::skip) expected.insert(expected.end(), {i.begin, i.end, j.begin, j.end});
    if (found != expected) wrong = text(x, diagonal);
  });
  CHECK(wrong == "");
}

TEST_CASE("step07 step08 numbers of tiles by formula") {
  std::string wrong;
  for_small_sizes([&](const Sizes& x, Index diagonal) {
    const auto fails = [&](const char* what) { wrong = what + (": " + text(x, diagonal)); };
    for (Index I = 0; I < x.tr(); ++I) {
      const Range i{I * x.br, std::min((I + 1) * x.br, x.nq)};
      const Index n_vis = formula::visited(x, I, diagonal), n_full = formula::unmasked(x, I, diagonal);
      // Full tiles first, then partial ones, then those that are skipped
      for (Index J = 0; J < x.tc(); ++J) {
        const TileKind kind = look(i, {J * x.bc, std::min((J + 1) * x.bc, x.nk)}, diagonal);
        if (kind != (J < n_full ? TileKind::full : J < n_vis ? TileKind::partial : TileKind::skip)) fails("row tile");
      }
      const Index most = (x.br + x.bc - 2) / x.bc + 1;
      if (n_vis - n_full > most || most > (x.br + x.bc - 1) / x.bc + 1) fails("bound of partial tiles");
    }
    for (Index J = 0; J < x.tc(); ++J) {
      const Range j{J * x.bc, std::min((J + 1) * x.bc, x.nk)};
      if (j.begin > x.nq - 1 + diagonal) continue;  // no row sees it; the diagonal of a causal mask leaves no such tile
      const Index first = formula::first_row_tile(x, J, diagonal);
      for (Index I = 0; I < x.tr(); ++I)
        if ((look({I * x.br, std::min((I + 1) * x.br, x.nq)}, j, diagonal) != TileKind::skip) != (I >= first)) fails("column tile");
    }
    if (!(by_kind(x, diagonal) == by_formula(x, diagonal))) fails("totals");
  });
  CHECK(wrong == "");
}

TEST_CASE("step07 step08 numbers of tiles in closed form") {
  // 7.2: N = Nq = Nk, tiles that divide N. The smaller side b of a tile is 2 or more there; with b = 1, one tile of those on the
  // diagonal is a single row or column that lies whole before it, so T of them are full.
  for (Index t = 1; t <= 12; ++t)
    for (Index a = 1; a <= 5; ++a)
      for (Index b = 1; b <= 4; ++b) {
        CAPTURE(t, a, b);
        TileCounts expected{a * t * (t - 1) / 2, a * t * (t - 1) / 2, a * t};
        if (b == 1) expected.full += t, expected.partial -= t;
        CHECK(square(t * a * b, a * b, b) == expected);  // Br = a Bc, T = Tr
        CHECK(square(t * a * b, b, a * b) == expected);  // Bc = a Br, T = Tc
      }
}

TEST_CASE("step07 step08 numbers of tiles of the examples") {
  CHECK(square(9, 3, 3) == TileCounts{3, 3, 3});
  CHECK(by_kind({5, 2, 1, 1, 2, 2}, -3) == TileCounts{1, 1, 1});
  CHECK(kind_of_tile({0, 2}, {0, 2}, -3) == TileKind::skip);
  CHECK(kind_of_tile({2, 4}, {0, 2}, -3) == TileKind::partial);
  CHECK(kind_of_tile({4, 5}, {0, 2}, -3) == TileKind::full);
  CHECK(by_kind({5, 2, 1, 1, 2, 1}, -3) == TileCounts{3, 2, 1});
  CHECK(by_kind({2, 5, 1, 1, 2, 2}, 3) == TileCounts{0, 2, 1});
  CHECK(square(1024, 128, 128) == TileCounts{28, 28, 8});
  CHECK(square(16384, 128, 128) == TileCounts{8128, 8128, 128});
}

TEST_CASE("step07 step08 keys that a row sees") {
  // 7.1: min(Nk, max(0, i + delta + 1)) a row; in all Nq Nk - Nq (Nq - 1) / 2 if Nq <= Nk, else Nk (Nk + 1) / 2
  for (Index nq = 0; nq <= 12; ++nq)
    for (Index nk = 0; nk <= 12; ++nk) {
      CAPTURE(nq, nk);
      Index total = 0;
      bool rows = true;
      for (Index i = 0; i < nq; ++i) {
        Index seen = 0;
        for (Index j = 0; j < nk; ++j) seen += j <= i + nk - nq;
        rows = rows && seen == std::min(nk, std::max<Index>(0, i + nk - nq + 1));
        total += seen;
      }
      CHECK(rows);
      CHECK(total == (nq <= nk ? nq * nk - nq * (nq - 1) / 2 : nk * (nk + 1) / 2));
    }
}

TEST_CASE("step07 step08 reads and speed-up of skipping") {
  // Appendix A.5: rows of K that are read
  const auto keys = [](Index br, Index bc) { return (formula::causal({1024, 1024, 1, 0, br, bc}, 0).reads - 1024); };
  CHECK(keys(128, 128) == 4608);
  CHECK(keys(128, 64) == 4608);
  CHECK(keys(64, 128) == 9216);
  for (const auto& [br, bc, all] : {std::tuple<Index, Index, Index>{128, 128, 8192}, {128, 64, 8192}, {64, 128, 16384}})
    CHECK(formula::fa2({1024, 1024, 1, 0, br, bc}).reads - 1024 == all);

  // 7.3: 2 T / (T + 1)
  for (const auto& [t, speed_up] : {std::pair<Index, const char*>{4, "1.60"}, {8, "1.78"}, {16, "1.88"}, {32, "1.94"}, {128, "1.98"}}) {
    const TileCounts c = square(2 * t, 2, 2);
    CAPTURE(t);
    CHECK(c.full + c.partial == t * (t + 1) / 2);
    CHECK(fixed(double(t * t) / double(c.full + c.partial)) == speed_up);
  }
}

}  // namespace flashsteps
