#pragma once
// The loops of FlashAttention-1 with the sum of step 03: in slow memory stands U = diag(l) O, which is divided once, at the end.
// Column tiles outside, row tiles inside: U, m and l go to slow memory and come back for every column tile.
#include "common/attention/verbs.hpp"

namespace flashsteps::step04 {

/// Attention of one head, in tiles of Br queries by Bc keys.
/// @param head    Q [Nq x d], K [Nk x d] and V [Nk x dv] in; O [Nq x dv] and L [Nq] out
/// @param memory  counts what is read, written and held on chip
/// @throws DoesNotFit if the tiles need more room than there is on chip
template <class T> void forward(const Head<T>& head, Memory& memory) {
  const auto& [q, k, v, o, lse, scale, br, bc, diagonal, watch] = head;

  // Start without a key: U = 0, where O will be, m = -inf, l = 0
  const Workspace<T> m(tensor::m, q.rows()), l(tensor::l, q.rows());   // in slow memory                [Nq]
  memory.fill(o, 0);
  memory.fill(m, -infinity<T>);
  memory.fill(l, 0);

  // Load the column tile
  for (const Range j : tiles(k.rows(), bc)) {
    const auto k_j = memory.load(k[j]);                                // K_J                           [Bc x d]
    const auto v_j = memory.load(v[j]);                                // V_J                           [Bc x dv]

    // Load the row tile, and what was summed so far
    for (const Range i : tiles(q.rows(), br)) {
      const Tile q_i = scaled(memory.load_lanes(q[i]), scale);         // tau Q_I                       [Br x d]
      Tile u_i = memory.load_lanes(o[i]);                              // U_I                           [Br x dv]
      Tile m_i = memory.load_lanes(m[i]);                              // maximum of the keys so far    [Br]
      Tile l_i = memory.load_lanes(l[i]);                              // their sum                     [Br]

      // Weigh the tile against the new maximum, rescale what was summed so far, and add it
      Tile s = multiply(q_i, transpose(k_j));                          // S = tau Q_I K_J^T             [Br x Bc]
      Tile m_new = max(m_i, row_max(s));                               // m_new = max(m, rowmax(S))     [Br]
      Tile p = exp_shifted(std::move(s), m_new);                       // P = E(S, m_new)               [Br x Bc]
      Tile alpha = exp_shifted(std::move(m_i), m_new);                 // alpha = E(m, m_new)           [Br]
      rescale_add_row_sum(l_i, alpha, p);                              // l = alpha l + rowsum(P)
      rescale_add_product(u_i, alpha, p, v_j);                         // U_I = diag(alpha) U_I + P V_J

      // Store what was summed
      memory.store(u_i, o[i]);
      memory.store(m_new, m[i]);
      memory.store(l_i, l[i]);
    }
  }

  // Divide once, and join m and l
  for (const Range i : tiles(q.rows(), br)) {
    Tile o_i = memory.load_lanes(o[i]);                                // U_I                           [Br x dv]
    const Tile l_i = memory.load_lanes(l[i]);                          // l                             [Br]
    divide(o_i, l_i);                                                  // O_I = diag(l)^-1 U_I
    memory.store(o_i, o[i]);
    memory.store(log_sum_exp(memory.load_lanes(m[i]), l_i), lse[i]);   // L_I = m + log(l)
  }
}

}  // namespace flashsteps::step04
