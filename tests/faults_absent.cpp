// Rules E2 and E3 (math 0.3): what a mask hides is absent, whatever number stands there, and NaN reaches those alone that see it.
// Any diagonal is tried, so that there are keys which no row sees and rows which see no key. Random numbers are put into Q, K, V and dO;
// what does not see them must be, bit for bit, what it was without them. Numbers of 50 digits: compile with -O1.
#include "tests/fault_case.hpp"
#include "tests/fifty.hpp"

namespace flashsteps {
namespace {

template <class T> bool same(const std::vector<T>& a, const std::vector<T>& b, Index first, Index count) {
  if constexpr (lanes<T> > 1) return std::memcmp(&a[first], &b[first], count * sizeof(T)) == 0;
  else return std::equal(a.begin() + first, a.begin() + first + count, b.begin() + first);
}
template <class T> bool all_nan(const std::vector<T>& a, Index first, Index count) {
  return std::all_of(a.begin() + first, a.begin() + first + count, [](const T& x) { return x != x; });
}

/// Query heads that share K and V, under any diagonal.
template <class T> struct Group {
  std::vector<Case<T>> heads;
  Index diagonal;

  Head<T> head(std::size_t h) {
    Head<T> x = heads[h].head();
    x.diagonal = diagonal;
    return x;
  }
  /// Step 07 takes every head for itself; step 08 leaves dK and dV of the group in the first.
  void run(int step) {
    std::vector<Head<T>> group;
    std::vector<Gradients<T>> gradients;
    Memory memory;
    for (std::size_t h = 0; h < heads.size(); ++h) {
      heads[h].poison();
      group.push_back(head(h)), gradients.push_back(heads[h].gradients());
      step == 7 ? step07::forward(group[h], memory) : step08::forward(group[h], memory);
      if (step == 7) step07::backward(group[h], gradients[h], memory);
    }
    if (step == 8) step08::backward<T>(group, gradients, memory);
  }
};

/// How many rows of results were held to a rule.
struct Tally { Index untouched = 0, spoiled = 0; };

/// Puts numbers into some rows, and holds all results to those without them. `hidden`: only where nothing sees them.
/// `nan`: NaN in whole rows; then who sees it must be NaN.
template <class T> void try_numbers(unsigned seed, Index longest, bool hidden, bool nan, Tally& tally) {
  std::mt19937 random(seed * 747796405u + 3);
  const auto pick = [&](Index low, Index high) { return std::uniform_int_distribution<Index>(low, high)(random); };
  const CaseShape shape{pick(1, longest), pick(1, longest), pick(1, 9), pick(1, 9), pick(1, longest), pick(1, longest)};
  Group<T> clean{{}, pick(-shape.nq - 1, shape.nk + 1)};
  for (Index h = pick(1, 3); h > 0; --h) {
    Case<T> x(shape, T(0.4), seed + unsigned(h));
    if (!clean.heads.empty()) x.k = clean.heads[0].k, x.v = clean.heads[0].v;
    x.with_d_lse = seed % 2 == 0;
    clean.heads.push_back(std::move(x));
  }
  const std::size_t heads = clean.heads.size();
  Group<T> bad = clean;
  INFO("seed " << seed << ": " << shape.nq << " x " << shape.nk << ", d " << shape.d << ", dv " << shape.dv << ", tiles " << shape.br << " x " << shape.bc << ", diagonal "
               << clean.diagonal << ", heads " << heads);

  const T numbers[] = {nan_of<T>, infinity<T>, -infinity<T>, T(1e30)};
  Places places{std::vector<bool>(shape.nk), std::vector<bool>(shape.nk), {}, {}};
  places.q.assign(heads, std::vector<bool>(shape.nq)), places.d_o = places.q;
  const auto put = [&](std::vector<T>& x, std::vector<bool>& place, Index row, Index cols) {
    place[row] = true;
    const Index only = nan || pick(0, 1) == 0 ? -1 : pick(0, cols - 1);
    for (Index e = 0; e < cols; ++e)
      if (only < 0 || e == only) x[row * cols + e] = numbers[nan ? 0 : pick(0, 3)];
  };
  const auto no_row_sees = [&](Index j) { return j > shape.nq - 1 + clean.diagonal; };
  for (Index n = pick(1, 4); n > 0; --n) {
    const Index j = pick(0, shape.nk - 1), i = pick(0, shape.nq - 1), h = pick(0, Index(heads) - 1);
    if (!hidden || no_row_sees(j)) {
      if (pick(0, 1)) put(bad.heads[0].k, places.k, j, shape.d);
      if (pick(0, 1)) put(bad.heads[0].v, places.v, j, shape.dv);
    }
    if (!hidden || i + clean.diagonal < 0) {
      if (pick(0, 2) == 0) put(bad.heads[h].q, places.q[h], i, shape.d);
      if (pick(0, 2) == 0) put(bad.heads[h].d_o, places.d_o[h], i, shape.dv), bad.heads[h].d_lse[i] = numbers[0];
    }
  }
  for (Case<T>& x : bad.heads) x.k = bad.heads[0].k, x.v = bad.heads[0].v;

  for (const int step : {7, 8}) {
    INFO("step 0" << step);
    clean.run(step), bad.run(step);
    bool untouched = true, spoiled = true;
    const auto hold = [&](bool sees, std::vector<T> Case<T>::*tensor, std::size_t h, Index row, Index cols) {
      if (!sees) untouched = untouched && same(bad.heads[h].*tensor, clean.heads[h].*tensor, row * cols, cols), ++tally.untouched;
      if (sees && nan) spoiled = spoiled && all_nan(bad.heads[h].*tensor, row * cols, cols), ++tally.spoiled;
    };
    for (std::size_t h = 0; h < heads; ++h) {
      for (Index i = 0; i < shape.nq; ++i) {
        const Seen s = seen(places, h, i, clean.diagonal);
        hold(s.lse, &Case<T>::lse, h, i, 1);
        hold(s.o, &Case<T>::o, h, i, shape.dv);
        hold(s.dq, &Case<T>::dq, h, i, shape.d);
      }
      if (step == 8 && h > 0) continue;
      for (Index j = 0; j < shape.nk; ++j) {
        bool dk = false, dv = false;
        for (std::size_t g = step == 8 ? 0 : h; g < (step == 8 ? heads : h + 1); ++g)
          for (Index i = std::max<Index>(0, j - clean.diagonal); i < shape.nq; ++i) {
            const Seen s = seen(places, g, i, clean.diagonal);
            dk = dk || s.dq, dv = dv || s.dv;
          }
        hold(dk, &Case<T>::dk, h, j, shape.d);
        hold(dv, &Case<T>::dv_, h, j, shape.dv);
      }
    }
    CHECK(untouched);
    CHECK(spoiled);
  }
}

TEMPLATE_TEST_CASE("E2 masked means absent - step07 step08", "", float, double) {
  Tally tally;
  for (unsigned seed = 1; seed <= 150; ++seed)
    for (const Index longest : {7, 45}) try_numbers<TestType>(seed, longest, false, false, tally);
  CHECK(tally.untouched > 10000);
}
TEMPLATE_TEST_CASE("E2 what nothing sees changes nothing - step07 step08", "", float, double) {
  Tally tally;
  for (unsigned seed = 1; seed <= 150; ++seed)
    for (const Index longest : {7, 45}) try_numbers<TestType>(seed, longest, true, false, tally);
  CHECK(tally.untouched > 50000);
}
TEMPLATE_TEST_CASE("E3 NaN reaches those that see it and no other - step07 step08", "", float, double) {
  Tally tally;
  for (unsigned seed = 1; seed <= 150; ++seed)
    for (const Index longest : {7, 45}) try_numbers<TestType>(seed, longest, false, true, tally);
  CHECK(tally.untouched > 10000);
  CHECK(tally.spoiled > 10000);
}
TEST_CASE("E2 E3 in numbers of 50 digits - step07 step08", "") {
  Tally tally;
  for (unsigned seed = 1; seed <= 40; ++seed)
    for (const bool hidden : {false, true})
      for (const bool nan : {false, true}) try_numbers<Fifty>(seed, 9, hidden, nan, tally);
  CHECK(tally.untouched > 3000);
  CHECK(tally.spoiled > 1000);
}

}  // namespace
}  // namespace flashsteps
