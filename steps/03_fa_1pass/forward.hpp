#pragma once
// Attention in one sweep over the keys, one query row at a time (math 3.3, 3.2).
// The weights have no recurrence, for each depends on the last key; the sum of v_j that they weigh has one.
#include "common/attention/verbs_columns.hpp"

namespace flashsteps::step03 {

/// The recurrence of u = l o, which is divided once, at the end (3.3).
template <class T> void one_sweep(const Head<T>& head, Memory& memory) {
  const auto& [q, k, v, o, lse, scale, br, bc, diagonal, watch] = head;

  for (const Range i : tiles(q.rows(), 1)) {
    const Tile q_i = scaled(memory.load_lanes(transpose(q[i])), scale);  // tau q_i                     [d]
    Tile o_i = memory.tile(v.cols(), 1, T(0));                         // u = l o_i, not normalised     [dv]
    Tile m = memory.tile(1, 1, -infinity<T>);                          // maximum of the keys so far    [1]
    Tile l = memory.tile(1, 1, T(0));                                  // their sum                     [1]

    for (const Range j : tiles(k.rows(), 1)) {
      const auto k_j = memory.load(k[j]);                              // k_j                           [d]
      const auto v_j = memory.load(v[j]);                              // v_j                           [dv]
      Tile s = dot(q_i, k_j);                                          // s = tau q_i . k_j             [1]
      Tile m_new = max(m, s);                                          // m_new = max(m, s)             [1]
      Tile p = exp_shifted(std::move(s), m_new);                       // p = E(s, m_new)               [1]
      Tile alpha = exp_shifted(std::move(m), m_new);                   // alpha = E(m, m_new)           [1]
      rescale_add(l, alpha, p);                                        // l = alpha l + p
      rescale_add_scaled(o_i, alpha, p, v_j);                          // u = alpha u + p v_j
      m = std::move(m_new);
      watch(1, i, j, m, l, o_i);
    }

    divide_columns(o_i, l);                                            // o_i = u / l
    memory.store(o_i, transpose(o[i]));
    memory.store(log_sum_exp(std::move(m), l), lse[i]);                // L_i = m + log(l)
  }
}

/// The recurrence of o itself: after every key it is the attention over the keys so far (3.2).
template <class T> void one_sweep_normalised(const Head<T>& head, Memory& memory) {
  const auto& [q, k, v, o, lse, scale, br, bc, diagonal, watch] = head;

  for (const Range i : tiles(q.rows(), 1)) {
    const Tile q_i = scaled(memory.load_lanes(transpose(q[i])), scale);  // tau q_i                     [d]
    Tile o_i = memory.tile(v.cols(), 1, T(0));                         // o_i, normalised               [dv]
    Tile m = memory.tile(1, 1, -infinity<T>);                          // maximum of the keys so far    [1]
    Tile l = memory.tile(1, 1, T(0));                                  // their sum                     [1]

    for (const Range j : tiles(k.rows(), 1)) {
      const auto k_j = memory.load(k[j]);                              // k_j                           [d]
      const auto v_j = memory.load(v[j]);                              // v_j                           [dv]
      Tile s = dot(q_i, k_j);                                          // s = tau q_i . k_j             [1]
      Tile m_new = max(m, s);                                          // m_new = max(m, s)             [1]
      Tile p = exp_shifted(std::move(s), m_new);                       // p = E(s, m_new)               [1]
      Tile alpha = exp_shifted(std::move(m), m_new);                   // alpha = E(m, m_new)           [1]
      rescale(alpha, l);                                               // l alpha
      l = add(alpha, p);                                               // l_new = l alpha + p           [1]
      divide(alpha, l);                                                // l alpha / l_new
      divide(p, l);                                                    // p / l_new
      rescale_add_scaled(o_i, alpha, p, v_j);                          // o = (l alpha / l_new) o + (p / l_new) v_j
      m = std::move(m_new);
      watch(1, i, j, m, l, o_i);
    }

    clear_empty(o_i, l);                                               // a row that saw no key is 0 (E1)
    memory.store(o_i, transpose(o[i]));
    memory.store(log_sum_exp(std::move(m), l), lse[i]);                // L_i = m + log(l)
  }
}

}  // namespace flashsteps::step03
