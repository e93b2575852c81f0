#pragma once
// FlashAttention-2, forward, of scores that are capped softly: c tanh(S / c) stands in the place of S (math 5.1).
// Row tiles outside, column tiles inside: O, m and l stay on chip, and row tiles are independent.
#include "common/attention/verbs.hpp"

namespace flashsteps::step05 {

/// No score is larger than this, and none smaller than its negative.
inline constexpr int cap = 4;

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

    // Load the column tile
    for (const Range j : tiles(k.rows(), bc)) {
      const auto k_j = memory.load(k[j]);                              // K_J                           [Bc x d]
      const auto v_j = memory.load(v[j]);                              // V_J                           [Bc x dv]

      // Score the tile, and cap it
      Tile s = multiply(q_i, transpose(k_j));                          // S = tau Q_I K_J^T             [Br x Bc]
      using std::tanh;
      for (Index c = 0; c < s.cols(); ++c)
        for (Index r = 0; r < s.rows(); ++r) s(r, c) = T(cap) * tanh(T(s(r, c) / T(cap)));

      // Weigh the tile against the new maximum
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
