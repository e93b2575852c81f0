#pragma once
// FlashAttention-2, backward (math 6.2, 6.5), of scores from which ALiBi takes slope times the distance of query and key.
// P is recomputed from Q, K and L, tile by tile. Column tiles outside: dK and dV stay on chip, dQ is added to in slow memory.
// The lanes hold keys, so every matrix of a tile stands transposed: S^T, P^T, dP^T, dS^T.
#include "common/attention/verbs_columns.hpp"

namespace flashsteps::step06 {

/// What a score loses for each unit of distance.
inline constexpr double slope = 0.125;

/// The distance of a query and a key, Delta_ij = i + diagonal - j. With a causal mask it is 0 for the last key that a query sees.
/// @param i,j       the query and the key
/// @param diagonal  of the head
/// @return Delta_ij
template <class T> T distance(Index i, Index j, Index diagonal) { return T(i + diagonal - j); }

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

  T d_slope(0);                                                        // gradient of the slope         [1]

  // Load the column tile; dK and dV are born on chip
  for (const Range j : tiles(k.rows(), bc)) {
    const Tile k_j = scaled(memory.load_lanes(k[j]), scale);           // tau K_J                       [Bc x d]
    const Tile k_t = transposed(k_j);                                  // the same, features in lanes   [d x Bc]
    const Tile v_j = memory.load_lanes(v[j]);                          // V_J                           [Bc x dv]
    Tile dk_j = memory.tile(j.size(), k.cols(), T(0));                 // dK_J / tau                    [Bc x d]
    Tile dv_j = memory.tile(j.size(), v.cols(), T(0));                 // dV_J                          [Bc x dv]

    // Load the row tile
    for (const Range i : tiles(q.rows(), br)) {
      const auto q_i = memory.load(q[i]);                              // Q_I                           [Br x d]
      const auto do_i = memory.load(d_o[i]);                           // dO_I                          [Br x dv]
      const auto l_i = memory.load(lse[i]);                            // L_I                           [Br]
      const auto d_i = memory.load(delta[i]);                          // D_I                           [Br]

      // Recompute the weights, with what the distance takes: no maximum, no rescaling
      Tile s = multiply(k_j, transpose(q_i));                          // S^T = tau K_J Q_I^T           [Bc x Br]
      for (Index c = 0; c < s.cols(); ++c)                             // S^T -= slope Delta^T
        for (Index r = 0; r < s.rows(); ++r) s(r, c) -= T(slope) * distance<T>(i.begin + c, j.begin + r, diagonal);
      Tile p = probabilities_columns(std::move(s), l_i);               // P^T = exp(S - L)^T            [Bc x Br]

      // Back through O = P V, through softmax, through S = tau Q K^T
      add_product(dv_j, p, do_i);                                      // dV_J += P^T dO_I
      Tile dp = multiply(v_j, transpose(do_i));                        // dP^T = V_J dO_I^T             [Bc x Br]
      Tile ds = softmax_gradient_columns(p, std::move(dp), d_i);       // dS = P o (dP - D)             [Bc x Br]
      add_product(dk_j, ds, q_i);                                      // dK_J += dS^T Q_I
      memory.atomic_add(multiply(k_t, view(ds)), transpose(dq[i]));    // dQ_I += tau dS K_J            [d x Br]

      // The gradient of the slope: what the distances weigh under dS
      for (Index c = 0; c < ds.cols(); ++c)
        for (Index r = 0; r < ds.rows(); ++r) d_slope -= ds(r, c) * distance<T>(i.begin + c, j.begin + r, diagonal);
    }

    // Store the gradients of the column tile
    memory.store(scaled(std::move(dk_j), scale), dk[j]);
    memory.store(dv_j, dv[j]);
  }
}

}  // namespace flashsteps::step06
