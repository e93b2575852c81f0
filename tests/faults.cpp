// Known faults of other implementations, tried on every step: masks, empty rows, and numbers that must not be seen.
// Ids and values: shared/cases/attention-faults.md. Numbers of softmax itself are in faults_numbers.cpp, shapes and heads in
// faults_shapes.cpp, gradients in faults_backward.cpp.
//
// The steps know one mask, the causal one. A step without it gets a causal head row by row, with the keys that the row sees. Other
// masks are given by scores of -inf, which say the same (E1): a further feature in which q = 1 and k = -inf hides a key from all rows,
// and one in which q = -inf and k = 1 hides all keys from a row.
//   C01, C02     boolean masks: both kinds of feature. C02's lowest finite float is a feature, too, and a bias, not a mask
//   C05          a band, given once as boolean and once as additive: every row alone, since the keys that it may not see have k = -inf
//   C06, C07     k = -inf
//   C11          "both rows may see key 0 only": each of them as the first of two causal rows; the second sees the number, NaN or not
//   C37          block-sparse: every row of blocks is a head of its own, its other keys have k = -inf
//   C38          a sliding window is not built; as for C05, every row alone, so that the right values are held to what is built
// Without a test, because they concern nothing that the steps on the CPU are made of:
//   C23          arguments that do not fit: the tests of the command line
//   C32          a barrier between use and refill of shared memory: CUDA
//   C39, C40     the build: configuring without a GPU; common/memory/packet.hpp refuses -ffast-math at compile time
//   C41          MPI is not built; the head map that it needs is C21's
//   C43          dropout is not built
#include "tests/fault_case.hpp"

