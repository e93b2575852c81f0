#pragma once
// Online softmax with one number of state: L, the logarithm of the sum of the exponentials so far.
// A maximum is taken in every step, so that nothing overflows, and is forgotten again. Nothing is divided.
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

/// a = softmax(x) in two passes over slow memory, with L alone. x and a are [n x 1].
/// @param x       numbers, in slow memory
/// @param a       their softmax, of the same length
/// @param memory  counts what is read, written and held on chip
template <class T> void softmax(const Slow<const T>& x, const Slow<T>& a, Memory& memory) {
  // Pass 1: the logarithm of the sum
  Tile lse = memory.tile(1, 1, -infinity<T>);                          // L so far                      [1]
  for (const Range i : tiles(x.rows(), 1)) {
    Tile x_i = memory.load_lanes(x[i]);                                // x_i                           [1]
    Tile top = max(lse, x_i);                                          // t = max(L, x_i)               [1]
    Tile old = exp_shifted(std::move(lse), top);                       // E(L, t)                       [1]
    Tile sum = add(old, exp_shifted(std::move(x_i), top));             // E(L, t) + E(x_i, t)           [1]
    lse = log_sum_exp(std::move(top), sum);                            // L = t + log(...)
  }

  // Pass 2: the weights
  for (const Range i : tiles(x.rows(), 1)) {
    Tile a_i = exp_shifted(memory.load_lanes(x[i]), lse);              // a_i = E(x_i, L)               [1]
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

/// Attention in two sweeps over the keys: the first finds L, the second weighs with it.
/// @param head    Q [Nq x d], K [Nk x d] and V [Nk x dv] in; O [Nq x dv] and L [Nq] out
/// @param memory  counts what is read, written and held on chip
template <class T> void two_sweeps(const Head<T>& head, Memory& memory) {
  const auto& [q, k, v, o, lse, scale, br, bc, diagonal, watch] = head;

  // Load the row; o and L are born on chip
  for (const Range i : tiles(q.rows(), 1)) {
    const Tile q_i = scaled(memory.load_lanes(transpose(q[i])), scale);  // tau q_i                     [d]
    Tile o_sum = memory.tile(v.cols(), 2, T(0));                       // o_i, and what rounding lost   [dv x 2]
    Tile lse_i = memory.tile(1, 1, -infinity<T>);                      // L of the keys so far          [1]

    // Sweep 1: the logarithm of the sum
    for (const Range j : tiles(k.rows(), 1)) {
      const auto k_j = memory.load(k[j]);                              // k_j                           [d]
      Tile s = dot(q_i, k_j);                                          // s = tau q_i . k_j             [1]
      Tile top = max(lse_i, s);                                        // t = max(L, s)                 [1]
      Tile old = exp_shifted(std::move(lse_i), top);                   // E(L, t)                       [1]
      Tile sum = add(old, exp_shifted(std::move(s), top));             // E(L, t) + E(s, t)             [1]
      lse_i = log_sum_exp(std::move(top), sum);                        // L = t + log(...)
    }

    // Sweep 2: the weights, and what they weigh
    for (const Range j : tiles(k.rows(), 1)) {
      const auto k_j = memory.load(k[j]);                              // k_j                           [d]
      const auto v_j = memory.load(v[j]);                              // v_j                           [dv]
      const Tile p = exp_shifted(dot(q_i, k_j), lse_i);                // P = E(s, L)                   [1]
      add_scaled(o_sum, p, v_j);                                       // o_i = o_i + p v_j
    }

    // Store the row
    memory.store(total(o_sum), transpose(o[i]));                       // o_i, 0 if the row saw no key (E1)
    memory.store(lse_i, lse[i]);                                       // L_i
  }
}

}  // namespace flashsteps::step02
