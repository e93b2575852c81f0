#pragma once
// Grouped-query attention, backward (math 8).
// dK and dV of a shared head are sums over its group: who owns the column tile loops over the heads of the group.
// The lanes hold keys, so every matrix of a tile stands transposed: S^T, P^T, dP^T, dS^T.
#include "common/attention/verbs_columns.hpp"
#include <span>

namespace flashsteps::step08 {

/// Gradients of one group: the query heads that share K and V. Needs their O and L. Their dK and dV are one and the same.
/// @param group      the g query heads: Q, K, V, O [Nq x dv] and L [Nq] of each, all in
/// @param gradients  of each head dO, and dL where it is given, in, dQ [Nq x d] out; dK [Nk x d] and dV [Nk x dv] out once
/// @param memory     counts what is read, written and held on chip
/// @throws DoesNotFit if the tiles need more room than there is on chip
template <class T> void backward(std::span<const Head<T>> group, std::span<const Gradients<T>> gradients, Memory& memory) {
  const auto& [first_q, k, v, first_o, first_lse, scale, br, bc, diagonal, watch] = group.front();
  const auto& [first_do, first_dlse, first_dq, dk, dv] = gradients.front();
  const Index heads = Index(group.size()), rows = first_q.rows();

  // What softmax takes from every row, once: D = rowsum(dO o O), less dL where the loss depends on L
  const Workspace<T> deltas(tensor::delta, heads * rows);              // in slow memory                [g x Nq]
  for (Index h = 0; h < heads; ++h) {
    const Slow<const T> o = group[h].o, d_o = gradients[h].d_o, d_lse = gradients[h].d_lse;
    const Slow<T> delta = deltas[Range{h * rows, (h + 1) * rows}];
    for (const Range i : tiles(rows, br)) {
      Tile d_i = row_dot(memory.load_lanes(d_o[i]), memory.load_lanes(o[i]));  // D_I                   [Br]
      if (d_lse.rows() > 0) d_i = subtract(std::move(d_i), memory.load_lanes(d_lse[i]));
      memory.store(d_i, delta[i]);
    }
    memory.fill(gradients[h].dq, 0);
  }

  // Load the column tile; dK and dV are born on chip
  for (const Range j : tiles(k.rows(), bc)) {
    const Tile k_j = scaled(memory.load_lanes(k[j]), scale);           // tau K_J                       [Bc x d]
    const Tile k_t = transposed(k_j);                                  // the same, features in lanes   [d x Bc]
    const Tile v_j = memory.load_lanes(v[j]);                          // V_J                           [Bc x dv]
    Tile dk_j = memory.tile(j.size(), k.cols(), T(0));                 // dK_J / tau, of the group      [Bc x d]
    Tile dv_j = memory.tile(j.size(), v.cols(), T(0));                 // dV_J, of the group            [Bc x dv]

    // Go through the heads of the group
    for (Index h = 0; h < heads; ++h) {
      const Slow<const T> q = group[h].q, lse = group[h].lse, d_o = gradients[h].d_o;
      const Slow<T> dq = gradients[h].dq, delta = deltas[Range{h * rows, (h + 1) * rows}];

      // Load the row tile, unless it sees no key of the column tile
      for (const Range i : tiles(rows, br)) {
        const TileKind kind = kind_of_tile(i, j, diagonal);
        if (kind == skip) continue;                                    // and so were all tiles above
        const auto q_i = memory.load(q[i]);                            // Q_I                           [Br x d]
        const auto do_i = memory.load(d_o[i]);                         // dO_I                          [Br x dv]
        const auto l_i = memory.load(lse[i]);                          // L_I                           [Br]
        const auto d_i = memory.load(delta[i]);                        // D_I                           [Br]

        // Recompute the weights: no maximum, no rescaling
        Tile s = multiply(k_j, transpose(q_i));                        // S^T = tau K_J Q_I^T           [Bc x Br]
        if (kind == partial) mask_causal_columns(s, i, j, diagonal);   // absent where j > i + diagonal
        Tile p = probabilities_columns(std::move(s), l_i);             // P^T = exp(S - L)^T            [Bc x Br]

        // Back through O = P V, through softmax, through S = tau Q K^T
        add_product(dv_j, p, do_i);                                    // dV_J += P^T dO_I
        Tile dp = multiply(v_j, transpose(do_i));                      // dP^T = V_J dO_I^T             [Bc x Br]
        Tile ds = softmax_gradient_columns(p, std::move(dp), d_i);     // dS = P o (dP - D)             [Bc x Br]
        add_product(dk_j, ds, q_i);                                    // dK_J += dS^T Q_I
        memory.atomic_add(multiply(k_t, view(ds)), transpose(dq[i]));  // dQ_I += tau dS K_J            [d x Br]
      }
    }

    // Store the gradients of the column tile
    memory.store(scaled(std::move(dk_j), scale), dk[j]);
    memory.store(dv_j, dv[j]);
  }
}

}  // namespace flashsteps::step08
