#pragma once
// What a step computes: the attention of one head, its gradients, and which tiles of it matter.
#include "common/attention/watch.hpp"
#include "common/memory/slow.hpp"
#include <array>
#include <string_view>

namespace flashsteps {

/// The tensors whose traffic is counted. Those after dv are a step's own, in slow memory.
namespace tensor {
/// @{
/// The name of one tensor.
inline constexpr Name q{0}, k{1}, v{2}, o{3}, lse{4}, d_o{5}, d_lse{6}, dq{7}, dk{8}, dv{9}, m{10}, l{11}, delta{12}, s{13}, p{14}, dp{15}, ds{16}, x{17}, a{18},
    o_float{19};
/// @}
/// What programs call them, by number.
inline constexpr std::array<std::string_view, name_count> text{"q",  "k", "v", "o",     "lse", "do", "dlse", "dq", "dk", "dv",
                                                               "m",  "l", "D", "s",     "p",   "dp", "ds",   "x",  "a",  "o_float"};
}  // namespace tensor

/// One head. Row i sees the keys j <= i + diagonal.
template <class T> struct Head {
  Slow<const T> q,   ///< queries     [Nq x d]
      k,             ///< keys        [Nk x d]
      v;             ///< values      [Nk x dv]
  Slow<T> o,         ///< attention   [Nq x dv]
      lse;           ///< L           [Nq x 1]
  T scale;           ///< tau, the factor of Q K^T
  Index br,          ///< queries of a tile
      bc;            ///< keys of a tile
  Index diagonal;    ///< Nk - Nq if causal; Nk, that is no mask, if not
  Watch<T> watch{};  ///< the log of one row, if it is wanted

  /// The same attention for the query rows i alone: rows are independent.
  /// @param i  rows, inside [0, Nq)
  /// @return the head with these rows of Q, O and L
  Head rows(Range i) const { return {q[i], k, v, o[i], lse[i], scale, br, bc, diagonal + i.begin, watch.rows(i)}; }
  /// The same with the keys j alone, for a backward pass: O and L stay those of all keys.
  /// @param j  keys, inside [0, Nk)
  /// @return the head with these rows of K and V
  Head keys(Range j) const { return {q, k[j], v[j], o, lse, scale, br, bc, diagonal - j.begin}; }
};

/// Its gradients: dO comes in, and dL where the loss depends on L; the others go out.
template <class T> struct Gradients {
  Slow<const T> d_o;    ///< dO  [Nq x dv]
  Slow<const T> d_lse;  ///< dL  [Nq x 1], or no rows
  Slow<T> dq,           ///< dQ  [Nq x d]
      dk,               ///< dK  [Nk x d]
      dv;               ///< dV  [Nk x dv]

  /// What belongs to the keys j alone; dQ is a sum over all keys.
  /// @param j  keys, inside [0, Nk)
  /// @return the gradients with these rows of dK and dV
  Gradients keys(Range j) const { return {d_o, d_lse, dq, dk[j], dv[j]}; }
};

/// Three kinds of tile: no pair with j <= i + diagonal, only such pairs, or some (7.2).
enum TileKind {
  skip,    ///< no pair
  full,    ///< only such pairs
  partial  ///< some
};

/// Of which kind is the tile of queries i and keys j?
/// @param i         queries
/// @param j         keys
/// @param diagonal  row i sees the keys j <= i + diagonal
/// @return its kind
inline TileKind kind_of_tile(Range i, Range j, Index diagonal) {
  if (j.begin > i.end - 1 + diagonal) return skip;
  if (j.end - 1 <= i.begin + diagonal) return full;
  return partial;
}

}  // namespace flashsteps
