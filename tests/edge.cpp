// The edge rules of the specification (math 0.3) over every step, forward and backward: E1, E3, E4 and E5. E2 stands in
// faults_absent.cpp, E6 to E9 in faults_scores.cpp. Room on chip and workspaces are NaN before they are written (fault_case.hpp).
#include "tests/fault_case.hpp"

namespace flashsteps {
namespace {

const TileSizes small = all_pairs({1, 2, 3, 8});
const double plus_infinity = -minus_infinity;

/// All numbers of one column of x, and all others.
template <class T> bool column_is_nan(const std::vector<T>& x, Index cols, Index column) {
  for (Index n = column; n < Index(x.size()); n += cols)
    if (x[n] == x[n]) return false;
  return true;
}
template <class T> bool same_beside_column(std::vector<T> x, std::vector<T> y, Index cols, Index column) {
  for (Index n = column; n < Index(x.size()); n += cols) x[n] = y[n] = T(0);
  return same_bits(x, y);
}
template <class T> bool same_beside_row(std::vector<T> x, std::vector<T> y, Index cols, Index row) {
  std::fill_n(x.begin() + row * cols, cols, T(0)), std::fill_n(y.begin() + row * cols, cols, T(0));
  return same_bits(x, y);
}
/// The results of every backward pass, in the order in which every_backward comes to them.
template <class T> std::vector<Case<T>> gradients_of(const Case<T>& x, const TileSizes& sizes) {
  std::vector<Case<T>> all;
  every_backward(x, sizes, [&](const Case<T>& y) { all.push_back(y); });
  return all;
}
template <class T> std::vector<Case<T>> outputs_of(const Case<T>& x, const TileSizes& sizes) {
  std::vector<Case<T>> all;
  every_forward(x, sizes, [&](const Case<T>& y) { all.push_back(y); });
  return all;
}

TEST_CASE("Room is born as NaN - step01 step02 step03 step04 step05 step06 step07 step08", "") {
  OnChip chip(1000);
  const Tile<float> x(chip, 5, 3);
  const Tile<double> y(chip, 5, 3);
  CHECK((x.array() != x.array()).all());
  CHECK((y.array() != y.array()).all());
  Memory memory;
  const Workspace<float> w(tensor::m, 4, 2);
  CHECK(memory.load_lanes(w).bare().isNaN().all());
}

TEMPLATE_TEST_CASE("E1 no key at all - step01 step02 step03 step04 step05 step06 step07 step08", "", float, double) {
  using T = TestType;
  for (const bool causal : {false, true}) {
    Case<T> x({5, 0, 3, 2, 1, 1, causal});
    x.with_d_lse = true;
    std::fill(x.d_o.begin(), x.d_o.end(), nan_of<T>), std::fill(x.d_lse.begin(), x.d_lse.end(), nan_of<T>);
    x.q[4] = nan_of<T>;
    every_forward(x, small, [](const Case<T>& y) { CHECK((all_are(y.o, 0) && all_are(y.lse, minus_infinity))); });
    every_backward(x, small, [](const Case<T>& y) { CHECK(all_are(y.dq, 0)); });
  }
}

TEMPLATE_TEST_CASE("E1 causal rows before the first key - step01 step02 step03 step04 step05 step06 step07 step08", "", float, double) {
  using T = TestType;
  Case<T> x({9, 4, 3, 2, 1, 1, true});
  x.with_d_lse = true;
  const std::vector<Case<T>> clean = outputs_of(x, small), clean_back = gradients_of(x, small);
  for (const double bad : {spoiled, plus_infinity, minus_infinity}) {
    for (Index i = 0; i < 5; ++i) x.q[i * 3 + i % 3] = T(bad), x.d_o[i * 2 + i % 2] = T(bad), x.d_lse[i] = T(bad);
    std::size_t n = 0;
    every_forward(x, small, [&](const Case<T>& y) {
      CHECK((all_are(y.o, 0, 0, 10) && all_are(y.lse, minus_infinity, 0, 5)));
      CHECK((same_bits(y.o, clean[n].o) && same_bits(y.lse, clean[n].lse)));
      CHECK(in_budget(y));
      ++n;
    });
    n = 0;
    every_backward(x, small, [&](const Case<T>& y) {
      CHECK(all_are(y.dq, 0, 0, 15));
      CHECK((same_bits(y.dq, clean_back[n].dq) && same_bits(y.dk, clean_back[n].dk) && same_bits(y.dv_, clean_back[n].dv_)));
      ++n;
    });
    CHECK((n == clean_back.size()));
  }
}

TEMPLATE_TEST_CASE("E1 all scores minus infinity - step01 step02 step03 step04 step05 step06 step07 step08", "", float, double) {
  using T = TestType;
  // Rows 1, 4 and 5 have q = -inf, and all k are positive
  Case<T> x({7, 6, 3, 2});
  x.with_d_lse = true;
  for (T& k : x.k) k = std::abs(k) + T(0.1);
  for (const Index i : {1, 4, 5}) std::fill_n(&x.q[i * 3], 3, -infinity<T>);
  const std::vector<Case<T>> clean = gradients_of(x, small);
  every_forward(x, small, [](const Case<T>& y) {
    for (const Index i : {1, 4, 5}) CHECK((all_are(y.o, 0, i * 2, i * 2 + 2) && all_are(y.lse, minus_infinity, i, i + 1)));
    CHECK(in_budget(y));
  });
  for (const double bad : {spoiled, plus_infinity, minus_infinity}) {
    Case<T> spoiled_do = x, spoiled_v = x;
    for (const Index i : {1, 4, 5}) spoiled_do.d_o[i * 2 + i % 2] = T(bad), spoiled_do.d_lse[i] = T(bad);
    std::size_t n = 0;
    every_backward(spoiled_do, small, [&](const Case<T>& y) {
      for (const Index i : {1, 4, 5}) CHECK(all_are(y.dq, 0, i * 3, i * 3 + 3));
      CHECK((same_bits(y.dq, clean[n].dq) && same_bits(y.dk, clean[n].dk) && same_bits(y.dv_, clean[n].dv_)));
      CHECK(in_budget(y, true));
      ++n;
    });
    spoiled_v.v[2] = T(bad), spoiled_v.v[9] = T(bad);
    every_forward(spoiled_v, small, [&](const Case<T>& y) {
      for (const Index i : {1, 4, 5}) CHECK((all_are(y.o, 0, i * 2, i * 2 + 2) && all_are(y.lse, minus_infinity, i, i + 1)));
      CHECK(y.o[0] - y.o[0] != T(0));
    });
    every_backward(spoiled_v, small, [&](const Case<T>& y) {
      for (const Index i : {1, 4, 5}) CHECK(all_are(y.dq, 0, i * 3, i * 3 + 3));
    });
    // Every row is empty: there is no gradient, whatever stands in V and dO
    std::fill(spoiled_v.q.begin(), spoiled_v.q.end(), -infinity<T>);
    std::fill(spoiled_v.v.begin(), spoiled_v.v.end(), T(bad)), std::fill(spoiled_v.d_o.begin(), spoiled_v.d_o.end(), T(bad));
    every_forward(spoiled_v, small, [](const Case<T>& y) { CHECK((all_are(y.o, 0) && all_are(y.lse, minus_infinity))); });
    every_backward(spoiled_v, small, [](const Case<T>& y) { CHECK((all_are(y.dq, 0) && all_are(y.dk, 0) && all_are(y.dv_, 0))); });
  }
}

TEMPLATE_TEST_CASE("E3 NaN reaches what sees it and no other - step01 step02 step03 step04 step05 step06 step07 step08", "", float, double) {
  using T = TestType;
  const Index i = 3, j = 5, e = 1, d = 4, dv = 3;
  const TileSizes sizes{{1, 1}, {2, 3}, {3, 2}, {4, 4}, {16, 16}};
  Case<T> x({7, 9, d, dv});
  x.with_d_lse = true;
  const std::vector<Case<T>> clean = outputs_of(x, sizes), clean_back = gradients_of(x, sizes);
  const auto spoil = [&](std::vector<T> Case<T>::*tensor, Index at, auto check, auto check_back) {
    Case<T> bad = x;
    (bad.*tensor)[at] = nan_of<T>;
    std::size_t n = 0;
    every_forward(bad, sizes, [&](const Case<T>& y) { check(y, clean[n++]); });
    n = 0;
    every_backward(bad, sizes, [&](const Case<T>& y) { check_back(y, clean_back[n++]); });
  };
  // In Q: the row
  spoil(&Case<T>::q, i * d + 2,
        [&](const Case<T>& y, const Case<T>& z) {
          CHECK((all_are(y.o, spoiled, i * dv, i * dv + dv) && all_are(y.lse, spoiled, i, i + 1)));
          CHECK((same_beside_row(y.o, z.o, dv, i) && same_beside_row(y.lse, z.lse, 1, i)));
        },
        [&](const Case<T>& y, const Case<T>& z) {
          CHECK((all_are(y.dq, spoiled, i * d, i * d + d) && all_are(y.dk, spoiled) && all_are(y.dv_, spoiled)));
          CHECK(same_beside_row(y.dq, z.dq, d, i));
        });
  // In K: every row
  spoil(&Case<T>::k, j * d, [&](const Case<T>& y, const Case<T>&) { CHECK((all_are(y.o, spoiled) && all_are(y.lse, spoiled))); },
        [&](const Case<T>& y, const Case<T>&) { CHECK((all_are(y.dq, spoiled) && all_are(y.dk, spoiled) && all_are(y.dv_, spoiled))); });
  // In V: the column of every row of O, and what comes back through dP
  spoil(&Case<T>::v, j * dv + e,
        [&](const Case<T>& y, const Case<T>& z) {
          CHECK((column_is_nan(y.o, dv, e) && same_beside_column(y.o, z.o, dv, e)));
          CHECK(same_bits(y.lse, z.lse));
        },
        [&](const Case<T>& y, const Case<T>& z) {
          CHECK((all_are(y.dq, spoiled) && all_are(y.dk, spoiled)));
          CHECK(same_bits(y.dv_, z.dv_));
        });
  // In dO and in dL
  spoil(&Case<T>::d_o, i * dv + e, [&](const Case<T>& y, const Case<T>& z) { CHECK((same_bits(y.o, z.o) && same_bits(y.lse, z.lse))); },
        [&](const Case<T>& y, const Case<T>& z) {
          CHECK((all_are(y.dq, spoiled, i * d, i * d + d) && same_beside_row(y.dq, z.dq, d, i)));
          CHECK(all_are(y.dk, spoiled));
          CHECK((column_is_nan(y.dv_, dv, e) && same_beside_column(y.dv_, z.dv_, dv, e)));
        });
  spoil(&Case<T>::d_lse, i, [&](const Case<T>&, const Case<T>&) {},
        [&](const Case<T>& y, const Case<T>& z) {
          CHECK((all_are(y.dq, spoiled, i * d, i * d + d) && same_beside_row(y.dq, z.dq, d, i)));
          CHECK(all_are(y.dk, spoiled));
          CHECK(same_bits(y.dv_, z.dv_));
        });
}

TEMPLATE_TEST_CASE("E4 a score of plus infinity - step01 step02 step03 step04 step05 step06 step07 step08", "", float, double) {
  using T = TestType;
  for (const Index at : {0, 2, 4}) {
    Case<T> x({3, 5, 1, 2}, T(1));
    x.q = {T(1), T(-1), T(0.5)}, x.k = {T(0.3), T(-2), T(1), T(0), T(4)};
    x.k[at] = infinity<T>;  // for row 1 a score of -inf
    every_forward(x, small, [](const Case<T>& y) {
      for (const Index i : {0, 2}) CHECK((all_are(y.o, spoiled, i * 2, i * 2 + 2) && all_are(y.lse, spoiled, i, i + 1)));
      CHECK(y.lse[1] - y.lse[1] == T(0));
      CHECK(in_budget(y));
    });
    every_backward(x, small, [](const Case<T>& y) {
      CHECK((all_are(y.dq, spoiled, 0, 1) && all_are(y.dq, spoiled, 2, 3)));
      CHECK((all_are(y.dk, spoiled) && all_are(y.dv_, spoiled)));
    });
  }
}

TEMPLATE_TEST_CASE("E5 V that is not finite under a weight that underflowed - step01 step02 step03 step04 step05 step07 step08", "", float, double) {
  using T = TestType;
  for (const double bad : {spoiled, plus_infinity, minus_infinity})
    for (const Index at : {0, 1, 2}) {
      std::vector<double> scores(3, -1e5), v{1, 2, 3};
      scores[(at + 1) % 3] = 0, v[at] = bad;
      every_forward(one_row<T>(scores, v), small, [](const Case<T>& y) {
        CHECK(y.o[0] - y.o[0] != T(0));
        CHECK(y.lse[0] == T(0));
      });
    }
}

}  // namespace
}  // namespace flashsteps
