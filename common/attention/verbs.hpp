#pragma once
// The verbs of attention on tiles: each says what a line of the paper says.
// A matrix with one column is a number per row: m, l, alpha. A verb that returns a tile puts it where its argument by value was:
// moved in, it takes no room on chip. What a mask hides stays hidden through every verb (E2).
#include "common/attention/exp.hpp"
#include "common/attention/head.hpp"
#include "common/attention/loops.hpp"
#include "common/memory/memory.hpp"

namespace flashsteps {

// ---- Products ------------------------------------------------------------------------------------------------------

/// A B                                                                           Eigen: a.matrix() * b.matrix()
template <class T> Tile<T> multiply(const Tile<T>& a, const View<T>& b) {
  Tile<T> c(a.chip(), a.rows(), b.cols);
  product(a, b, c, [](Packet<T>& c, const Packet<T>& sum, Index) { c = sum; });
  return c;
}
/// C += A B
template <class T> void add_product(Tile<T>& c, const Tile<T>& a, const View<T>& b) {
  product(a, b, c, [](Packet<T>& c, const Packet<T>& sum, Index) { c += sum; });
}
/// C = diag(x) C + A B
template <class T> void rescale_add_product(Tile<T>& c, const Tile<T>& x, const Tile<T>& a, const View<T>& b) {
  const Packet<T>* factor = x.column();
  product(a, b, c, [factor](Packet<T>& c, const Packet<T>& sum, Index p) { c = factor[p] * c + sum; });
}

// ---- Rows ----------------------------------------------------------------------------------------------------------

/// x C
template <class T> Tile<T> scaled(Tile<T> c, const T& x) {
  c.array() *= x;
  return c;
}
/// A + B
template <class T> Tile<T> add(const Tile<T>& a, Tile<T> b) {
  b.array() += a.array();
  return b;
}
/// A - B
template <class T> Tile<T> subtract(Tile<T> a, const Tile<T>& b) {
  a.array() -= b.array();
  return a;
}
/// max(A, B), element by element
template <class T> Tile<T> max(const Tile<T>& a, Tile<T> b) {
  b.array() = a.array().max(b.array());
  return b;
}
/// diag(x) C
template <class T> [[gnu::noinline]] void rescale(Tile<T>& c, const Tile<T>& x) { c.array().colwise() *= x.array().col(0); }
/// diag(x)^-1 C; a row with x = 0 has seen no key and becomes 0 (E1, E7)
template <class T> [[gnu::noinline]] void divide(Tile<T>& c, const Tile<T>& x) {
  c.array().colwise() *= x.array().col(0).inverse().eval();
  for (Index i = 0; i < c.rows(); ++i)
    if (x(i) == T(0)) c.array().row(i).setZero();
}
/// rowmax(S)
template <class T> [[gnu::noinline]] Tile<T> row_max(const Tile<T>& s) {
  Tile<T> m(s.chip(), s.rows(), 1);
  m.array() = s.array().rowwise().maxCoeff();
  return m;
}
/// rowsum(P)                                                                     Eigen: p.array().rowwise().sum()
template <class T> [[gnu::noinline]] Tile<T> row_sum(const Tile<T>& p) {
  Tile<T> l(p.chip(), p.rows(), 1);
  sum_columns(p, [&](Index x, const Packet<T>& sum) { l.column()[x] = sum; });
  return l;
}
/// l = diag(x) l + rowsum(P)
template <class T> [[gnu::noinline]] void rescale_add_row_sum(Tile<T>& l, const Tile<T>& x, const Tile<T>& p) {
  sum_columns(p, [&](Index r, const Packet<T>& sum) { l.column()[r] = x.column()[r] * l.column()[r] + sum; });
}
/// rowsum(A o B)
template <class T> Tile<T> row_dot(const Tile<T>& a, Tile<T> b) {
  b.array() *= a.array();
  return row_sum(b);
}
/// E(S, m) = exp(S - m) row by row, with the shift 0 where m = -inf (E6)         Eigen: (s.array().colwise() - m).exp()
template <class T> [[gnu::noinline]] Tile<T> exp_shifted(Tile<T> s, const Tile<T>& m) {
  for_packets<T>(s.packets(), [&]<int P>(Index p) {
    Packet<T> shift[P];
#pragma GCC unroll 4
    for (int r = 0; r < P; ++r) shift[r] = guarded<T>(m.column()[p + r]);
    for (Index j = 0; j < s.cols(); ++j)
#pragma GCC unroll 4
      for (int r = 0; r < P; ++r) {
        Packet<T>& x = s.column(j)[p + r];
        x = packet_exp<T>(x - shift[r]);
      }
  });
  return s;
}
/// E(x, m) of two numbers
template <class T> T exp_shifted(const T& x, const T& m) {
  using std::exp;
  return exp(x - (m == -infinity<T> ? T(0) : m));
}
/// L = m + log(l); a row that has seen no key has l = 0 and L = -inf (E7)
template <class T> Tile<T> log_sum_exp(Tile<T> m, const Tile<T>& l) {
  m.array() += l.array().log();
  return m;
}
/// Replaces the scores of keys that a row may not see, j > i + diagonal, by -inf: they are absent (E2). The tile holds the rows
/// (queries) i and the columns (keys) j of its head.
template <class T> void mask_causal(Tile<T>& s, Range i, Range j, Index diagonal) {
  s.present = {std::vector<Index>(s.rows()), false};
  for (Index r = 0; r < s.rows(); ++r) s.present.count[r] = std::clamp<Index>(i.begin + r + diagonal + 1 - j.begin, 0, s.cols());
  for (Index c = 0; c < s.cols(); ++c) std::fill_n(&s(0, c), std::clamp<Index>(j.begin + c - diagonal - i.begin, 0, s.rows()), -infinity<T>);
}

// ---- One query, whose features lie in the lanes: q_i is [d x 1], a score [1 x 1] -------------------------------------

/// q . k_j
template <class T> Tile<T> dot(const Tile<T>& q, const View<T>& k) {
  const LibraryProduct<T> here(1, q.rows(), 1);
  Tile<T> s(q.chip(), 1, 1, T(0));
  s(0) = (q.bare().col(0) * Eigen::Map<const Eigen::Array<T, -1, 1>>(k.data, q.rows())).sum();
  return s;
}
/// u += x v_j
template <class T> void add_scaled(Tile<T>& u, const Tile<T>& x, const View<T>& v) {
  const LibraryProduct<T> here(u.rows(), 1, 1);
  u.bare().col(0) += x(0) * Eigen::Map<const Eigen::Array<T, -1, 1>>(v.data, u.rows());
}
/// u = alpha u + x v_j
template <class T> void rescale_add_scaled(Tile<T>& u, const Tile<T>& alpha, const Tile<T>& x, const View<T>& v) {
  u.array() *= alpha(0);
  add_scaled(u, x, v);
}
/// l = alpha l + x
template <class T> void rescale_add(Tile<T>& l, const Tile<T>& alpha, const Tile<T>& x) { l.array() = alpha.array() * l.array() + x.array(); }

}  // namespace flashsteps
