#pragma once
// FlashAttention-1, forward (math 4.1; FlashAttention, Algorithm 1).
// Column tiles outside, row tiles inside: O, m and l go to slow memory and come back for every column tile.
#include "common/attention/verbs.hpp"

namespace flashsteps::step04 {

/// Attention of one head, in tiles of Br queries by Bc keys.
/// @param head    Q [Nq x d], K [Nk x d] and V [Nk x dv] in; O [Nq x dv] and L [Nq] out
/// @param memory  counts what is read, written and held on chip
/// @throws DoesNotFit if the tiles need more room than there is on chip
template <class T> void forward(const Head<T>& head, Memory& memory) {
  const auto& [q, k, v, o, lse, scale, br, bc, diagonal, watch] = head;

  // Start without a key: O = 0, m = -inf, l = 0
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
      Tile o_i = memory.load_lanes(o[i]);                              // O_I, normalised               [Br x dv]
      Tile m_i = memory.load_lanes(m[i]);                              // maximum of the keys so far    [Br]
      Tile l_i = memory.load_lanes(l[i]);                              // their sum                     [Br]

      // Weigh the tile against its own maximum
      Tile s = multiply(q_i, transpose(k_j));                          // S = tau Q_I K_J^T             [Br x Bc]
      Tile m_tile = row_max(s);                                        // m~ = rowmax(S)                [Br]
      Tile p = exp_shifted(std::move(s), m_tile);                      // P~ = E(S, m~)                 [Br x Bc]
      Tile l_tile = row_sum(p);                                        // l~ = rowsum(P~)               [Br]

      // Merge it with what was summed so far
      Tile m_new = max(m_i, m_tile);                                   // m_new = max(m, m~)            [Br]
      Tile a = exp_shifted(std::move(m_i), m_new);                     // a = E(m, m_new)               [Br]
      Tile b = exp_shifted(std::move(m_tile), m_new);                  // b = E(m~, m_new)              [Br]
      rescale(l_i, a);                                                 // a l
      rescale(l_tile, b);                                              // b l~
      Tile l_new = add(l_i, l_tile);                                   // l_new = a l + b l~            [Br]
      rescale(p, b);                                                   // diag(b) P~
      rescale_add_product(o_i, l_i, p, v_j);                           // O_I = diag(a l) O_I + diag(b) P~ V_J

      // Normalise every time
      divide(o_i, l_new);                                              // O_I = diag(l_new)^-1 O_I
      watch(i, j, m_new, l_new, o_i);
      memory.store(o_i, o[i]);
      memory.store(m_new, m[i]);
      memory.store(l_new, l[i]);
    }
  }

  // Algorithm 1 ends here, with L in two parts
  for (const Range i : tiles(q.rows(), br))
    memory.store(log_sum_exp(memory.load_lanes(m[i]), memory.load_lanes(l[i])), lse[i]);  // L_I = m + log(l)
}

}  // namespace flashsteps::step04
