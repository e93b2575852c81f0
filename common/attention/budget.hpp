#pragma once
// How exact a result must be: not further from the definition than k times what standard attention in the same number type is,
// or than a floor of rounding errors that no algorithm avoids.
//   max|x - ref| <= k max(max|naive - ref|, 2 u s),   k = 2, for gradients 3,   u the unit roundoff of T.
// With A = max_ij |scale| sum |q||k| and G = max_ij sum |do||v|, s is max|v| (1 + A) for o, 1 + A for lse, |scale| (1 + A) G max|k|
// for dq, |scale| (1 + A) G max_je sum_i P_ij |q_ie| for dk, (1 + A) max_je sum_i P_ij |do_ie| for dv.
#include "common/attention/compare.hpp"
#include "common/attention/definition.hpp"
#include <Eigen/Core>
#include <array>

namespace flashsteps {

/// @cond
template <class T> struct WiderType { using type = double; };
template <> struct WiderType<double> { using type = long double; };
/// @endcond
/// The type in which the definition is evaluated beside results in T: double for float, long double for double.
template <class T> using Wider = typename WiderType<T>::type;

/// The results that are judged.
enum class Result { o, lse, dq, dk, dv };
/// What programs call them, by number.
inline constexpr std::array<const char*, 5> result_text{"o", "lse", "dq", "dk", "dv"};

/// Where a step's results lie. Those that are missing are not judged.
template <class T> struct Results {
  /// @{
  Raw<T> o, lse, dq, dk, dv;  ///< one result [rows x cols]
  /// @}
};

/// The type that S, P and O are rounded to, where it is narrower than T, in which everything is multiplied and summed.
template <class T> struct Rounding {
  double unit = std::numeric_limits<T>::epsilon() / 2;  ///< half the distance of 1 to the next number
  T (*round)(T) = nullptr;                              ///< to that type and back; none: it is T
  /// Rounds n numbers from x on.
  /// @param x  the first of them
  /// @param n  how many
  void operator()(T* x, Index n) const {
    for (Index i = 0; round && i < n; ++i) x[i] = round(x[i]);
  }
};

/// The distances of a step and of standard attention from the definition, over the heads that were added.
template <class T> class Judgement {
 public:
  /// @param rounding  of S, P and O, in the step and in standard attention beside it
  explicit Judgement(const Rounding<T>& rounding = {}) : rounding_(rounding) {}

  /// The heads of both.
  /// @param other  is added
  /// @return *this
  Judgement& operator+=(const Judgement& other) {
    for (int r = 0; r < 5; ++r) error_[r] = worse(other.error_[r], error_[r]), naive_[r] = std::max(other.naive_[r], naive_[r]);
    for (auto member : {&Judgement::a_, &Judgement::g_, &Judgement::k_, &Judgement::v_, &Judgement::pq_, &Judgement::pdo_, &Judgement::scale_})
      this->*member = std::max(this->*member, other.*member);
    return *this;
  }
  /// The error of one result beside its budget.
  /// @param result  which one
  /// @return its largest error, and 2 or 3 times what is allowed for it
  Comparison of(Result result) const {
    const double u = rounding_.unit;
    const std::array<double, 5> s{v_ * (1 + a_), 1 + a_, scale_ * (1 + a_) * g_ * k_, scale_ * (1 + a_) * g_ * pq_, (1 + a_) * pdo_};
    const int r = int(result);
    return {error_[r], (result == Result::o || result == Result::lse ? 2 : 3) * std::max(naive_[r], 2 * u * s[r])};
  }

  /// Judges the rows `rows` of one head; gradients then count the contributions of these rows alone.
  /// @param head     Q, K, V, with gradients dO
  /// @param results  what the step computed
  /// @param rows     query rows
  /// @return *this
  Judgement& add(const RawHead<T>& head, const Results<T>& results, const std::vector<Index>& rows) {
    return add_group(std::vector<RawHead<T>>{head}, std::vector<Results<T>>{results}, rows);
  }
  /// Judges the heads that share K and V, whose dK and dV are sums over them: results[0] holds those.
  /// @param heads    the query heads
  /// @param results  of each
  /// @param rows     query rows, the same of each head
  /// @return *this
  Judgement& add_group(const std::vector<RawHead<T>>& heads, const std::vector<Results<T>>& results, const std::vector<Index>& rows) {
    using R = Wider<T>;
    if (heads.empty()) return *this;
    const RawHead<T>& first = heads.front();
    const bool gradients = first.d_o.data != nullptr;
    scale_ = std::max(scale_, finite_part(first.scale));
    GradientSums<R> reference(first);
    GradientSums<T> naive(first);
    std::vector<double> pq(gradients ? first.seq_k * first.head_dim : 0), pdo(gradients ? first.seq_k * first.value_dim : 0);
    for (std::size_t h = 0; h < heads.size(); ++h) {
      const RawHead<T>& head = heads[h];
      std::fill(reference.dq.begin(), reference.dq.end(), R(0));
      std::fill(naive.dq.begin(), naive.dq.end(), T(0));
      for (const Index i : rows) {
        const RowResult<R> row = define_row<R>(head, i);
        const RowResult<T> plain = naive_row(head, i, rounding_);
        compare_row(results[h].o, i, row.o, plain.o, Result::o, Spoiled::either);
        compare_row(results[h].lse, i, std::vector<R>{row.lse}, std::vector<T>{plain.lse}, Result::lse, Spoiled::same);
        measure_row(head, i, row, pq, pdo);
        if (!gradients) continue;
        define_gradient_row(head, i, row, reference);
        naive_gradient_row(head, i, plain, naive);
        compare(results[h].dq, i, reference.dq, naive.dq, head.head_dim, Result::dq);
      }
    }
    if (!gradients) return *this;
    for (Index j = 0; j < first.seq_k; ++j) {
      compare(results.front().dk, j, reference.dk, naive.dk, first.head_dim, Result::dk);
      compare(results.front().dv, j, reference.dv, naive.dv, first.value_dim, Result::dv);
    }
    for (const double x : pq) pq_ = std::max(pq_, x);
    for (const double x : pdo) pdo_ = std::max(pdo_, x);
    return *this;
  }

  /// One row of standard attention in T, with Eigen's products.
  /// @param head      Q, K and V
  /// @param i         the row
  /// @param rounding  of S, P and O
  /// @return P, O and L of this row
  static RowResult<T> naive_row(const RawHead<T>& head, Index i, const Rounding<T>& rounding = {}) {
    const Index keys = head.keys(i);
    RowResult<T> row{std::vector<T>(keys), std::vector<T>(head.value_dim, T(0)), -std::numeric_limits<T>::infinity()};
    if (keys == 0) return row;
    Vector s(row.p.data(), keys), o(row.o.data(), head.value_dim);
    s.matrix() = matrix(head.k, keys, head.head_dim) * vector(head.q, i, head.head_dim).matrix() * head.scale;
    rounding(s.data(), keys);
    const T top = s.maxCoeff();
    s = (s - top).exp();
    const T sum = s.sum();
    row.lse = top + std::log(sum);
    s /= sum;
    rounding(s.data(), keys);
    o.matrix() = matrix(head.v, keys, head.value_dim).transpose() * s.matrix();
    rounding(o.data(), head.value_dim);
    return row;
  }

 private:
  using Vector = Eigen::Map<Eigen::Array<T, -1, 1>>;
  Rounding<T> rounding_;
  std::array<double, 5> error_{}, naive_{};
  double a_ = 0, g_ = 0, k_ = 0, v_ = 0, pq_ = 0, pdo_ = 0, scale_ = 0;

  static auto matrix(const Raw<T>& x, Index rows, Index cols) {
    return Eigen::Map<const Eigen::Matrix<T, -1, -1, Eigen::RowMajor>, 0, Eigen::OuterStride<>>(x.data, rows, cols, Eigen::OuterStride<>(x.stride));
  }
  static auto vector(const Raw<T>& x, Index row, Index cols) { return Eigen::Map<const Eigen::Array<T, -1, 1>>(x.data + row * x.stride, cols); }
  static double finite_part(double x) { return x - x == 0 ? std::abs(x) : 0; }

  static void naive_gradient_row(const RawHead<T>& head, Index i, const RowResult<T>& row, GradientSums<T>& sums) {
    const Index keys = head.keys(i);
    if (keys == 0) return;
    const auto d_o = vector(head.d_o, i, head.value_dim);
    const Eigen::Map<const Eigen::Array<T, -1, 1>> p(row.p.data(), keys), o(row.o.data(), head.value_dim);
    const Eigen::Array<T, -1, 1> dp = (matrix(head.v, keys, head.value_dim) * d_o.matrix()).array();
    const T delta = (p * dp).sum() - (head.d_lse.data ? head.d_lse(i, 0) : T(0));
    const Eigen::Array<T, -1, 1> ds = head.scale * p * (dp - delta);
    Vector(sums.dq.data() + i * head.head_dim, head.head_dim).matrix() = matrix(head.k, keys, head.head_dim).transpose() * ds.matrix();
    for (Index j = 0; j < keys; ++j) {
      Vector(sums.dk.data() + j * head.head_dim, head.head_dim) += ds(j) * vector(head.q, i, head.head_dim);
      Vector(sums.dv.data() + j * head.value_dim, head.value_dim) += p(j) * d_o;
    }
  }

  /// The sizes that the floor of the budget is made of. What is not finite has no size.
  template <class R> void measure_row(const RawHead<T>& head, Index i, const RowResult<R>& row, std::vector<double>& pq, std::vector<double>& pdo) {
    for (Index j = 0; j < head.keys(i); ++j) {
      double qk = 0, dv = 0;
      for (Index x = 0; x < head.head_dim; ++x) {
        qk += std::abs(double(head.q(i, x)) * double(head.k(j, x)));
        k_ = std::max(k_, finite_part(head.k(j, x)));
        if (!pq.empty()) pq[j * head.head_dim + x] += finite_part(double(row.p[j]) * double(head.q(i, x)));
      }
      for (Index e = 0; e < head.value_dim; ++e) {
        v_ = std::max(v_, finite_part(head.v(j, e)));
        if (!pdo.empty()) dv += std::abs(double(head.d_o(i, e)) * double(head.v(j, e)));
        if (!pdo.empty()) pdo[j * head.value_dim + e] += finite_part(double(row.p[j]) * double(head.d_o(i, e)));
      }
      a_ = std::max(a_, finite_part(double(head.scale) * qk));
      g_ = std::max(g_, finite_part(dv));
    }
  }

  template <class R> void compare_row(const Raw<T>& x, Index i, const std::vector<R>& reference, const std::vector<T>& naive, Result result, Spoiled spoiled) {
    for (std::size_t e = 0; e < reference.size(); ++e) compare_one(x, i, Index(e), reference[e], naive[e], result, spoiled);
  }
  template <class R> void compare(const Raw<T>& x, Index i, const std::vector<R>& reference, const std::vector<T>& naive, Index cols, Result result) {
    for (Index e = 0; e < cols; ++e) compare_one(x, i, e, reference[i * cols + e], naive[i * cols + e], result, Spoiled::either);
  }
  template <class R> void compare_one(const Raw<T>& x, Index i, Index e, const R& reference, const T& naive, Result result, Spoiled spoiled) {
    const int r = int(result);
    if (x.data) error_[r] = worse(double(distance(R(x(i, e)), reference, spoiled)), error_[r]);
    naive_[r] = std::max(naive_[r], finite_part(double(R(naive) - reference)));
  }
};

}  // namespace flashsteps
