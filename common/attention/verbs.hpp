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
/// @param a,b  [m x n] and [n x p]
/// @return [m x p]
template <class T> Tile<T> multiply(const Tile<T>& a, const View<T>& b) {
  Tile<T> c(a.chip(), a.rows(), b.cols);
  product(a, b, c, [](Packet<T>& c, const Packet<T>& sum, Index) { c = sum; });
  return c;
}
/// C += A B
/// @param c,a,b  [m x p], [m x n] and [n x p]
template <class T> void add_product(Tile<T>& c, const Tile<T>& a, const View<T>& b) {
  product(a, b, c, [](Packet<T>& c, const Packet<T>& sum, Index) { c += sum; });
}
/// C = diag(x) C + A B
/// @param c,x,a,b  [m x p], [m], [m x n] and [n x p]
template <class T> void rescale_add_product(Tile<T>& c, const Tile<T>& x, const Tile<T>& a, const View<T>& b) {
  const Packet<T>* factor = x.column();
  product(a, b, c, [factor](Packet<T>& c, const Packet<T>& sum, Index p) { c = multiply_add<T>(factor[p], c, sum); });
}

// ---- Rows ----------------------------------------------------------------------------------------------------------

/// x C
/// @param c  any shape
/// @param x  a number
/// @return x C
template <class T> Tile<T> scaled(Tile<T> c, const T& x) {
  c.array() *= x;
  return c;
}
/// A + B
/// @param a,b  of one shape
/// @return A + B
template <class T> Tile<T> add(const Tile<T>& a, Tile<T> b) {
  b.array() += a.array();
  return b;
}
/// A - B
/// @param a,b  of one shape
/// @return A - B
template <class T> Tile<T> subtract(Tile<T> a, const Tile<T>& b) {
  a.array() -= b.array();
  return a;
}
/// max(A, B), element by element
/// @param a,b  of one shape
/// @return the larger ones
template <class T> Tile<T> max(const Tile<T>& a, Tile<T> b) {
  b.array() = a.array().max(b.array());
  return b;
}
/// diag(x) C
/// @param c,x  [m x n] and [m]
template <class T> [[gnu::noinline]] void rescale(Tile<T>& c, const Tile<T>& x) { c.array().colwise() *= x.array().col(0); }
/// diag(x)^-1 C; a row with x = 0 has seen no key and becomes 0 (E1, E7)
/// @param c,x  [m x n] and [m]
template <class T> [[gnu::noinline]] void divide(Tile<T>& c, const Tile<T>& x) {
  c.array().colwise() *= x.array().col(0).inverse().eval();
  for (Index i = 0; i < c.rows(); ++i)
    if (x(i) == T(0)) c.array().row(i).setZero();
}
/// rowmax(S)
/// @param s  [m x n], n at least 1
/// @return [m]
template <class T> [[gnu::noinline]] Tile<T> row_max(const Tile<T>& s) {
  Tile<T> m(s.chip(), s.rows(), 1);
  m.array() = s.array().rowwise().maxCoeff();
  return m;
}
/// rowsum(P)                                                                     Eigen: p.array().rowwise().sum()
/// @param p  [m x n]
/// @return [m]
template <class T> [[gnu::noinline]] Tile<T> row_sum(const Tile<T>& p) {
  Tile<T> l(p.chip(), p.rows(), 1);
  sum_columns(p, [&](Index x, const Packet<T>& sum) { l.column()[x] = sum; });
  return l;
}
/// l = diag(x) l + rowsum(P)
/// @param l,x,p  [m], [m] and [m x n]
template <class T> [[gnu::noinline]] void rescale_add_row_sum(Tile<T>& l, const Tile<T>& x, const Tile<T>& p) {
  sum_columns(p, [&](Index r, const Packet<T>& sum) { l.column()[r] = multiply_add<T>(x.column()[r], l.column()[r], sum); });
}
/// rowsum(A o B)
/// @param a,b  [m x n]
/// @return [m]
template <class T> Tile<T> row_dot(const Tile<T>& a, Tile<T> b) {
  b.array() *= a.array();
  return row_sum(b);
}
/// E(S, m) = exp(S - m) row by row, with the shift 0 where m = -inf (E6)         Eigen: (s.array().colwise() - m).exp()
/// @param s,m  [m x n] and [m]
/// @return E(S, m), [m x n]
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
/// @param x,m  a score and the maximum
/// @return exp(x - m), and 0 for x = m = -inf
template <class T> T exp_shifted(const T& x, const T& m) {
  using std::exp;
  return exp(x - (m == -infinity<T> ? T(0) : m));
}
/// L = m + log(l); a row that has seen no key has l = 0 and L = -inf (E7)
/// @param m,l  [m] each
/// @return L, [m]
template <class T> Tile<T> log_sum_exp(Tile<T> m, const Tile<T>& l) {
  m.array() += l.array().log();
  return m;
}
/// Replaces the scores of keys that a row may not see, j > i + diagonal, by -inf: they are absent (E2). The tile holds the rows
/// (queries) i and the columns (keys) j of its head.
/// @param s         scores [Br x Bc]
/// @param i,j       queries and keys of the tile
/// @param diagonal  Nk - Nq for a causal mask
template <class T> void mask_causal(Tile<T>& s, Range i, Range j, Index diagonal) {
  s.present = {std::vector<Index>(s.rows()), false};
  for (Index r = 0; r < s.rows(); ++r) s.present.count[r] = std::clamp<Index>(i.begin + r + diagonal + 1 - j.begin, 0, s.cols());
  for (Index c = 0; c < s.cols(); ++c) std::fill_n(&s(0, c), std::clamp<Index>(j.begin + c - diagonal - i.begin, 0, s.rows()), -infinity<T>);
}

