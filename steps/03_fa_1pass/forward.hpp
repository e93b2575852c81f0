#pragma once
// Attention in one sweep over the keys, one query row at a time (math 3.3, 3.2).
// The weights have no recurrence, for each depends on the last key; the sum of v_j that they weigh has one.
#include "common/attention/verbs_columns.hpp"

namespace flashsteps::step03 {

/// The recurrence of u = l o, which is divided once, at the end (3.3).
/// @param head    Q [Nq x d], K [Nk x d] and V [Nk x dv] in; O [Nq x dv] and L [Nq] out
/// @param memory  counts what is read, written and held on chip
template <class T> void one_sweep(const Head<T>& head, Memory& memory) {
  const auto& [q, k, v, o, lse, scale, br, bc, diagonal, watch] = head;

  // Load the row; u, m and l are born on chip
  for (const Range i : tiles(q.rows(), 1)) {
    const Tile q_i = scaled(memory.load_lanes(transpose(q[i])), scale);  // tau q_i                     [d]
    Tile u = memory.tile(v.cols(), 2, T(0));                           // l o_i, and what rounding lost [dv x 2]
    Tile m = memory.tile(1, 1, -infinity<T>);                          // maximum of the keys so far    [1]
    Tile l = memory.tile(1, 2, T(0));                                  // sum, and what rounding lost   [1 x 2]

    // Load the key and its value
    for (const Range j : tiles(k.rows(), 1)) {
      const auto k_j = memory.load(k[j]);                              // k_j                           [d]
      const auto v_j = memory.load(v[j]);                              // v_j                           [dv]

      // Weigh the key against the new maximum
      Tile s = dot(q_i, k_j);                                          // s = tau q_i . k_j             [1]
      Tile m_new = max(m, s);                                          // m_new = max(m, s)             [1]
      Tile p = exp_shifted(std::move(s), m_new);                       // p = E(s, m_new)               [1]
      Tile alpha = exp_shifted(std::move(m), m_new);                   // alpha = E(m, m_new)           [1]

      // Rescale what was summed so far, and add the key
      rescale_add(l, alpha, p);                                        // l = alpha l + p
      rescale_add_scaled(u, alpha, p, v_j);                            // u = alpha u + p v_j
      m = std::move(m_new);
      watch(1, i, j, m, l, u);
    }

    // Normalise once
    Tile o_i = total(u);                                               // u                             [dv]
    divide_columns(o_i, l);                                            // o_i = u / l
    memory.store(o_i, transpose(o[i]));
    memory.store(log_sum_exp(std::move(m), total(l)), lse[i]);         // L_i = m + log(l)
  }
}

/// The recurrence of o itself: after every key it is the attention over the keys so far (3.2).
/// @param head    Q [Nq x d], K [Nk x d] and V [Nk x dv] in; O [Nq x dv] and L [Nq] out
/// @param memory  counts what is read, written and held on chip
template <class T> void one_sweep_normalised(const Head<T>& head, Memory& memory) {
  const auto& [q, k, v, o, lse, scale, br, bc, diagonal, watch] = head;

  // Load the row; o, m and l are born on chip
  for (const Range i : tiles(q.rows(), 1)) {
    const Tile q_i = scaled(memory.load_lanes(transpose(q[i])), scale);  // tau q_i                     [d]
    Tile o_sum = memory.tile(v.cols(), 2, T(0));                       // o_i, and what rounding lost   [dv x 2]
    Tile m = memory.tile(1, 1, -infinity<T>);                          // maximum of the keys so far    [1]
    Tile l = memory.tile(1, 2, T(0));                                  // sum, and what rounding lost   [1 x 2]

    for (const Range j : tiles(k.rows(), 1)) {
      const auto k_j = memory.load(k[j]);                              // k_j                           [d]
      const auto v_j = memory.load(v[j]);                              // v_j                           [dv]

      // Weigh the key among the keys so far
      Tile s = dot(q_i, k_j);                                          // s = tau q_i . k_j             [1]
      Tile m_new = max(m, s);                                          // m_new = max(m, s)             [1]
      Tile p = exp_shifted(std::move(s), m_new);                       // p = E(s, m_new)               [1]
      Tile alpha = exp_shifted(std::move(m), m_new);                   // alpha = E(m, m_new)           [1]
      rescale_add(l, alpha, p);                                        // l_new = alpha l + p
      divide(p, l);                                                    // w = p / l_new, so alpha l / l_new = 1 - w

      // Move o towards the value
      add_scaled_difference(o_sum, p, v_j);                            // o = (1 - w) o + w v_j = o + w (v_j - o)
      m = std::move(m_new);
      watch(1, i, j, m, l, o_sum);
    }

    // Store the row
    Tile o_i = total(o_sum);                                           // o_i                           [dv]
    clear_empty(o_i, l);                                               // a row that saw no key is 0 (E1)
    memory.store(o_i, transpose(o[i]));
    memory.store(log_sum_exp(std::move(m), total(l)), lse[i]);         // L_i = m + log(l)
  }
}

}  // namespace flashsteps::step03
