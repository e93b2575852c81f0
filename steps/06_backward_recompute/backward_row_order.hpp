#pragma once
// The road not taken: the backward pass in row order, as the forward pass of step 05 (math 6.6).
// dQ stays on chip, but now two tensors are added to in slow memory, dK and dV, where column order adds to one.
#include "common/attention/verbs_columns.hpp"

namespace flashsteps::step06 {

/// Gradients of one head, row order. Needs O and L of the forward pass. The lanes hold queries.
/// @param head       Q, K, V, O [Nq x dv] and L [Nq], all in
/// @param gradients  dO [Nq x dv], and dL [Nq] where it is given, in; dQ [Nq x d], dK [Nk x d] and dV [Nk x dv] out
/// @param memory     counts what is read, written and held on chip
/// @throws DoesNotFit if the tiles need more room than there is on chip
template <class T> void backward_row_order(const Head<T>& head, const Gradients<T>& gradients, Memory& memory) {
  const auto& [q, k, v, o, lse, scale, br, bc, diagonal, watch] = head;
  const auto& [d_o, d_lse, dq, dk, dv] = gradients;
  memory.fill(dk, 0);
  memory.fill(dv, 0);

  // Load the row tile; dQ is born on chip
  for (const Range i : tiles(q.rows(), br)) {
    const Tile q_i = scaled(memory.load_lanes(q[i]), scale);           // tau Q_I                       [Br x d]
    const Tile q_t = transposed(q_i);                                  // the same, features in lanes   [d x Br]
    const Tile do_i = memory.load_lanes(d_o[i]);                       // dO_I                          [Br x dv]
    const Tile do_t = transposed(do_i);                                // the same, features in lanes   [dv x Br]
    const Tile l_i = memory.load_lanes(lse[i]);                        // L_I                           [Br]
    Tile d_i = row_dot(do_i, memory.load_lanes(o[i]));                 // D_I = rowsum(dO o O)          [Br]
    if (d_lse.rows() > 0) d_i = subtract(std::move(d_i), memory.load_lanes(d_lse[i]));
    Tile dq_i = memory.tile(i.size(), q.cols(), T(0));                 // dQ_I / tau                    [Br x d]

    // Load the column tile
    for (const Range j : tiles(k.rows(), bc)) {
      const auto k_j = memory.load(k[j]);                              // K_J                           [Bc x d]
      const auto v_j = memory.load(v[j]);                              // V_J                           [Bc x dv]

      // Recompute the weights: no maximum, no rescaling
      Tile s = multiply(q_i, transpose(k_j));                          // S = tau Q_I K_J^T             [Br x Bc]
      Tile p = probabilities(std::move(s), l_i);                       // P = exp(S - L)                [Br x Bc]

      // Back through O = P V, through softmax, through S = tau Q K^T
      memory.atomic_add(multiply(do_t, view(p)), transpose(dv[j]));    // dV_J += P^T dO_I              [dv x Bc]
      Tile dp = multiply(do_i, transpose(v_j));                        // dP = dO_I V_J^T               [Br x Bc]
      Tile ds = softmax_gradient(p, std::move(dp), d_i);               // dS = P o (dP - D)             [Br x Bc]
      add_product(dq_i, ds, k_j);                                      // dQ_I += dS K_J
      memory.atomic_add(multiply(q_t, view(ds)), transpose(dk[j]));    // dK_J += tau dS^T Q_I          [d x Bc]
    }

    // Store the gradients of the row tile
    memory.store(scaled(std::move(dq_i), scale), dq[i]);
  }
}

}  // namespace flashsteps::step06