// ---- One query, whose features lie in the lanes: q_i is [d x 1], a score [1 x 1] -------------------------------------

/// q . k_j
/// @param q  [d x 1]
/// @param k  [1 x d]
/// @return [1 x 1]
template <class T> Tile<T> dot(const Tile<T>& q, const View<T>& k) {
  const LibraryProduct<T> here(1, q.rows(), 1);
  Tile<T> s(q.chip(), 1, 1, T(0));
  s(0) = (q.bare().col(0) * Eigen::Map<const Eigen::Array<T, -1, 1>>(k.data, q.rows())).sum();
  return s;
}
// A sum over all keys, term by term, would lose what is small beside it: with 8192 keys an error ten times that of sums by tiles.
// So it stands beside what rounding lost, as a tile with two columns, and the next term takes that along (Kahan, 1965).

/// One term more. The sum that is meant is sum - lost.
/// @param sum,lost  the sum, and what it has too much; the old `lost` is overwritten
/// @param term      is added; the old `lost` was taken from it
template <class T> [[gnu::always_inline]] inline void add_exactly(T& sum, T& lost, const T& term) {
  const T total = sum + term;
  lost = (total - sum) - term;
  sum = total;
}
/// u += x v_j
/// @param u    the sum, and what rounding lost [dv x 2]
/// @param x,v  [1 x 1] and [1 x dv]
template <class T> [[gnu::noinline]] void add_scaled(Tile<T>& u, const Tile<T>& x, const View<T>& v) {
  T *__restrict const sum = &u(0, 0), *__restrict const lost = &u(0, 1);
  const T weight = x(0), *__restrict const value = v.data;
  for (Index e = 0; e < u.rows(); ++e) {
    T term = -lost[e];
    add_number(term, weight, value[e]);
    add_exactly(sum[e], lost[e], term);
  }
}
/// o += x (v_j - o)
/// @param o    the mean, and what rounding lost [dv x 2]
/// @param x,v  [1 x 1] and [1 x dv]
template <class T> [[gnu::noinline]] void add_scaled_difference(Tile<T>& o, const Tile<T>& x, const View<T>& v) {
  T *__restrict const sum = &o(0, 0), *__restrict const lost = &o(0, 1);
  const T weight = x(0), *__restrict const value = v.data;
  for (Index e = 0; e < o.rows(); ++e) {
    T term = -lost[e];
    add_number(term, weight, T(value[e] - sum[e]));
    add_exactly(sum[e], lost[e], term);
  }
  // All weight is on this key: what o was, were it 1e30, is out (unless it is not finite, E5)
  if (weight == T(1))
    for (Index e = 0; e < o.rows(); ++e)
      if (sum[e] == sum[e] && sum[e] != infinity<T> && sum[e] != -infinity<T>) sum[e] = value[e], lost[e] = T(0);
}
/// u = alpha u + x v_j
/// @param u          the sum, and what rounding lost [dv x 2]
/// @param alpha,x,v  [1 x 1], [1 x 1] and [1 x dv]
template <class T> void rescale_add_scaled(Tile<T>& u, const Tile<T>& alpha, const Tile<T>& x, const View<T>& v) {
  u.array() *= alpha(0);
  add_scaled(u, x, v);
}
/// l += x
/// @param l  the sum, and what rounding lost [1 x 2]
/// @param x  [1 x 1]
template <class T> void accumulate(Tile<T>& l, const Tile<T>& x) { add_exactly(l(0, 0), l(0, 1), T(x(0) - l(0, 1))); }
/// l = alpha l + x
/// @param l        the sum, and what rounding lost [1 x 2]
/// @param alpha,x  [1 x 1] each
template <class T> void rescale_add(Tile<T>& l, const Tile<T>& alpha, const Tile<T>& x) {
  l.array() *= alpha(0);
  accumulate(l, x);
}
/// What such a sum has come to, [rows x 1]
/// @param u  the sum, and what rounding lost [rows x 2]
/// @return their difference
template <class T> Tile<T> total(const Tile<T>& u) {
  Tile<T> sum(u.chip(), u.rows(), 1);
  sum.array() = u.array().col(0) - u.array().col(1);
  return sum;
}

