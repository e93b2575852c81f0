// The three loops that are not lines of Eigen - the exponential, the product, the row sums - held to their Eigen expressions and to
// bounds of their rounding errors, and the bits that the steps rely on.
#include "tests/catch.hpp"
#include "common/attention/compare.hpp"
#include "common/attention/verbs_columns.hpp"
#include <cstring>
#include <random>

using namespace flashsteps;

namespace {

template <class T> constexpr T u = std::numeric_limits<T>::epsilon() / 2;  // unit roundoff
template <class T> using Matrix = Eigen::Array<T, -1, -1>;

template <class T> T exponential(T x) {
  const Packet<T> y = packet_exp<T>(Packet<T>{} + x);
  return y[lanes<T> - 1];
}

/// Matrices of seeded normal numbers, as tiles.
class Draw {
 public:
  explicit Draw(unsigned seed) : random_(seed) {}
  template <class T> Tile<T> tile(Memory& memory, Index rows, Index cols) {
    Tile<T> x = memory.tile(rows, cols, T(0));
    for (Index j = 0; j < cols; ++j)
      for (Index i = 0; i < rows; ++i) x(i, j) = T(normal_(random_));
    return x;
  }
  Index size(Index low, Index high) { return std::uniform_int_distribution<Index>(low, high)(random_); }

 private:
  std::mt19937 random_;
  std::normal_distribution<double> normal_;
};
template <class T> Matrix<T> eigen(const Tile<T>& x) { return x.bare(); }
/// The beginning of a tile: `rows` rows of `cols` columns.
template <class T> Tile<T> corner(Memory& memory, const Tile<T>& x, Index rows, Index cols) {
  Tile<T> part = memory.tile(rows, cols, T(0));
  part.bare() = x.array().topLeftCorner(rows, cols);
  return part;
}
template <class T> bool same(const Tile<T>& a, const Tile<T>& b) {
  for (Index j = 0; j < a.cols(); ++j)
    if (std::memcmp(a.column(j), b.column(j), a.rows() * sizeof(T)) != 0) return false;
  return a.rows() == b.rows() && a.cols() == b.cols();
}
/// max |a - b| / bound, element by element: at most 1 if every element is within its bound; NaN if one is not a number.
template <class T> double worst_share(const Matrix<T>& a, const Matrix<T>& b, const Matrix<T>& bound) {
  double worst = 0;
  for (Index i = 0; i < a.size(); ++i) {
    const double error = double(std::abs(a(i) - b(i)));
    worst = worse(error == 0 ? 0. : error / double(bound(i)), worst);
  }
  return worst;
}

}  // namespace

// ---- The exponential -------------------------------------------------------------------------------------------------

