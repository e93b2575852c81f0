#pragma once
// FlashAttention-2, forward, with the column tiles taken from the last to the first (math 5.1: the order of the keys plays no part).
// Row tiles outside, column tiles inside: O, m and l stay on chip, and row tiles are independent.
#include "common/attention/verbs.hpp"

namespace flashsteps::step05 {

/// Attention of one head, in tiles of Br queries by Bc keys.
/// @param head    Q [Nq x d], K [Nk x d] and V [Nk x dv] in; O [Nq x dv] and L [Nq] out
/// @param memory  counts what is read, written and held on chip
/// @throws DoesNotFit if the tiles need more room than there is on chip
template <class T> void forward(const Head<T>& head, Memory& memory) {
  const auto& [q, k, v, o, lse, scale, br, bc, diagonal, watch] = head;

  // Load the row tile; O, m and l are born on chip
  for (const Range i : tiles(q.rows(), br)) {
    const Tile q_i = scaled(memory.load_lanes(q[i]), scale);           // tau Q_I                       [Br x d]
    Tile o_i = memory.tile(i.size(), v.cols(), T(0));                  // O_I, not normalised           [Br x dv]
    Tile m_i = memory.tile(i.size(), 1, -infinity<T>);                 // maximum of the keys so far    [Br]
    Tile l_i = memory.tile(i.size(), 1, T(0));                         // their sum                     [Br]

    // Load the column tile, the last one first
    for (Index n = tile_count(k.rows(), bc) - 1; n >= 0; --n) {
      const Range j{n * bc, std::min((n + 1) * bc, k.rows())};         // the keys of tile n            [Bc]
      const auto k_j = memory.load(k[j]);                              // K_J                           [Bc x d]
      const auto v_j = memory.load(v[j]);                              // V_J                           [Bc x dv]

      // Weigh the tile against the new maximum
      Tile s = multiply(q_i, transpose(k_j));                          // S = tau Q_I K_J^T             [Br x Bc]
      Tile m_new = max(m_i, row_max(s));                               // m_new = max(m, rowmax(S))     [Br]
      Tile p = exp_shifted(std::move(s), m_new);                       // P = E(S, m_new)               [Br x Bc]
      Tile alpha = exp_shifted(std::move(m_i), m_new);                 // alpha = E(m, m_new)           [Br]

      // Rescale what was summed so far, and add the tile
      rescale_add_row_sum(l_i, alpha, p);                              // l = alpha l + rowsum(P)
      rescale_add_product(o_i, alpha, p, v_j);                         // O_I = diag(alpha) O_I + P V_J
      m_i = std::move(m_new);
      watch(i, j, m_i, l_i, o_i);
    }

    // Normalise once
    divide(o_i, l_i);                                                  // O_I = diag(l)^-1 O_I
    memory.store(o_i, o[i]);
    memory.store(log_sum_exp(std::move(m_i), l_i), lse[i]);            // L_I = m + log(l)
  }
}

}  // namespace flashsteps::step05
