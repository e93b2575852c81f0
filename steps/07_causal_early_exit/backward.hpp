#pragma once
// FlashAttention-2 with a causal mask, backward (math 6.5, 7.2).
// The same three kinds of tile, met in column order: for a column tile, the row tiles above the diagonal are skipped.
// The lanes hold keys, so every matrix of a tile stands transposed: S^T, P^T, dP^T, dS^T.
#include "common/attention/verbs_columns.hpp"

namespace flashsteps::step07 {

/// Gradients of one head, column order. Needs O and L of the forward pass.
/// @param head       Q, K, V, O [Nq x dv] and L [Nq], all in
/// @param gradients  dO [Nq x dv], and dL [Nq] where it is given, in; dQ [Nq x d], dK [Nk x d] and dV [Nk x dv] out
/// @param memory     counts what is read, written and held on chip
/// @throws DoesNotFit if the tiles need more room than there is on chip
template <class T> void backward(const Head<T>& head, const Gradients<T>& gradients, Memory& memory) {
  const auto& [q, k, v, o, lse, scale, br, bc, diagonal, watch] = head;
  const auto& [d_o, d_lse, dq, dk, dv] = gradients;

  // What softmax takes from every row, once: D = rowsum(dO o O), less dL where the loss depends on L
  const Workspace<T> delta(tensor::delta, q.rows());                   // in slow memory                [Nq]
  for (const Range i : tiles(q.rows(), br)) {
    Tile d_i = row_dot(memory.load_lanes(d_o[i]), memory.load_lanes(o[i]));  // D_I                     [Br]
    if (d_lse.rows() > 0) d_i = subtract(std::move(d_i), memory.load_lanes(d_lse[i]));
    memory.store(d_i, delta[i]);
  }
  memory.fill(dq, 0);

  // Load the column tile; dK and dV are born on chip
  for (const Range j : tiles(k.rows(), bc)) {
    const Tile k_j = scaled(memory.load_lanes(k[j]), scale);           // tau K_J                       [Bc x d]
    const Tile k_t = transposed(k_j);                                  // the same, features in lanes   [d x Bc]
    const Tile v_j = memory.load_lanes(v[j]);                          // V_J                           [Bc x dv]
    Tile dk_j = memory.tile(j.size(), k.cols(), T(0));                 // dK_J / tau                    [Bc x d]
    Tile dv_j = memory.tile(j.size(), v.cols(), T(0));                 // dV_J                          [Bc x dv]

    // Load the row tile, unless it sees no key of the column tile
    for (const Range i : tiles(q.rows(), br)) {
      const TileKind kind = kind_of_tile(i, j, diagonal);
      if (kind == skip) continue;                                      // and so were all tiles above
      const auto q_i = memory.load(q[i]);                              // Q_I                           [Br x d]
      const auto do_i = memory.load(d_o[i]);                           // dO_I                          [Br x dv]
      const auto l_i = memory.load(lse[i]);                            // L_I                           [Br]
      const auto d_i = memory.load(delta[i]);                          // D_I                           [Br]

      // Recompute the weights: no maximum, no rescaling
      Tile s = multiply(k_j, transpose(q_i));                          // S^T = tau K_J Q_I^T           [Bc x Br]
      if (kind == partial) mask_causal_columns(s, i, j, diagonal);     // absent where j > i + diagonal
      Tile p = probabilities_columns(std::move(s), l_i);               // P^T = exp(S - L)^T            [Bc x Br]

      // Back through O = P V, through softmax, through S = tau Q K^T
      add_product(dv_j, p, do_i);                                      // dV_J += P^T dO_I
      Tile dp = multiply(v_j, transpose(do_i));                        // dP^T = V_J dO_I^T             [Bc x Br]
      Tile ds = softmax_gradient_columns(p, std::move(dp), d_i);       // dS = P o (dP - D)             [Bc x Br]
      add_product(dk_j, ds, q_i);                                      // dK_J += dS^T Q_I
      memory.atomic_add(multiply(k_t, view(ds)), transpose(dq[i]));    // dQ_I += tau dS K_J            [d x Br]
    }

    // Store the gradients of the column tile
    memory.store(scaled(std::move(dk_j), scale), dk[j]);
    memory.store(dv_j, dv[j]);
  }
}

}  // namespace flashsteps::step07
