#pragma once
// FlashAttention-2 with a causal mask and a window, forward: a row sees its newest keys, and no older ones.
// Three kinds of tile, with two boundaries: those beyond the diagonal and those before the window are skipped.
#include "common/attention/verbs.hpp"

namespace flashsteps::step07 {

/// How many keys a row sees at most: row i sees the keys j with i + diagonal - window < j <= i + diagonal.
inline constexpr Index window = 6;

/// Of which kind is the tile of queries i and keys j, where a row sees no key before its window?
/// @param i         queries
/// @param j         keys
/// @param diagonal  Nk - Nq
/// @return its kind
inline TileKind kind_in_window(Range i, Range j, Index diagonal) {
  if (j.begin > i.end - 1 + diagonal) return skip;                     // too new for the last row, and so for all
  if (j.end - 1 <= i.begin + diagonal - window) return skip;           // too old for the first row, and so for all
  if (j.end - 1 <= i.begin + diagonal && j.begin > i.end - 1 + diagonal - window) return full;
  return partial;
}

/// Replaces the scores of keys before the window of a row by -inf.
/// @param s         scores [Br x Bc]
/// @param i,j       queries and keys of the tile
/// @param diagonal  Nk - Nq
template <class T> void mask_window(Tile<T>& s, Range i, Range j, Index diagonal) {
  for (Index r = 0; r < s.rows(); ++r) {
    const Index old = std::clamp<Index>(i.begin + r + diagonal - window + 1 - j.begin, 0, s.cols());
    for (Index c = 0; c < old; ++c) s(r, c) = -infinity<T>;
  }
}

/// Attention of one head: row i sees the keys j with i + diagonal - window < j <= i + diagonal.
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
      const TileKind kind = kind_in_window(i, j, diagonal);
      if (j.begin > i.end - 1 + diagonal) break;                       // too new, and so are all tiles to the right
      if (kind == skip) continue;                                      // too old
      const auto k_j = memory.load(k[j]);                              // K_J                           [Bc x d]
      const auto v_j = memory.load(v[j]);                              // V_J                           [Bc x dv]

      // Weigh the tile against the new maximum
      Tile s = multiply(q_i, transpose(k_j));                          // S = tau Q_I K_J^T             [Br x Bc]
      if (kind == partial) mask_causal(s, i, j, diagonal);             // S = -inf where j > i + diagonal
      if (kind == partial) mask_window(s, i, j, diagonal);             // S = -inf where j <= i + diagonal - window
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

}  // namespace flashsteps::step07
