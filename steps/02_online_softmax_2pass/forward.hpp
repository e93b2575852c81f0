#pragma once
// Online softmax: maximum and sum in one pass, and attention in two sweeps (math 2; Milakov and Gimelshein, Algorithm 3).
// When the maximum grows from m to m', every term summed so far shrinks by the same factor E(m, m').
#include "common/attention/verbs_columns.hpp"

namespace flashsteps::step02 {

/// The maximum of some scores, and the sum of their exponentials shifted by it. {} is no score at all.
template <class T> struct MaxSum {
  T m = -infinity<T>,  ///< maximum
      l = T(0);        ///< sum of E(x, m)
};

/// The pair of both sets of scores together (2.2): associative, commutative, {} is neutral.
/// @param a,b  two sets of scores
/// @return the pair of their union
template <class T> MaxSum<T> merge(const MaxSum<T>& a, const MaxSum<T>& b) {
  const T m = a.m < b.m ? b.m : a.m;                                   // m = max(m_a, m_b)
  return {m, a.l * exp_shifted(a.m, m) + b.l * exp_shifted(b.m, m)};   // l = l_a E(m_a, m) + l_b E(m_b, m)
}

/// a = softmax(x) in two passes over slow memory (2.1). x and a are [n x 1].
/// @param x       numbers, in slow memory
/// @param a       their softmax, of the same length
/// @param memory  counts what is read, written and held on chip
template <class T> void softmax(const Slow<const T>& x, const Slow<T>& a, Memory& memory) {
  // Pass 1: maximum and sum
  Tile m = memory.tile(1, 1, -infinity<T>);                            // maximum so far                [1]
  Tile l = memory.tile(1, 2, T(0));                                    // sum, and what rounding lost   [1 x 2]
  for (const Range i : tiles(x.rows(), 1)) {
    Tile x_i = memory.load_lanes(x[i]);                                // x_i                           [1]
    Tile m_new = max(m, x_i);                                          // m_new = max(m, x_i)           [1]
    Tile alpha = exp_shifted(std::move(m), m_new);                     // alpha = E(m, m_new)           [1]
    rescale_add(l, alpha, exp_shifted(std::move(x_i), m_new));         // l = alpha l + E(x_i, m_new)
    m = std::move(m_new);
  }

  // Pass 2: the weights
  for (const Range i : tiles(x.rows(), 1)) {
    Tile a_i = exp_shifted(memory.load_lanes(x[i]), m);                // E(x_i, m)                     [1]
    divide(a_i, l);                                                    // a_i = E(x_i, m) / l
    memory.store(a_i, a[i]);
  }
}

/// The first pass block by block: each block has its own maximum, and the pairs are merged (2.2).
/// @param x       [n x 1]
/// @param block   numbers of a block, at least 1
/// @param memory  counts what is read, written and held on chip
/// @return m and l of x
template <class T> MaxSum<T> max_sum(const Slow<const T>& x, Index block, Memory& memory) {
  MaxSum<T> sum;
  for (const Range i : tiles(x.rows(), block)) {
    Tile x_i = memory.load_lanes(x[i]);                                // a block                       [b x 1]
    const Tile m = column_max(x_i);                                    // m~ = max x                    [1]
    const Tile l = column_sum(exp_shifted_columns(std::move(x_i), m)); // l~ = sum E(x, m~)             [1]
    sum = merge(sum, {m(0), l(0)});                                    // (m, l) = (m, l) + (m~, l~)
  }
  return sum;
}

/// Attention in two sweeps over the keys: the first finds m and l together (2.3).
/// @param head    Q [Nq x d], K [Nk x d] and V [Nk x dv] in; O [Nq x dv] and L [Nq] out
/// @param memory  counts what is read, written and held on chip
template <class T> void two_sweeps(const Head<T>& head, Memory& memory) {
  const auto& [q, k, v, o, lse, scale, br, bc, diagonal, watch] = head;

  // Load the row; o, m and l are born on chip
  for (const Range i : tiles(q.rows(), 1)) {
    const Tile q_i = scaled(memory.load_lanes(transpose(q[i])), scale);  // tau q_i                     [d]
    Tile o_sum = memory.tile(v.cols(), 2, T(0));                       // o_i, and what rounding lost   [dv x 2]
    Tile m = memory.tile(1, 1, -infinity<T>);                          // maximum of the keys so far    [1]
    Tile l = memory.tile(1, 2, T(0));                                  // sum, and what rounding lost   [1 x 2]

    // Sweep 1: maximum and sum
    for (const Range j : tiles(k.rows(), 1)) {
      const auto k_j = memory.load(k[j]);                              // k_j                           [d]
      Tile s = dot(q_i, k_j);                                          // s = tau q_i . k_j             [1]
      Tile m_new = max(m, s);                                          // m_new = max(m, s)             [1]
      Tile p = exp_shifted(std::move(s), m_new);                       // p = E(s, m_new)               [1]
      Tile alpha = exp_shifted(std::move(m), m_new);                   // alpha = E(m, m_new)           [1]
      rescale_add(l, alpha, p);                                        // pass 1: l = alpha l + p
      m = std::move(m_new);
      watch(1, i, j, m, l, o_sum);
    }

    // Sweep 2: the weights, and what they weigh
    for (const Range j : tiles(k.rows(), 1)) {
      const auto k_j = memory.load(k[j]);                              // k_j                           [d]
      const auto v_j = memory.load(v[j]);                              // v_j                           [dv]
      Tile p = exp_shifted(dot(q_i, k_j), m);                          // E(s, m)                       [1]
      divide(p, l);                                                    // pass 2: p = E(s, m) / l
      add_scaled(o_sum, p, v_j);                                       // o_i = o_i + p v_j
      watch(2, i, j, m, l, o_sum);
    }

    // Store the row
    Tile o_i = total(o_sum);                                           // o_i                           [dv]
    clear_empty(o_i, l);                                               // a row that saw no key is 0 (E1)
    memory.store(o_i, transpose(o[i]));
    memory.store(log_sum_exp(std::move(m), total(l)), lse[i]);         // L_i = m + log(l)
  }
}

}  // namespace flashsteps::step02