// Its relative error: that of the polynomial near 0 (2e-7, 4e-16), and |x| times the relative error of x log2(e) - the rounding of the
// constant, 1.4e-8 in float and u in double, and where there is no fused multiply-add that of the product, u; in double one more u
// for the product with log(2).
TEST_CASE("packet exp is e to the x in float") {
  double worst = 0;
  for (const double low : {-1e-6, -0.01, -0.5, -3., -20., -87., 0.01, 0.5, 3., 20., 88.})
    for (int n = 0; n <= 200'000; ++n) {
      const float x = float(low * n / 200'000);
      const double exact = std::exp(double(x)), error = std::abs(double(exponential(x)) - exact) / exact;
      worst = worse(error / (2e-7 + (1.4e-8 + double(u<float>)) * std::abs(double(x))), worst);
    }
  CHECK(worst <= 1);
}
TEST_CASE("packet exp is e to the x in double") {
  long double worst = 0;
  for (const double low : {-1e-12, -0.01, -0.5, -3., -20., -708., 0.01, 0.5, 3., 20., 709.})
    for (int n = 0; n <= 50'000; ++n) {
      const double x = low * n / 50'000;
      const long double exact = std::exp((long double)x), error = std::abs((long double)exponential(x) - exact) / exact;
      worst = worse(error / (4e-16L + 3 * (long double)u<double> * std::abs((long double)x)), worst);
    }
  CHECK(worst <= 1);
}
// The sum of a row counts on it: no weight is larger than that of the maximum, which is 1.
TEMPLATE_TEST_CASE("packet exp is exactly 1 at 0 and never larger below", "", float, double) {
  using T = TestType;
  CHECK(exponential(T(0)) == 1);
  CHECK(exponential(-T(0)) == 1);
  T largest(0), negative(0);
  for (int exponent = 0; exponent < 40; ++exponent)
    for (int n = 0; n < 4096; ++n) {
      const T y = exponential(-std::ldexp(T(1) + T(n) / 4096, 6 - exponent));
      largest = worse(y, largest), negative = worse(-y, negative);
    }
  CHECK(largest <= 1);
  CHECK(negative == 0);
}
TEMPLATE_TEST_CASE("packet exp is 0 far below and at minus infinity and NaN at NaN and infinity", "", float, double) {
  using T = TestType;
  for (const T x : {-infinity<T>, std::numeric_limits<T>::lowest(), T(-1e30), T(-1e5), T(-710), std::is_same_v<T, float> ? T(-87.1) : T(-708.1)})
    CHECK(exponential(x) == 0);
  CHECK_FALSE(std::signbit(exponential(-infinity<T>)));
  CHECK(std::isnan(exponential(std::numeric_limits<T>::quiet_NaN())));
  CHECK(std::isnan(exponential(-std::numeric_limits<T>::quiet_NaN())));
  CHECK(exponential(std::is_same_v<T, float> ? T(-86.9) : T(-707.9)) > 0);
}
// A lane does not depend on its neighbours, be they NaN.
TEMPLATE_TEST_CASE("packet exp treats every lane alike", "", float, double) {
  using T = TestType;
  for (int lane = 0; lane < lanes<T>; ++lane)
    for (const T neighbour : {T(0), T(-1000), -infinity<T>, std::numeric_limits<T>::quiet_NaN()}) {
      Packet<T> x = Packet<T>{} + neighbour;
      x[lane] = T(-1.25);
      const Packet<T> y = packet_exp<T>(x);
      CHECK(y[lane] == exponential(T(-1.25)));
    }
}

// ---- Each loop beside its Eigen expression ---------------------------------------------------------------------------

// Both sum the same n products in some order: each is within n u sum|a||b| of the exact value (and one rounding more for what is
// added and rescaled), to first order; 1.01 for the rest.
TEMPLATE_TEST_CASE("products of ragged tiles equal those of Eigen", "", float, double) {
  using T = TestType;
  double worst = 0;
  for (unsigned seed = 1; seed <= 300; ++seed) {
    Draw draw(seed);
    Memory memory;
    const Index rows = draw.size(1, 70), terms = draw.size(1, 40), cols = draw.size(1, 40);
    const Tile<T> a = draw.tile<T>(memory, rows, terms), b = draw.tile<T>(memory, terms, cols), t = draw.tile<T>(memory, cols, terms);
    const Tile<T> c = draw.tile<T>(memory, rows, cols), x = draw.tile<T>(memory, rows, 1);
    const T gamma = T(1.01) * 2 * T(terms + 2) * u<T>;
    const Matrix<T> ab = (a.bare().matrix() * b.bare().matrix()).array(), size = (a.bare().abs().matrix() * b.bare().abs().matrix()).array();
    const Matrix<T> at = (a.bare().matrix() * t.bare().matrix().transpose()).array();
    const Matrix<T> at_size = (a.bare().abs().matrix() * t.bare().abs().matrix().transpose()).array();
    worst = worse(worst_share<T>(eigen(multiply(a, view(b))), ab, gamma * size), worst);
    worst = worse(worst_share<T>(eigen(multiply(a, transpose(view(t)))), at, gamma * at_size), worst);
    Tile<T> sum = c;
    add_product(sum, a, view(b));
    worst = worse(worst_share<T>(eigen(sum), c.bare() + ab, gamma * (c.bare().abs() + size)), worst);
    Tile<T> rescaled = c;
    rescale_add_product(rescaled, x, a, view(b));
    const Matrix<T> xc = c.bare().colwise() * x.bare().col(0);
    worst = worse(worst_share<T>(eigen(rescaled), xc + ab, gamma * (xc.abs() + size)), worst);
  }
  CHECK(worst <= 1);
}
// Sums of n numbers, as above.
TEMPLATE_TEST_CASE("row sums of ragged tiles equal those of Eigen", "", float, double) {
  using T = TestType;
  double worst = 0;
  for (unsigned seed = 1; seed <= 300; ++seed) {
    Draw draw(seed);
    Memory memory;
    const Index rows = draw.size(1, 70), cols = draw.size(1, 60);
    const Tile<T> p = draw.tile<T>(memory, rows, cols), l = draw.tile<T>(memory, rows, 1), x = draw.tile<T>(memory, rows, 1);
    const T gamma = T(1.01) * 2 * T(cols + 2) * u<T>;
    const Matrix<T> sum = p.bare().rowwise().sum(), size = p.bare().abs().rowwise().sum();
    worst = worse(worst_share<T>(eigen(row_sum(p)), sum, gamma * size), worst);
    Tile<T> rescaled = l;
    rescale_add_row_sum(rescaled, x, p);
    const Matrix<T> xl = x.bare() * l.bare();
    worst = worse(worst_share<T>(eigen(rescaled), xl + sum, gamma * (xl.abs() + size)), worst);
    CHECK((row_max(p).bare() == p.bare().rowwise().maxCoeff()).all());
  }
  CHECK(worst <= 1);
}
// Each exponential is within the bound of packet exp, |x| <= 20 here; Eigen's own within 2 units in the last place or so.
TEMPLATE_TEST_CASE("shifted exponentials of ragged tiles equal those of Eigen", "", float, double) {
  using T = TestType;
  double worst = 0;
  for (unsigned seed = 1; seed <= 300; ++seed) {
    Draw draw(seed);
    Memory memory;
    const Index rows = draw.size(1, 70), cols = draw.size(1, 60);
    const Tile<T> s = draw.tile<T>(memory, rows, cols);
    const T bound = T(60) * u<T>;
    Tile<T> m = row_max(s);
    const Matrix<T> rows_shifted = (s.bare().colwise() - m.bare().col(0)).exp();
    worst = worse(worst_share<T>(eigen(exp_shifted(s, m)), rows_shifted, bound * rows_shifted), worst);
    const Tile<T> top = column_max(s);
    const Matrix<T> columns_shifted = (s.bare().rowwise() - top.bare().col(0).transpose()).exp();
    worst = worse(worst_share<T>(eigen(exp_shifted_columns(s, top)), columns_shifted, bound * columns_shifted), worst);
    // A row that has seen no key: the shift is 0 (E6)
    Tile<T> none = memory.tile(rows, cols, -infinity<T>);
    m.array() = -infinity<T>;
    CHECK((exp_shifted(std::move(none), m).bare() == T(0)).all());
  }
  CHECK(worst <= 1);
}

// ---- Bits ------------------------------------------------------------------------------------------------------------

// The loops take packets and columns in blocks of several sizes. Whichever block an element falls into, its bits are the same: so the
// bits of a row do not depend on how many rows stand beside it, nor on how many keys follow.
TEMPLATE_TEST_CASE("a row has the same bits whatever stands beside it", "", float, double) {
  using T = TestType;
  for (unsigned seed = 1; seed <= 200; ++seed) {
    Draw draw(seed);
    Memory memory;
    const Index rows = draw.size(1, 90), terms = draw.size(1, 20), cols = draw.size(1, 30);
    const Index few_rows = draw.size(1, rows), few_cols = draw.size(1, cols);
    CAPTURE(seed, rows, terms, cols, few_rows, few_cols);
    const Tile<T> a = draw.tile<T>(memory, rows, terms), b = draw.tile<T>(memory, terms, cols), c = draw.tile<T>(memory, rows, cols);
    const Tile<T> x = draw.tile<T>(memory, rows, 1), l = draw.tile<T>(memory, rows, 1);
    const Tile<T> a_ = corner(memory, a, few_rows, terms), b_ = corner(memory, b, terms, few_cols), c_ = corner(memory, c, few_rows, few_cols);
    const Tile<T> x_ = corner(memory, x, few_rows, 1), l_ = corner(memory, l, few_rows, 1);
    const auto alike = [&](const Tile<T>& whole, const Tile<T>& part) { return same(corner(memory, whole, part.rows(), part.cols()), part); };
    CHECK(alike(multiply(a, view(b)), multiply(a_, view(b_))));
    Tile<T> whole = Tile<T>(c), part = Tile<T>(c_);
    add_product(whole, a, view(b)), add_product(part, a_, view(b_));
    CHECK(alike(whole, part));
    whole = Tile<T>(c), part = Tile<T>(c_);
    rescale_add_product(whole, x, a, view(b)), rescale_add_product(part, x_, a_, view(b_));
    CHECK(alike(whole, part));
    Tile<T> top = row_max(c);
    CHECK(alike(exp_shifted(c, top), exp_shifted(c_, corner(memory, top, few_rows, 1))));
    // Row sums: the columns that follow weigh 0, as keys do that are masked
    Tile<T> zeros = c;
    zeros.array().rightCols(cols - few_cols) = T(0);
    CHECK(alike(row_sum(zeros), row_sum(c_)));
    whole = Tile<T>(l), part = Tile<T>(l_);
    rescale_add_row_sum(whole, x, zeros), rescale_add_row_sum(part, x_, c_);
    CHECK(alike(whole, part));
    // And products: the terms that follow weigh 0
    const Index few_terms = draw.size(1, terms);
    Tile<T> weights = a;
    weights.array().rightCols(terms - few_terms) = T(0);
    CHECK(alike(multiply(weights, view(b)), multiply(corner(memory, a, few_rows, few_terms), view(corner(memory, b, few_terms, few_cols)))));
  }
}