// In float and double the larger ones are compiled once, in verbs.cpp.
/// @cond
extern template Tile<float> multiply(const Tile<float>&, const View<float>&);
extern template void add_product(Tile<float>&, const Tile<float>&, const View<float>&);
extern template void rescale_add_product(Tile<float>&, const Tile<float>&, const Tile<float>&, const View<float>&);
extern template void divide(Tile<float>&, const Tile<float>&);
extern template Tile<float> row_max(const Tile<float>&);
extern template Tile<float> row_sum(const Tile<float>&);
extern template void rescale_add_row_sum(Tile<float>&, const Tile<float>&, const Tile<float>&);
extern template Tile<float> exp_shifted(Tile<float>, const Tile<float>&);
extern template Tile<float> log_sum_exp(Tile<float>, const Tile<float>&);
extern template void mask_causal(Tile<float>&, Range, Range, Index);
extern template void add_scaled(Tile<float>&, const Tile<float>&, const View<float>&);
extern template Tile<double> multiply(const Tile<double>&, const View<double>&);
extern template void add_product(Tile<double>&, const Tile<double>&, const View<double>&);
extern template void rescale_add_product(Tile<double>&, const Tile<double>&, const Tile<double>&, const View<double>&);
extern template void divide(Tile<double>&, const Tile<double>&);
extern template Tile<double> row_max(const Tile<double>&);
extern template Tile<double> row_sum(const Tile<double>&);
extern template void rescale_add_row_sum(Tile<double>&, const Tile<double>&, const Tile<double>&);
extern template Tile<double> exp_shifted(Tile<double>, const Tile<double>&);
extern template Tile<double> log_sum_exp(Tile<double>, const Tile<double>&);
extern template void mask_causal(Tile<double>&, Range, Range, Index);
extern template void add_scaled(Tile<double>&, const Tile<double>&, const View<double>&);
/// @endcond

}  // namespace flashsteps
