#pragma once
// Grouped-query attention, forward (math 8; Ainslie and others, section 2.2).
// g query heads share one head of K and V. It is found by its index and never copied; nothing inside a head changes.
#include "common/attention/verbs.hpp"

namespace flashsteps::step08 {

/// The head of K and V that query head h reads (8): the heads of a group stand side by side.
/// One group is MHA with a key-value head of its own for each (g = 1), MQA where all share one (g = heads), GQA between.
/// @param h               query head, below heads
/// @param heads,kv_heads  how many there are of either; the first is a multiple of the second
/// @return h / g, where g = heads / kv_heads
inline Index kv_head(Index h, Index heads, Index kv_heads) {
  const Index g = heads / kv_heads;                                    // heads in a group
  return h / g;
}

/// Attention of one query head, whose K and V are those of its group: row i sees the keys j <= i + diagonal.
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

    // Load the column tile, unless no row sees it
    for (const Range j : tiles(k.rows(), bc)) {
      const TileKind kind = kind_of_tile(i, j, diagonal);
      if (kind == skip) break;                                         // and so are all tiles to the right
      const auto k_j = memory.load(k[j]);                              // K_J                           [Bc x d]
      const auto v_j = memory.load(v[j]);                              // V_J                           [Bc x dv]

      // Weigh the tile against the new maximum
      Tile s = multiply(q_i, transpose(k_j));                          // S = tau Q_I K_J^T             [Br x Bc]
      if (kind == partial) mask_causal(s, i, j, diagonal);             // S = -inf where j > i + diagonal
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

}  // namespace flashsteps::step08