namespace flashsteps {
namespace {

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
template <class T> void check_mean(const Case<T>& x, const TileSizes& sizes, double mean, double keys) {
  every_forward(x, sizes, [&](const Case<T>& y) {
    CHECK(error(y.o, {mean}) <= tolerance<T>);
    CHECK(error(y.lse, {std::log(keys)}) <= tolerance<T>);
  });
}

const TileSizes small = all_pairs({1, 2, 3, 4, 5, 8});

TEMPLATE_TEST_CASE("C01 rows that allow no key - step01 step02 step03 step04 step05 step07 step08", "", float, double) {
  using T = TestType;
  const Case<T> x = hidden(rule_o<T>({4, 4, 2, 2}), {false, false, true, true}, {false, false, true, true});
  every_forward(x, small, [](const Case<T>& y) {
    CHECK(error(y.o, {-0.792313254095, -1.12475752971, -0.548271154487, -1.21627331707, 0, 0, 0, 0}) <= tolerance<T>);
    CHECK(error(y.lse, {0.835388891783, 0.63877140903, minus_infinity, minus_infinity}) <= tolerance<T>);
    CHECK(all_are(y.o, 0, 4, 8));
  });
}

TEMPLATE_TEST_CASE("C02 an empty row is not the mean of V - step01 step02 step03 step04 step05 step07 step08", "", float, double) {
  using T = TestType;
  Case<T> x({2, 3, 1, 1}, T(1));
  x.q = {1, 1}, x.k = {1, 2, 3}, x.v = {1, 2, 6};
  every_forward(hidden(x, {true, true, false}, {false, true}), small, [](const Case<T>& y) {
    CHECK(error(y.o, {6, 0}) <= tolerance<T>);
    CHECK(error(y.lse, {3, minus_infinity}) <= tolerance<T>);
    CHECK(all_are(y.o, 0, 1, 2));
  });
  // The lowest finite number is a bias: it hides a key beside others, and where it lies on all keys the row is the mean of V
  const double lowest = std::numeric_limits<float>::lowest();
  every_forward(hidden(x, {true, true, false}, {false, false}, lowest), small, [](const Case<T>& y) {
    CHECK(error(y.o, {6, 6}) <= tolerance<T>);
    CHECK(error(y.lse, {3, 3}) <= tolerance<T>);
  });
  every_forward(hidden(x, {false, false, false}, {false, true}, lowest), small, [](const Case<T>& y) { CHECK(error_at(y.o, 1, {3}) <= tolerance<T>); });
}

TEMPLATE_TEST_CASE("C03 causal with more queries than keys - step01 step02 step03 step04 step05 step07 step08", "", float, double) {
  using T = TestType;
  every_forward(rule_o<T>({5, 2, 2, 2, 1, 1, true}), small, [](const Case<T>& y) {
    CHECK(all_are(y.o, 0, 0, 6));
    CHECK(error_at(y.o, 6, {-1.125, -1, -0.774927020207, -1.13127736742}) <= tolerance<T>);
    CHECK(error(y.lse, {minus_infinity, minus_infinity, minus_infinity, -0.165728151841, 0.872836937243}) <= tolerance<T>);
  });
  const TileSizes sizes{{64, 64}, {128, 64}, {64, 32}, {200, 72}, {16, 16}, {7, 13}, {128, 128}, {256, 8}};
  every_forward(rule_o<T>({200, 72, 16, 16, 1, 1, true}), sizes, [](const Case<T>& y) {
    CHECK(all_are(y.o, 0, 0, 128 * 16));
    CHECK(all_are(y.lse, minus_infinity, 0, 128));
    CHECK(error_at(y.o, 128 * 16, std::vector<double>(y.v.begin(), y.v.begin() + 16)) <= tolerance<T>);
    CHECK(error_at(y.o, 199 * 16, {-0.0148785649719, 0.0675203553602, -0.0882123696519, 0.0231892085163}) <= tolerance<T>);
    CHECK(error_at(y.lse, 199, {4.38425171296}) <= tolerance<T>);
    CHECK(error_at(y.lse, 128, {-0.01171875}) <= tolerance<T>);
    CHECK(checksum_error(y.o, -11.4169034621, -64.7093254893) <= tolerance<T>);
  });
}

TEMPLATE_TEST_CASE("C05 first key tile masked - step01 step02 step03 step04 step05 step07 step08", "", float, double) {
  using T = TestType;
  for (Index i = 0; i < 24; ++i) {
    INFO("row " << i);
    const auto sees = [i](Index j) { return i - 2 <= j && j <= i; };
    check_mean(mean_of<T>(24, sees), {{1, 8}, {1, 1}, {1, 2}, {1, 3}, {4, 7}, {1, 24}}, i == 0 ? 0 : i == 1 ? 0.5 : double(i - 1), double(std::min<Index>(i + 1, 3)));
  }
  for (const Index i : {0, 1, 8, 9, 10, 63, 64, 65, 72, 73, 127, 128, 137, 300, 600, 639}) {
    INFO("row " << i);
    const auto sees = [i](Index j) { return i - 9 <= j && j <= i; };
    check_mean(mean_of<T>(640, sees), {{1, 64}, {1, 16}, {64, 63}, {1, 128}}, i < 9 ? i / 2.0 : i - 4.5, double(std::min<Index>(i + 1, 10)));
  }
}

TEMPLATE_TEST_CASE("C10 NaN comes out where NaN is seen - step01 step02 step03 step04 step05 step07 step08", "", float, double) {
  using T = TestType;
  Case<T> x = rule_o<T>({4, 4, 2, 2});
  x.q[2] = nan_of<T>;
  every_forward(x, small, [](const Case<T>& y) {
    CHECK(error(y.o, {-0.393918816071, -0.942293169477, spoiled, spoiled, -0.109874560739, -1.27451683745, -0.101273207455, -1.30502058671}) <= tolerance<T>);
    CHECK(all_are(y.lse, spoiled, 1, 2));
    CHECK(in_budget(y));
  });
  x = rule_o<T>({4, 4, 2, 2, 1, 1, true});
  x.k[6] = nan_of<T>;
  every_forward(x, small, [](const Case<T>& y) {
    CHECK(error(y.o, {-1.125, -1, -0.548271154487, -1.21627331707, -0.455847258651, -1.00478236557, spoiled, spoiled}) <= tolerance<T>);
    CHECK(all_are(y.lse, spoiled, 3, 4));
    CHECK(in_budget(y));
  });
}

TEMPLATE_TEST_CASE("C11 whatever a masked key holds - step01 step02 step03 step04 step05 step07 step08", "", float, double) {
  using T = TestType;
  for (const Index row : {0, 1})
    for (const double bad : {5., 1e10, -minus_infinity, minus_infinity, spoiled})
      for (const bool in_v : {false, true}) {
        INFO("row " << row << ", " << bad << (in_v ? " in K and V" : " in K"));
        Case<T> x({2, 2, 4, 4, 1, 1, true}, default_scale<T>(4));
        for (Index n = 0; n < 8; ++n) x.k[n] = x.v[n] = T(n);
        for (Index n = 0; n < 4; ++n) x.q[n] = x.q[4 + n] = T(4 * row + n);
        x.k[4] = T(bad);
        if (in_v) std::fill_n(&x.v[4], 4, T(bad));
        every_forward(x, all_pairs({1, 2, 3}), [&](const Case<T>& y) {
          CHECK(error_at(y.o, 0, {0, 1, 2, 3}) <= tolerance<T>);
          CHECK(error_at(y.lse, 0, {row == 0 ? 7. : 19.}) <= tolerance<T>);
        });
      }
}

TEMPLATE_TEST_CASE("C12 causal is aligned to the bottom right - step01 step02 step03 step04 step05 step07 step08", "", float, double) {
  using T = TestType;
  Case<T> x({2, 4, 1, 1, 1, 1, true}, T(1));
  x.q = {0, 0}, x.v = {0, 1, 2, 3};
  every_forward(x, small, [](const Case<T>& y) {
    CHECK(error(y.o, {1, 1.5}) <= tolerance<T>);
    CHECK(error(y.lse, {1.09861228867, 1.38629436112}) <= tolerance<T>);
  });
}

TEMPLATE_TEST_CASE("C13 the last row of a query tile sees the most keys - step01 step02 step03 step04 step05 step07 step08", "", float, double) {
  using T = TestType;
  const std::vector<std::pair<Index, TileSizes>> runs{
      {8, all_pairs({1, 2, 3, 4, 5, 7, 8, 9})},
      {64, {{64, 32}, {32, 64}, {64, 64}, {64, 16}, {16, 64}, {64, 1}, {1, 64}, {48, 20}, {20, 48}, {63, 33}, {128, 32}, {32, 128}}}};
  for (const auto& [n, sizes] : runs) {
    Case<T> x({n, n, 1, 1, 1, 1, true}, T(1));
    std::fill(x.q.begin(), x.q.end(), T(0));
    std::vector<double> o, lse;
    for (Index i = 0; i < n; ++i) x.v[i] = T(i), o.push_back(double(i) / 2), lse.push_back(std::log(double(i + 1)));
    every_forward(x, sizes, [&, n = n](const Case<T>& y) {
      CHECK(error(y.o, o) <= tolerance<T>);
      CHECK(error(y.lse, lse) <= tolerance<T>);
      double sum = 0;
      for (const T& z : y.o) sum += double(z);
      CHECK(std::abs(sum - (n == 8 ? 14 : 1008)) <= tolerance<T> * sum);
    });
  }
}

TEMPLATE_TEST_CASE("C24 LSE of an empty row - step01 step02 step03 step04 step05 step07 step08", "", float, double) {
  using T = TestType;
  Case<T> x({2, 1, 1, 1, 1, 1, true}, T(1));
  x.q = {2, 2}, x.k = {3}, x.v = {7};
  every_forward(x, small, [](const Case<T>& y) {
    CHECK(error(y.o, {0, 7}) <= tolerance<T>);
    CHECK(error(y.lse, {minus_infinity, 6}) <= tolerance<T>);
  });
  every_forward(Case<T>({2, 0, 1, 1}), small, [](const Case<T>& y) {
    CHECK(all_are(y.o, 0));
    CHECK(all_are(y.lse, minus_infinity));
  });
}

TEMPLATE_TEST_CASE("C37 a partial query block without a key block - step01 step02 step03 step04 step05 step07 step08", "", float, double) {
  using T = TestType;
  // Rows of blocks: first row, rows, first key, end of the keys that it sees, mean of V over them
  struct Blocks { Index rows, first, end; double mean; };
  for (const Blocks b : {Blocks{4, 0, 4, 1.5}, Blocks{4, 4, 8, 5.5}, Blocks{2, 0, 0, 0}, Blocks{2, 8, 10, 8.5}}) {
    Case<T> x({b.rows, 10, 1, 1}, T(1));
    x.q.assign(b.rows, T(1));
    for (Index j = 0; j < 10; ++j) x.k[j] = T(b.first <= j && j < b.end ? 0 : minus_infinity), x.v[j] = T(j);
    every_forward(x, {{4, 4}, {2, 2}, {4, 3}, {3, 4}, {1, 1}, {4, 10}}, [&](const Case<T>& y) {
      CHECK(error(y.o, std::vector<double>(b.rows, b.mean)) <= tolerance<T>);
      CHECK(error(y.lse, std::vector<double>(b.rows, std::log(double(b.end - b.first)))) <= tolerance<T>);
    });
  }
}

TEMPLATE_TEST_CASE("C38 the keys of a window - step01 step02 step03 step04 step05 step07 step08", "", float, double) {
  using T = TestType;
  const std::vector<std::pair<Index, std::vector<double>>> windows{
      {1, {0, 0.5, 1.5, 2.5, 3.5}}, {2, {0, 0.5, 1, 2, 3}}, {0, {0, 1, 2, 3, 4}}, {4, {0, 0.5, 1, 1.5, 2}}, {100, {0, 0.5, 1, 1.5, 2}}};
  for (const auto& [left, means] : windows)
    for (Index i = 0; i < 5; ++i) {
      const auto sees = [i, left = left](Index j) { return i - left <= j && j <= i; };
      check_mean(mean_of<T>(5, sees), {{1, 1}, {1, 2}, {1, 3}, {1, 5}}, means[i], double(std::min(i, left) + 1));
    }
}

}  // namespace
}  // namespace flashsteps
