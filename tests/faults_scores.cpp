// The edge rules E6 to E9 of the specification (math 0.3), and the vectors of its Appendix A, over every step: rows of scores that are
// not finite, shapes without anything in them, any scale, large scores.
#include "tests/fault_case.hpp"

namespace flashsteps {
namespace {

const TileSizes small = all_pairs({1, 2, 3, 8});
const double plus_infinity = -minus_infinity;

/// Calls visit(scores) for every row of up to 4 scores out of five values.
template <class Visit> void every_row(Visit visit) {
  const double values[] = {minus_infinity, spoiled, plus_infinity, 0.5, -3};
  for (Index n = 0, rows = 1; n <= 4; ++n, rows *= 5)
    for (Index row = 0; row < rows; ++row) {
      std::vector<double> scores;
      for (Index digit = 0, rest = row; digit < n; ++digit, rest /= 5) scores.push_back(values[rest % 5]);
      visit(scores);
    }
}
/// Is a row empty (E1), NaN (E3, E4), or a softmax?
enum Kind { empty, nan_row, ordinary };
Kind kind_of(const std::vector<double>& scores) {
  Kind kind = empty;
  for (const double s : scores) {
    if (s != s || s == plus_infinity) return nan_row;
    if (s != minus_infinity) kind = ordinary;
  }
  return kind;
}

TEMPLATE_TEST_CASE("E6 E7 every row of up to four scores - step01 step02 step03 step04 step05 step06 step07 step08", "", float, double) {
  using T = TestType;
  Index rows = 0;
  every_row([&](const std::vector<double>& scores) {
    ++rows;
    CAPTURE(scores);
    // Three queries of positive sizes: the rows of a tile differ, and the second tile is ragged
    Case<T> x({3, Index(scores.size()), 1, 2}, T(1));
    x.q = {T(1), T(2), T(0.25)}, x.k.assign(scores.begin(), scores.end());
    const Kind kind = kind_of(scores);
    const TileSizes sizes{{2, 1}, {2, 2}, {2, 3}};
    every_forward(x, sizes, [&](const Case<T>& y) {
      bool right = in_budget(y);
      if (kind == empty) right = right && all_are(y.o, 0) && all_are(y.lse, minus_infinity);
      if (kind == nan_row) right = right && all_are(y.o, spoiled) && all_are(y.lse, spoiled);
      if (kind == ordinary)
        for (const T& z : y.lse) right = right && z - z == T(0);
      CHECK(right);
    });
    every_backward(x, sizes, [&](const Case<T>& y) {
      bool right = largest_distance<double>(y.dv_, y.template define_gradients<double>().dv) <= tolerance<T>;
      if (kind == empty) right = all_are(y.dq, 0) && all_are(y.dk, 0) && all_are(y.dv_, 0);
      if (kind == nan_row) right = all_are(y.dq, spoiled) && all_are(y.dk, spoiled) && all_are(y.dv_, spoiled);
      CHECK(right);
    });
  });
  CHECK(rows == 781);
}

TEMPLATE_TEST_CASE("E6 E7 softmax and the pairs of every row - step01 step02", "", float, double) {
  using T = TestType;
  every_row([](const std::vector<double>& scores) {
    CAPTURE(scores);
    const Kind kind = kind_of(scores);
    const Index n = Index(scores.size());
    const std::vector<T> x(scores.begin(), scores.end());
    const Slow<const T> in(tensor::x, x.data(), n, 1);
    double sum = 0;
    for (const double s : scores) sum += std::exp(s);
    bool right = true;
    for (const auto softmax : {step01::softmax<T>, step02::softmax<T>}) {
      std::vector<T> a(n, nan_of<T>);
      Memory memory;
      softmax(in, {tensor::a, a.data(), n, 1}, memory);
      if (kind == empty) right = right && all_are(a, 0);
      if (kind == nan_row) right = right && all_are(a, spoiled);
      for (Index j = 0; j < n && kind == ordinary; ++j) right = right && std::abs(double(a[j]) - std::exp(scores[j]) / sum) <= tolerance<T>;
    }
    for (const Index block : {1, 2, 3}) {
      Memory memory;
      const step02::MaxSum<T> pair = step02::max_sum(in, block, memory);
      const T lse = pair.m + std::log(pair.l);
      right = right && (kind == empty ? pair.l == T(0) && lse == T(minus_infinity) : kind == nan_row ? lse != lse : std::abs(double(lse) - std::log(sum)) <= tolerance<T>);
    }
    CHECK(right);
  });
}

TEMPLATE_TEST_CASE("E8 degenerate shapes - step01 step02 step03 step04 step05 step06 step07 step08", "", float, double) {
  using T = TestType;
  for (const bool causal : {false, true})
    for (CaseShape shape : std::vector<CaseShape>{{0, 5, 3, 2}, {5, 0, 3, 2}, {0, 0, 3, 2}, {4, 5, 0, 2}, {4, 5, 3, 0}, {4, 5, 0, 0}, {5, 4, 0, 2}, {0, 0, 0, 0}, {1, 1, 1, 1}, {1, 5, 1, 1}, {5, 1, 1, 1}}) {
      INFO(shape.nq << " x " << shape.nk << ", d " << shape.d << ", dv " << shape.dv << (causal ? ", causal" : ""));
      shape.causal = causal;
      const Case<T> x(shape);
      every_forward(x, small, [&](const Case<T>& y) {
        CHECK(in_budget(y));
        for (Index i = 0; i < y.nq && y.d == 0; ++i) {
          const Index keys = y.raw().keys(i);  // without features every score is 0: the mean
          CHECK(error_at(y.lse, i, {std::log(double(keys))}) <= tolerance<T>);
        }
      });
      every_backward(x, small, [](const Case<T>& y) {
        CHECK(in_budget(y, true));
        if (y.dv == 0) CHECK((all_are(y.dq, 0) && all_are(y.dk, 0)));
      });
    }
}

TEMPLATE_TEST_CASE("E9 any scale - step01 step02 step03 step04 step05 step06 step07 step08", "", float, double) {
  using T = TestType;
  const TileSizes sizes{{1, 1}, {4, 4}, {3, 7}, {32, 32}};
  for (const bool causal : {false, true})
    for (const double scale : {0., -0.4, 1., 1e-30, -1e-30, 20., -20.}) {
      INFO("scale " << scale);
      const Case<T> x({13, 17, 6, 5, 1, 1, causal}, T(scale));
      every_forward(x, sizes, [](const Case<T>& y) { CHECK(in_budget(y)); });
      every_backward(x, sizes, [&](const Case<T>& y) {
        CHECK(in_budget(y, true));
        if (scale == 0) CHECK((all_are(y.dq, 0) && all_are(y.dk, 0)));
      });
    }
  // A huge scale chooses the largest, or with a minus the smallest: that row of V
  for (const double scale : {1e30, -1e30}) {
    Case<T> x({2, 5, 1, 2}, T(scale));
    x.q = {1, 2}, x.k = {1, -3, 7, 2, -4};
    const Index chosen = scale > 0 ? 2 : 4;
    every_forward(x, small, [&](const Case<T>& y) {
      const double a = double(y.v[chosen * 2]), b = double(y.v[chosen * 2 + 1]);
      CHECK(error(y.o, {a, b, a, b}) <= tolerance<T>);
      CHECK(error(y.lse, {scale * double(y.k[chosen]), 2 * scale * double(y.k[chosen])}) <= tolerance<T>);
    });
  }
}

TEMPLATE_TEST_CASE("E9 large and peaked scores - step01 step02 step03 step04 step05 step06 step07 step08", "", float, double) {
  using T = TestType;
  const TileSizes sizes{{1, 1}, {4, 4}, {3, 7}, {32, 32}};
  // All scores far below 0 or far above, and one key that outweighs all others, first, last, or between
  for (const double level : {-5000., 5000.})
    for (const Index peak : {0, 6, 16}) {
      Case<T> x({13, 17, 6, 5}, T(1));
      for (Index i = 0; i < x.nq; ++i) x.q[i * 6] = T(1);
      for (Index j = 0; j < x.nk; ++j) x.k[j * 6] = T(level + (j == peak ? 80 : 0));
      every_forward(x, sizes, [&](const Case<T>& y) {
        CHECK(in_budget(y));
        CHECK(std::abs(double(y.lse[0]) - level) <= 200);
      });
      every_backward(x, sizes, [](const Case<T>& y) { CHECK(in_budget(y, true)); });
    }
}

TEMPLATE_TEST_CASE("Appendix A test vectors - step01 step02 step03 step04 step05 step07 step08", "", float, double) {
  using T = TestType;
  const TileSizes widths{{1, 1}, {1, 2}, {1, 3}};
  const auto expect = [&](const std::vector<double>& scores, const std::vector<double>& v, double o, double lse) {
    every_forward(one_row<T>(scores, v), widths, [&](const Case<T>& y) {
      CHECK(error(y.o, {o}) <= std::max(1e-8, tolerance<T>));
      CHECK(error(y.lse, {lse}) <= std::max(1e-8, tolerance<T>));
    });
  };
  expect({0, 1, 2}, {1, 2, 3}, 2.57521038, 2.40760596);
  expect({minus_infinity, minus_infinity, minus_infinity}, {1, 2, 3}, 0, minus_infinity);
  expect({0, spoiled, 2}, {1, 2, 3}, spoiled, spoiled);
  expect({minus_infinity, spoiled, minus_infinity}, {1, 2, 3}, spoiled, spoiled);
  expect({plus_infinity, 1, 2}, {1, 2, 3}, spoiled, spoiled);
}

}  // namespace
}  // namespace flashsteps
