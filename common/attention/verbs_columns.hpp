#pragma once
// The verbs on tiles that stand transposed: a column is a query, its keys lie in the lanes. The backward pass is written with
// them, and standard attention, which takes one row of S at a time.
#include "common/attention/verbs.hpp"

namespace flashsteps {

/// The maximum of every column.
/// @param s  [m x n]
/// @return [n]
template <class T> Tile<T> column_max(const Tile<T>& s) {
  Tile<T> m(s.chip(), s.cols(), 1, -infinity<T>);
  if (s.rows() > 0) m.bare().col(0) = s.bare().colwise().maxCoeff().transpose();
  return m;
}
/// The sum of every column.
/// @param p  [m x n]
/// @return [n]
template <class T> Tile<T> column_sum(const Tile<T>& p) {
  Tile<T> l(p.chip(), p.cols(), 1, T(0));
  if (p.rows() > 0) l.bare().col(0) = p.bare().colwise().sum().transpose();
  return l;
}
/// rowsum(A o B) of the matrices that stand transposed
/// @param a,b  [m x n]
/// @return [n]
template <class T> Tile<T> column_dot(const Tile<T>& a, Tile<T> b) {
  b.array() *= a.array();
  return column_sum(b);
}
/// E(S, m) column by column (E6)
/// @param s,m  [m x n] and [n]
/// @return E(S, m), [m x n]
template <class T> [[gnu::noinline]] Tile<T> exp_shifted_columns(Tile<T> s, const Tile<T>& m) {
  each(s, [&](const Packet<T>& x, Index, Index j) { return packet_exp<T>(x - (m(j) == -infinity<T> ? T(0) : m(j))); });
  return s;
}
/// Sets a column with x = 0 to 0: it has seen no key (E1).
/// @param c,x  [m x n] and [n]
template <class T> void clear_empty(Tile<T>& c, const Tile<T>& x) {
  for (Index j = 0; j < c.cols(); ++j)
    if (x(j) == T(0)) c.array().col(j).setZero();
}
/// C diag(x)^-1; a column with x = 0 has seen no key and becomes 0 (E1, E7)
/// @param c,x  [m x n] and [n]
template <class T> void divide_columns(Tile<T>& c, const Tile<T>& x) {
  for (Index j = 0; j < c.cols(); ++j) c.array().col(j) *= T(1) / x(j);
  clear_empty(c, x);
}
/// Hides, as absent, the keys that a query may not see, j > i + diagonal (E2). The tile holds the columns (queries) i and the rows (keys) j.
/// @param s         scores [Bc x Br]
/// @param i,j       queries and keys of the tile
/// @param diagonal  Nk - Nq for a causal mask
template <class T> void mask_causal_columns(Tile<T>& s, Range i, Range j, Index diagonal) {
  s.present = {std::vector<Index>(s.cols()), true};
  for (Index c = 0; c < s.cols(); ++c) s.present.count[c] = std::clamp<Index>(i.begin + c + diagonal + 1 - j.begin, 0, s.rows());
}
/// Hides a column of zeros: the weights of a query that saw no key (E1).
/// @param p  weights [m x n]
template <class T> void hide_empty_columns(Tile<T>& p) {
  p.present = {std::vector<Index>(p.cols(), p.rows()), true};
  for (Index c = 0; c < p.cols(); ++c)
    if ((p.bare().col(c) == T(0)).all()) p.present.count[c] = 0;
}

/// Sets to 0 what is absent.
/// @param x  any shape
template <class T> void clear_absent(Tile<T>& x) {
  const Present& present = x.present;
  if (present.all()) return;
  if (present.by_columns) {
    for (Index j = 0; j < x.cols(); ++j) std::fill(&x(0, j) + present.count[j], &x(0, j) + x.rows(), T(0));
  } else {
    for (Index i = 0; i < x.rows(); ++i)
      for (Index j = present.count[i]; j < x.cols(); ++j) x(i, j) = T(0);
  }
}
/// Of `lines` queries, each with `length` keys in the tile, hides those with L = -inf: they saw no key (6.2).
/// @param present     of the tile
/// @param lse         L of the queries [lines]
/// @param lines       queries
/// @param length      keys
/// @param by_columns  are the queries columns?
template <class T, class Lse> void hide_empty(Present& present, const Lse& lse, Index lines, Index length, bool by_columns) {
  for (Index x = 0; x < lines; ++x) {
    if (lse(x) != -infinity<T>) continue;
    if (present.all()) present = {std::vector<Index>(lines, length), by_columns};
    present.count[x] = 0;
  }
}

/// P = exp(S - L) column by column: what is hidden, and a query with L = -inf, weighs nothing (6.2)
/// @param s,lse  scores [m x n] and L [n]
/// @return P [m x n]
template <class T> [[gnu::noinline]] Tile<T> probabilities_columns(Tile<T> s, const View<T>& lse) {
  each(s, [&](const Packet<T>& x, Index, Index j) { return packet_exp<T>(x - lse(j)); });
  hide_empty<T>(s.present, lse, s.cols(), s.rows(), true);
  clear_absent(s);
  return s;
}
/// dS = P o (dP - D), D by columns
/// @param p,dp,delta  P and dP [m x n], D [n]
/// @return dS [m x n]
template <class T> [[gnu::noinline]] Tile<T> softmax_gradient_columns(const Tile<T>& p, Tile<T> dp, const View<T>& delta) {
  for (Index j = 0; j < dp.cols(); ++j) dp.array().col(j) = p.array().col(j) * (dp.array().col(j) - delta(j));
  dp.present = p.present;
  clear_absent(dp);
  return dp;
}
/// P = exp(S - L) row by row, in the same way
/// @param s,lse  scores [m x n] and L [m]
/// @return P [m x n]
template <class T> [[gnu::noinline]] Tile<T> probabilities(Tile<T> s, const Tile<T>& lse) {
  each(s, [&](const Packet<T>& x, Index r, Index) { return packet_exp<T>(x - lse.column()[r]); });
  hide_empty<T>(s.present, lse, s.rows(), s.cols(), false);
  clear_absent(s);
  return s;
}
/// dS = P o (dP - D), D by rows
/// @param p,dp,delta  P and dP [m x n], D [m]
/// @return dS [m x n]
template <class T> [[gnu::noinline]] Tile<T> softmax_gradient(const Tile<T>& p, Tile<T> dp, const Tile<T>& delta) {
  dp.array() = p.array() * (dp.array().colwise() - delta.array().col(0));
  dp.present = p.present;
  clear_absent(dp);
  return dp;
}
/// A^T
/// @param a  [m x n]
/// @return [n x m], a copy
template <class T> Tile<T> transposed(const Tile<T>& a) {
  Tile<T> result(a.chip(), a.cols(), a.rows());
  gather(result, a.bare().matrix().transpose());
  return result;
}

// In float and double the larger ones are compiled once, in verbs.cpp.
/// @cond
extern template Tile<float> exp_shifted_columns(Tile<float>, const Tile<float>&);
extern template Tile<float> probabilities_columns(Tile<float>, const View<float>&);
extern template Tile<float> softmax_gradient_columns(const Tile<float>&, Tile<float>, const View<float>&);
extern template Tile<float> transposed(const Tile<float>&);
extern template Tile<double> exp_shifted_columns(Tile<double>, const Tile<double>&);
extern template Tile<double> probabilities_columns(Tile<double>, const View<double>&);
extern template Tile<double> softmax_gradient_columns(const Tile<double>&, Tile<double>, const View<double>&);
extern template Tile<double> transposed(const Tile<double>&);
/// @endcond

}  // namespace flashsteps
