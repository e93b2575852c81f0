#pragma once
// Cases of masks, empty rows and numbers that must not be seen, for whatever runs them: OnCpu, OnKernels.
#include "tests/fault_case.hpp"
#include <numeric>

namespace flashsteps {

/// Hides keys from all rows and rows from all keys by two more features. The scale stays.
template <class T> Case<T> hidden(const Case<T>& x, const std::vector<bool>& key, const std::vector<bool>& row, double hide = minus_infinity) {
  Case<T> y({x.nq, x.nk, x.d + 2, x.dv}, x.scale);
  y.v = x.v;
  for (Index i = 0; i < x.nq; ++i) {
    for (Index e = 0; e < x.d; ++e) y.q[i * y.d + e] = x.q[i * x.d + e];
    y.q[i * y.d + x.d] = T(1), y.q[i * y.d + x.d + 1] = T(row[i] ? hide : 0);
  }
  for (Index j = 0; j < x.nk; ++j) {
    for (Index e = 0; e < x.d; ++e) y.k[j * y.d + e] = x.k[j * x.d + e];
    y.k[j * y.d + x.d] = T(key[j] ? hide : 0), y.k[j * y.d + x.d + 1] = T(1);
  }
  return y;
}

/// Q = 0 and V[j] = j for one row that sees some of n keys.
template <class T, class Sees> Case<T> mean_of(Index n, Sees sees) {
  std::vector<double> scores(n);
  for (Index j = 0; j < n; ++j) scores[j] = sees(j) ? 0 : minus_infinity;
  return one_row<T>(scores, counted(n));
}
/// Rows, each a head of its own, and the mean and the number of the keys that each sees.
template <class On>
void check_means(On& on, const std::vector<Case<typename On::Number>>& rows, const TileSizes& sizes, std::vector<double> mean, std::vector<double> keys) {
  on.forward(rows, sizes, [&](const std::vector<Case<typename On::Number>>& each) {
    for (std::size_t i = 0; i < each.size(); ++i) {
      INFO("row " << i);
      CHECK(error(each[i].o, {mean[i]}) <= on.tolerance);
      CHECK(error(each[i].lse, {std::log(keys[i])}) <= on.tolerance);
    }
  });
}

/// C01: rows that allow no key.
template <class On> void c01(On& on) {
  using T = typename On::Number;
  const Case<T> x = hidden(rule_o<T>({4, 4, 2, 2}), {false, false, true, true}, {false, false, true, true});
  on.forward(x, more_small_tiles, [&](const Case<T>& y) {
    CHECK(error(y.o, {-0.792313254095, -1.12475752971, -0.548271154487, -1.21627331707, 0, 0, 0, 0}) <= on.tolerance);
    CHECK(error(y.lse, {0.835388891783, 0.63877140903, minus_infinity, minus_infinity}) <= on.tolerance);
    CHECK(all_are(y.o, 0, 4, 8));
  });
}

/// C02: an empty row is not the mean of V.
template <class On> void c02(On& on) {
  using T = typename On::Number;
  Case<T> x({2, 3, 1, 1}, T(1));
  x.q = {1, 1}, x.k = {1, 2, 3}, x.v = {1, 2, 6};
  on.forward(hidden(x, {true, true, false}, {false, true}), more_small_tiles, [&](const Case<T>& y) {
    CHECK(error(y.o, {6, 0}) <= on.tolerance);
    CHECK(error(y.lse, {3, minus_infinity}) <= on.tolerance);
    CHECK(all_are(y.o, 0, 1, 2));
  });
  // The lowest finite number is a bias: it hides a key beside others, and where it lies on all keys the row is the mean of V
  const double lowest = std::numeric_limits<float>::lowest();
  on.forward(hidden(x, {true, true, false}, {false, false}, lowest), more_small_tiles, [&](const Case<T>& y) {
    CHECK(error(y.o, {6, 6}) <= on.tolerance);
    CHECK(error(y.lse, {3, 3}) <= on.tolerance);
  });
  on.forward(hidden(x, {false, false, false}, {false, true}, lowest), more_small_tiles, [&](const Case<T>& y) {
    CHECK(error_at(y.o, 1, {3}) <= on.tolerance);
  });
}

/// C03: causal with more queries than keys.
template <class On> void c03(On& on) {
  using T = typename On::Number;
  on.forward(rule_o<T>({5, 2, 2, 2, 1, 1, true}), more_small_tiles, [&](const Case<T>& y) {
    CHECK(all_are(y.o, 0, 0, 6));
    CHECK(error_at(y.o, 6, {-1.125, -1, -0.774927020207, -1.13127736742}) <= on.tolerance);
    CHECK(error(y.lse, {minus_infinity, minus_infinity, minus_infinity, -0.165728151841, 0.872836937243}) <= on.tolerance);
  });
  const TileSizes sizes{{64, 64}, {128, 64}, {64, 32}, {200, 72}, {16, 16}, {7, 13}, {128, 128}, {256, 8}};
  on.forward(rule_o<T>({200, 72, 16, 16, 1, 1, true}), sizes, [&](const Case<T>& y) {
    CHECK(all_are(y.o, 0, 0, 128 * 16));
    CHECK(all_are(y.lse, minus_infinity, 0, 128));
    CHECK(error_at(y.o, 128 * 16, std::vector<double>(y.v.begin(), y.v.begin() + 16)) <= on.tolerance);
    CHECK(error_at(y.o, 199 * 16, {-0.0148785649719, 0.0675203553602, -0.0882123696519, 0.0231892085163}) <= on.tolerance);
    CHECK(error_at(y.lse, 199, {4.38425171296}) <= on.tolerance);
    CHECK(error_at(y.lse, 128, {-0.01171875}) <= on.tolerance);
    CHECK(checksum_error(y.o, -11.4169034621, -64.7093254893) <= on.tolerance);
  });
}

/// C05: first key tile masked.
template <class On> void c05(On& on) {
  using T = typename On::Number;
  const auto band = [&](Index n, Index before, const std::vector<Index>& rows, const TileSizes& sizes) {
    std::vector<Case<T>> heads;
    std::vector<double> mean, keys;
    for (const Index i : rows) {
      const Index first = std::max<Index>(0, i - before);
      heads.push_back(mean_of<T>(n, [&](Index j) { return first <= j && j <= i; }));
      mean.push_back(double(first + i) / 2), keys.push_back(double(i - first + 1));
    }
    check_means(on, heads, sizes, mean, keys);
  };
  std::vector<Index> all(24);
  std::iota(all.begin(), all.end(), 0);
  band(24, 2, all, {{1, 8}, {1, 1}, {1, 2}, {1, 3}, {4, 7}, {1, 24}});
  band(640, 9, {0, 1, 8, 9, 10, 63, 64, 65, 72, 73, 127, 128, 137, 300, 600, 639}, {{1, 64}, {1, 16}, {64, 63}, {1, 128}});
}

/// C10: NaN comes out where NaN is seen.
template <class On> void c10(On& on) {
  using T = typename On::Number;
  Case<T> x = rule_o<T>({4, 4, 2, 2});
  x.q[2] = nan_of<T>;
  on.forward(x, more_small_tiles, [&](const Case<T>& y) {
    CHECK(error(y.o, {-0.393918816071, -0.942293169477, spoiled, spoiled, -0.109874560739, -1.27451683745, -0.101273207455, -1.30502058671}) <= on.tolerance);
    CHECK(all_are(y.lse, spoiled, 1, 2));
    CHECK(on.in_budget(y));
  });
  x = rule_o<T>({4, 4, 2, 2, 1, 1, true});
  x.k[6] = nan_of<T>;
  on.forward(x, more_small_tiles, [&](const Case<T>& y) {
    CHECK(error(y.o, {-1.125, -1, -0.548271154487, -1.21627331707, -0.455847258651, -1.00478236557, spoiled, spoiled}) <= on.tolerance);
    CHECK(all_are(y.lse, spoiled, 3, 4));
    CHECK(on.in_budget(y));
  });
}

/// C11: whatever a masked key holds.
template <class On> void c11(On& on) {
  using T = typename On::Number;
  for (const Index row : {0, 1})
    for (const double bad : {5., 1e10, -minus_infinity, minus_infinity, spoiled})
      for (const bool in_v : {false, true}) {
        INFO("row " << row << ", " << bad << (in_v ? " in K and V" : " in K"));
        Case<T> x({2, 2, 4, 4, 1, 1, true}, default_scale<T>(4));
        for (Index n = 0; n < 8; ++n) x.k[n] = x.v[n] = T(n);
        for (Index n = 0; n < 4; ++n) x.q[n] = x.q[4 + n] = T(4 * row + n);
        x.k[4] = T(bad);
        if (in_v) std::fill_n(&x.v[4], 4, T(bad));
        on.masked_v_is_finite = !in_v || bad - bad == 0;
        on.forward(x, all_pairs({1, 2, 3}), [&](const Case<T>& y) {
          CHECK(error_at(y.o, 0, {0, 1, 2, 3}) <= on.tolerance);
          CHECK(error_at(y.lse, 0, {row == 0 ? 7. : 19.}) <= on.tolerance);
        });
      }
}

/// C12: causal is aligned to the bottom right.
template <class On> void c12(On& on) {
  using T = typename On::Number;
  Case<T> x({2, 4, 1, 1, 1, 1, true}, T(1));
  x.q = {0, 0}, x.v = {0, 1, 2, 3};
  on.forward(x, more_small_tiles, [&](const Case<T>& y) {
    CHECK(error(y.o, {1, 1.5}) <= on.tolerance);
    CHECK(error(y.lse, {1.09861228867, 1.38629436112}) <= on.tolerance);
  });
}

/// C13: the last row of a query tile sees the most keys.
template <class On> void c13(On& on) {
  using T = typename On::Number;
  const std::vector<std::pair<Index, TileSizes>> runs{
      {8, all_pairs({1, 2, 3, 4, 5, 7, 8, 9})},
      {64, {{64, 32}, {32, 64}, {64, 64}, {64, 16}, {16, 64}, {64, 1}, {1, 64}, {48, 20}, {20, 48}, {63, 33}, {128, 32}, {32, 128}}}};
  for (const auto& [n, sizes] : runs) {
    Case<T> x({n, n, 1, 1, 1, 1, true}, T(1));
    std::fill(x.q.begin(), x.q.end(), T(0));
    std::vector<double> o, lse;
    for (Index i = 0; i < n; ++i) x.v[i] = T(i), o.push_back(double(i) / 2), lse.push_back(std::log(double(i + 1)));
    on.forward(x, sizes, [&, n = n](const Case<T>& y) {
      CHECK(error(y.o, o) <= on.tolerance);
      CHECK(error(y.lse, lse) <= on.tolerance);
      double sum = 0;
      for (const T& z : y.o) sum += double(z);
      CHECK(std::abs(sum - (n == 8 ? 14 : 1008)) <= on.tolerance * sum);
    });
  }
}

/// C24: LSE of an empty row.
template <class On> void c24(On& on) {
  using T = typename On::Number;
  Case<T> x({2, 1, 1, 1, 1, 1, true}, T(1));
  x.q = {2, 2}, x.k = {3}, x.v = {7};
  on.forward(x, more_small_tiles, [&](const Case<T>& y) {
    CHECK(error(y.o, {0, 7}) <= on.tolerance);
    CHECK(error(y.lse, {minus_infinity, 6}) <= on.tolerance);
  });
  on.forward(Case<T>({2, 0, 1, 1}), more_small_tiles, [&](const Case<T>& y) {
    CHECK(all_are(y.o, 0));
    CHECK(all_are(y.lse, minus_infinity));
  });
}

/// C37: a partial query block without a key block.
template <class On> void c37(On& on) {
  using T = typename On::Number;
  // Rows of blocks: first row, rows, first key, end of the keys that it sees, mean of V over them
  struct Blocks { Index rows, first, end; double mean; };
  for (const Blocks b : {Blocks{4, 0, 4, 1.5}, Blocks{4, 4, 8, 5.5}, Blocks{2, 0, 0, 0}, Blocks{2, 8, 10, 8.5}}) {
    Case<T> x({b.rows, 10, 1, 1}, T(1));
    x.q.assign(b.rows, T(1));
    for (Index j = 0; j < 10; ++j) x.k[j] = T(b.first <= j && j < b.end ? 0 : minus_infinity), x.v[j] = T(j);
    on.forward(x, {{4, 4}, {2, 2}, {4, 3}, {3, 4}, {1, 1}, {4, 10}}, [&](const Case<T>& y) {
      CHECK(error(y.o, std::vector<double>(b.rows, b.mean)) <= on.tolerance);
      CHECK(error(y.lse, std::vector<double>(b.rows, std::log(double(b.end - b.first)))) <= on.tolerance);
    });
  }
}

/// C38: the keys of a window.
template <class On> void c38(On& on) {
  using T = typename On::Number;
  const std::vector<std::pair<Index, std::vector<double>>> windows{
      {1, {0, 0.5, 1.5, 2.5, 3.5}}, {2, {0, 0.5, 1, 2, 3}}, {0, {0, 1, 2, 3, 4}}, {4, {0, 0.5, 1, 1.5, 2}}, {100, {0, 0.5, 1, 1.5, 2}}};
  for (const auto& [left, means] : windows) {
    INFO("left bound " << left);
    std::vector<Case<T>> rows;
    std::vector<double> keys;
    for (Index i = 0; i < 5; ++i) {
      rows.push_back(mean_of<T>(5, [i, left = left](Index j) { return i - left <= j && j <= i; }));
      keys.push_back(double(std::min(i, left) + 1));
    }
    check_means(on, rows, {{1, 1}, {1, 2}, {1, 3}, {1, 5}}, means, keys);
  }
}

}  // namespace flashsteps
