#pragma once
// The definition (math 0.2, 6.1) as a plain double loop, row by row, in any number type. It shares no code with the steps: every
// step is held to it.
#include "common/memory/range.hpp"
#include <cmath>
#include <limits>
#include <vector>

namespace flashsteps {

/// A matrix as it lies in memory: row i begins at data + i stride.
template <class T> struct Raw {
  const T* data = nullptr;  ///< the first element; nullptr if the matrix is missing
  Index stride = 0;         ///< elements from one row to the next
  /// An element.
  /// @param i,x  its row and column
  /// @return it
  const T& operator()(Index i, Index x) const { return data[i * stride + x]; }
};

/// One head, for the definition. d_o and d_lse may be missing.
template <class T> struct RawHead {
  Raw<T> q,         ///< queries                    [Nq x d]
      k,            ///< keys                       [Nk x d]
      v,            ///< values                     [Nk x dv]
      d_o,          ///< gradient of O, or missing  [Nq x dv]
      d_lse;        ///< gradient of L, or missing  [Nq x 1]
  Index seq_q,      ///< Nq
      seq_k,        ///< Nk
      head_dim,     ///< d
      value_dim;    ///< dv
  T scale;          ///< tau, the factor of Q K^T
  Index diagonal;   ///< row i sees the keys j <= i + diagonal

  /// How many keys row i sees.
  /// @param i  the row
  /// @return 0 to seq_k
  Index keys(Index i) const { return std::min(seq_k, std::max<Index>(0, i + diagonal + 1)); }
};

/// Attention of one row in the number type R.
template <class R> struct RowResult {
  std::vector<R> p,  ///< weights of the keys that it sees
      o;             ///< [dv]
  R lse;             ///< L
};

/// Row i of O and L: S_ij = scale q_i . k_j, L_i = log sum exp S_ij, P_ij = exp(S_ij - L_i), o_i = sum P_ij v_j. A row without a
/// score above -inf is 0 and has L = -inf (E1).
/// @param head  the head, whose numbers are converted to R first
/// @param i     the row
/// @return P, O and L of this row
template <class R, class T> RowResult<R> define_row(const RawHead<T>& head, Index i) {
  using std::exp, std::log;
  const R minus_infinity = -std::numeric_limits<R>::infinity();
  RowResult<R> row{{}, std::vector<R>(head.value_dim, R(0)), minus_infinity};
  std::vector<R>& s = row.p;
  R top = minus_infinity;
  bool spoiled = false;
  for (Index j = 0; j < head.keys(i); ++j) {
    R dot(0);
    for (Index x = 0; x < head.head_dim; ++x) dot += R(head.q(i, x)) * R(head.k(j, x));
    s.push_back(R(head.scale) * dot);
    if (s[j] > top) top = s[j];
    if (s[j] != s[j]) spoiled = true;
  }
  if (top == minus_infinity && !spoiled) {
    for (R& p : s) p = R(0);
    return row;
  }
  R sum(0);
  for (const R& x : s) sum += exp(x - top);
  row.lse = top + log(sum);
  for (Index j = 0; j < head.keys(i); ++j) {
    s[j] = exp(s[j] - row.lse);
    for (Index e = 0; e < head.value_dim; ++e) row.o[e] += s[j] * R(head.v(j, e));
  }
  return row;
}

/// Gradients in the number type R, summed over the rows that were added.
template <class R> struct GradientSums {
  std::vector<R> dq,  ///< [Nq x d]
      dk,             ///< [Nk x d]
      dv;             ///< [Nk x dv]
  /// Zeros.
  /// @param head  whose sizes they have
  template <class T> explicit GradientSums(const RawHead<T>& head)
      : dq(head.seq_q * head.head_dim, R(0)), dk(head.seq_k * head.head_dim, R(0)), dv(head.seq_k * head.value_dim, R(0)) {}
};

/// Adds what row i contributes: dS_ij = P_ij (do_i . v_j - do_i . o_i + dL_i); dq_i = scale sum_j dS_ij k_j,
/// dk_j += scale dS_ij q_i, dv_j += P_ij do_i. A row that saw no key contributes nothing (E1).
/// @param head  the head, with d_o
/// @param i     the row
/// @param row   what define_row says of it
/// @param sums  what is added to
template <class R, class T> void define_gradient_row(const RawHead<T>& head, Index i, const RowResult<R>& row, GradientSums<R>& sums) {
  if (row.lse == -std::numeric_limits<R>::infinity()) return;
  R delta(0);
  for (Index e = 0; e < head.value_dim; ++e) delta += R(head.d_o(i, e)) * row.o[e];
  if (head.d_lse.data) delta -= R(head.d_lse(i, 0));
  for (Index j = 0; j < head.keys(i); ++j) {
    R dp(0);
    for (Index e = 0; e < head.value_dim; ++e) dp += R(head.d_o(i, e)) * R(head.v(j, e));
    const R ds = R(head.scale) * (row.p[j] * (dp - delta));
    for (Index x = 0; x < head.head_dim; ++x) {
      sums.dq[i * head.head_dim + x] += ds * R(head.k(j, x));
      sums.dk[j * head.head_dim + x] += ds * R(head.q(i, x));
    }
    for (Index e = 0; e < head.value_dim; ++e) sums.dv[j * head.value_dim + e] += row.p[j] * R(head.d_o(i, e));
  }
}

}  // namespace flashsteps
