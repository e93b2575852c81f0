#pragma once
// Safe softmax, and attention with it: what every later step starts from (math 1).
// The maximum is subtracted first, so that no exponent is positive; that takes three passes over a row of scores.
#include "common/attention/verbs_columns.hpp"

namespace flashsteps::step01 {

/// a = softmax(x) in three passes over slow memory (1.3). x and a are [n x 1].
/// @param x       numbers, in slow memory
/// @param a       their softmax, of the same length
/// @param memory  counts what is read, written and held on chip
template <class T> void softmax(const Slow<const T>& x, const Slow<T>& a, Memory& memory) {
  // Pass 1: the maximum
  Tile m = memory.tile(1, 1, -infinity<T>);                            // maximum                       [1]
  for (const Range i : tiles(x.rows(), 1))
    m = max(m, memory.load_lanes(x[i]));                               // m = max(m, x_i)

  // Pass 2: the sum
  Tile l = memory.tile(1, 2, T(0));                                    // sum, and what rounding lost   [1 x 2]
  for (const Range i : tiles(x.rows(), 1))
    accumulate(l, exp_shifted(memory.load_lanes(x[i]), m));            // l = l + E(x_i, m)

  // Pass 3: the weights
  for (const Range i : tiles(x.rows(), 1)) {
    Tile a_i = exp_shifted(memory.load_lanes(x[i]), m);                // E(x_i, m)                     [1]
    divide(a_i, l);                                                    // a_i = E(x_i, m) / l
    memory.store(a_i, a[i]);
  }
}

/// Standard attention: S and P stand in slow memory, whole (1.1; FlashAttention, Algorithm 0).
/// @param head    Q [Nq x d], K [Nk x d] and V [Nk x dv] in; O [Nq x dv] and L [Nq] out
/// @param memory  counts what is read, written and held on chip
template <class T> void standard(const Head<T>& head, Memory& memory) {
  const auto& [q, k, v, o, lse, scale, br, bc, diagonal, watch] = head;

  // Store all scores
  const Workspace<T> s(tensor::s, q.rows(), k.rows());                 // in slow memory                [Nq x Nk]
  const Workspace<T> p(tensor::p, q.rows(), k.rows());                 // in slow memory                [Nq x Nk]
  memory.multiply(scale, q, transpose(k), s);                          // S = tau Q K^T

  // Turn each row of scores into weights
  for (const Range i : tiles(q.rows(), 1)) {
    Tile s_i = memory.load_lanes(transpose(s[i]));                     // row i of S, keys in lanes     [Nk x 1]
    Tile m = column_max(s_i);                                          // pass 1: m = max s             [1]
    Tile p_i = exp_shifted_columns(std::move(s_i), m);                 // E(s, m)                       [Nk x 1]
    Tile l = column_sum(p_i);                                          // pass 2: l = sum E(s, m)       [1]
    divide_columns(p_i, l);                                            // pass 3: p = E(s, m) / l
    memory.store(p_i, transpose(p[i]));
    memory.store(log_sum_exp(std::move(m), l), lse[i]);                // L_i = m + log(l)
  }

  // Add up the values by their weights
  memory.multiply_weights(T(1), p, v, o);                              // O = P V
}

/// Attention in three sweeps over the keys: S is never stored, each pass computes it again (1.3, p = 3).
/// @param head    Q [Nq x d], K [Nk x d] and V [Nk x dv] in; O [Nq x dv] and L [Nq] out
/// @param memory  counts what is read, written and held on chip
template <class T> void three_sweeps(const Head<T>& head, Memory& memory) {
  const auto& [q, k, v, o, lse, scale, br, bc, diagonal, watch] = head;

  // Load the row; o, m and l are born on chip
  for (const Range i : tiles(q.rows(), 1)) {
    const Tile q_i = scaled(memory.load_lanes(transpose(q[i])), scale);  // tau q_i                     [d]
    Tile o_sum = memory.tile(v.cols(), 2, T(0));                       // o_i, and what rounding lost   [dv x 2]
    Tile m = memory.tile(1, 1, -infinity<T>);                          // maximum                       [1]
    Tile l = memory.tile(1, 2, T(0));                                  // sum, and what rounding lost   [1 x 2]

    // Sweep 1: the maximum
    for (const Range j : tiles(k.rows(), 1)) {
      const auto k_j = memory.load(k[j]);                              // k_j                           [d]
      m = max(m, dot(q_i, k_j));                                       // pass 1: m = max(m, s)
      watch(1, i, j, m, l, o_sum);
    }

    // Sweep 2: the sum
    for (const Range j : tiles(k.rows(), 1)) {
      const auto k_j = memory.load(k[j]);                              // k_j                           [d]
      accumulate(l, exp_shifted(dot(q_i, k_j), m));                    // pass 2: l = l + E(s, m)
      watch(2, i, j, m, l, o_sum);
    }

    // Sweep 3: the weights, and what they weigh
    for (const Range j : tiles(k.rows(), 1)) {
      const auto k_j = memory.load(k[j]);                              // k_j                           [d]
      const auto v_j = memory.load(v[j]);                              // v_j                           [dv]
      Tile p = exp_shifted(dot(q_i, k_j), m);                          // E(s, m)                       [1]
      divide(p, l);                                                    // pass 3: p = E(s, m) / l
      add_scaled(o_sum, p, v_j);                                       // o_i = o_i + p v_j
      watch(3, i, j, m, l, o_sum);
    }

    // Store the row
    Tile o_i = total(o_sum);                                           // o_i                           [dv]
    clear_empty(o_i, l);                                               // a row that saw no key is 0 (E1)
    memory.store(o_i, transpose(o[i]));
    memory.store(log_sum_exp(std::move(m), total(l)), lse[i]);         // L_i = m + log(l)
  }
}

}  // namespace flashsteps::step01
