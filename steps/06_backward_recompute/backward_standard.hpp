#pragma once
// The standard backward pass: P was kept by the forward pass, dP and dS stand in slow memory too (math 6.3; FlashAttention, Algorithm 3).
#include "common/attention/verbs_columns.hpp"

namespace flashsteps::step06 {

/// Gradients of one head from Q, K, V and the stored P [Nq x Nk].
/// @param head       Q, K and V, in
/// @param p          weights [Nq x Nk], in: 0 where a row may not see a key
/// @param gradients  dO [Nq x dv], and dL [Nq] where it is given, in; dQ [Nq x d], dK [Nk x d] and dV [Nk x dv] out
/// @param memory     counts what is read, written and held on chip
template <class T> void backward_standard(const Head<T>& head, const Slow<const T>& p, const Gradients<T>& gradients, Memory& memory) {
  const auto& [q, k, v, o, lse, scale, br, bc, diagonal, watch] = head;
  const auto& [d_o, d_lse, dq, dk, dv] = gradients;
  const Workspace<T> dp(tensor::dp, q.rows(), k.rows());               // in slow memory                [Nq x Nk]
  const Workspace<T> ds(tensor::ds, q.rows(), k.rows());               // in slow memory                [Nq x Nk]

  // Back through O = P V
  memory.multiply_weights(T(1), transpose(p), d_o, dv);                // dV = P^T dO
  memory.multiply(T(1), d_o, transpose(v), dp);                        // dP = dO V^T

  // Back through softmax, row by row
  for (const Range i : tiles(q.rows(), 1)) {
    Tile p_i = memory.load_lanes(transpose(p[i]));                     // row i of P, keys in lanes     [Nk x 1]
    Tile dp_i = memory.load_lanes(transpose(dp[i]));                   // row i of dP                   [Nk x 1]
    hide_empty_columns(p_i);                                           // a row that saw no key has no gradient (E1)
    Tile d_i = column_dot(p_i, dp_i);                                  // D_i = sum p dp                [1]
    if (d_lse.rows() > 0) d_i = subtract(std::move(d_i), memory.load_lanes(d_lse[i]));
    Tile ds_i = softmax_gradient_columns(p_i, std::move(dp_i), view(d_i));  // ds = p o (dp - D)        [Nk x 1]
    memory.store(ds_i, transpose(ds[i]));
  }

  // Back through S = tau Q K^T
  memory.multiply_weights(scale, ds, k, dq);                           // dQ = tau dS K
  memory.multiply_weights(scale, transpose(ds), q, dk);                // dK = tau dS^T Q
}

/// What the standard forward pass leaves behind for it: P = exp(S - L), from a forward pass that kept L alone.
/// @param head    Q, K and L, in
/// @param p       weights [Nq x Nk], out
/// @param memory  counts what is read, written and held on chip
template <class T> void store_probabilities(const Head<T>& head, const Slow<T>& p, Memory& memory) {
  const auto& [q, k, v, o, lse, scale, br, bc, diagonal, watch] = head;
  memory.multiply(scale, q, transpose(k), p);                          // S = tau Q K^T
  for (const Range i : tiles(q.rows(), 1)) {
    const auto l_i = memory.load(lse[i]);                              // L_i                           [1]
    Tile s_i = memory.load_lanes(transpose(p[i]));                     // row i of S                    [Nk x 1]
    memory.store(probabilities_columns(std::move(s_i), l_i), transpose(p[i]));
  }
}

}  // namespace flashsteps::step06
