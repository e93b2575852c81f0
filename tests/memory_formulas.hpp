#pragma once
// The counts of elements as the mathematical specification prints them, written from it and not from the steps' code, so that
// memory.cpp can hold the one to the other. Numbers such as 4.3 are its sections.
#include "common/memory/memory.hpp"

namespace flashsteps::formula {

/// The sizes of one head.
struct Sizes {
  Index nq, nk, d, dv, br = 1, bc = 1;
  Index tr() const { return (nq + br - 1) / br; }
  Index tc() const { return (nk + bc - 1) / bc; }
};

// ---- Forward. None of these stores L, except FlashAttention-2, of which it is part -----------------------------------

/// 1.1
inline Traffic standard(const Sizes& x) {
  return {x.nq * x.d + x.nk * x.d + 2 * x.nq * x.nk + x.nk * x.dv, 2 * x.nq * x.nk + x.nq * x.dv};
}
/// 1.3, p sweeps over the keys
inline Traffic sweeps(const Sizes& x, Index p) { return {x.nq * x.d + x.tr() * x.nk * (p * x.d + x.dv), x.nq * x.dv}; }
/// 4.3
inline Traffic fa1(const Sizes& x) {
  return {x.nk * (x.d + x.dv) + x.tc() * x.nq * (x.d + x.dv + 2), x.nq * (x.dv + 2) + x.tc() * x.nq * (x.dv + 2)};
}
/// 4.3, the first column tile peeled
inline Traffic fa1_peeled(const Sizes& x) {
  return {x.nk * (x.d + x.dv) + x.tc() * x.nq * x.d + (x.tc() - 1) * x.nq * (x.dv + 2), x.tc() * x.nq * (x.dv + 2)};
}
/// 4.3, the pass that joins m and l to L
inline Traffic fa1_lse(const Sizes& x) { return {2 * x.nq, x.nq}; }
/// 5.2
inline Traffic fa2(const Sizes& x) { return {x.nq * x.d + x.tr() * x.nk * (x.d + x.dv), x.nq * x.dv + x.nq}; }

// ---- Backward --------------------------------------------------------------------------------------------------------

/// 6.3
inline Traffic standard_backward(const Sizes& x) {
  return {5 * x.nq * x.nk + x.nq * (x.d + 2 * x.dv) + x.nk * (x.d + x.dv), 2 * x.nq * x.nk + x.nq * x.d + x.nk * (x.d + x.dv)};
}
/// 6.4, with the initialisation
inline Traffic fa1_backward(const Sizes& x) {
  return {x.nk * (x.d + x.dv) + x.tc() * x.nq * (2 * x.d + 2 * x.dv + 2),
          x.nq * x.d + x.nk * (x.d + x.dv) + x.tc() * x.nq * x.d + x.nk * (x.d + x.dv)};
}
/// 6.4 with L, the first column tile peeled, D computed once
inline Traffic fa1_backward_peeled(const Sizes& x) {
  return {x.nk * (x.d + x.dv) + x.tc() * x.nq * (x.d + x.dv + 1) + x.nq * x.dv + (x.tc() - 1) * x.nq * (x.d + 1),
          x.tc() * x.nq * x.d + x.nq + x.nk * (x.d + x.dv)};
}
/// 6.5
inline Traffic column_order(const Sizes& x) {
  return {2 * x.nq * x.dv + x.nk * (x.d + x.dv) + x.tc() * x.nq * (x.d + x.dv + 2), x.nq + x.nq * x.d + x.nk * (x.d + x.dv), x.tc() * x.nq * x.d};
}
/// 6.6
inline Traffic row_order(const Sizes& x) {
  return {x.nq * (x.d + 2 * x.dv + 1) + x.tr() * x.nk * (x.d + x.dv), x.nk * (x.d + x.dv) + x.nq * x.d, x.tr() * x.nk * (x.d + x.dv)};
}
/// An atomic add as one read and one write (6.5).
inline Traffic sequential(const Traffic& t) { return {t.reads + t.atomics, t.writes + t.atomics, 0}; }

// ---- Tiles under a causal mask (7.2). Ceil and floor are those of mathematics --------------------------------------------

inline Index floor_div(Index a, Index b) { return a / b - (a % b < 0); }
inline Index ceil_div(Index a, Index b) { return -floor_div(-a, b); }
/// Column tiles that row tile I visits.
inline Index visited(const Sizes& x, Index I, Index diagonal) {
  const Index r1 = std::min((I + 1) * x.br, x.nq);
  return std::clamp<Index>(ceil_div(r1 + diagonal, x.bc), 0, x.tc());
}
/// Those of them that need no mask.
inline Index unmasked(const Sizes& x, Index I, Index diagonal) {
  const Index r0 = I * x.br;
  return r0 + diagonal + 1 >= x.nk ? x.tc() : std::clamp<Index>(floor_div(r0 + diagonal + 1, x.bc), 0, x.tc());
}
/// The first row tile that visits column tile J.
inline Index first_row_tile(const Sizes& x, Index J, Index diagonal) { return std::max<Index>(0, floor_div(J * x.bc - diagonal, x.br)); }

/// 7.3, and O and L of 5.2
inline Traffic causal(const Sizes& x, Index diagonal) {
  Index keys = 0;
  for (Index I = 0; I < x.tr(); ++I) keys += std::min(x.nk, visited(x, I, diagonal) * x.bc);
  return {x.nq * x.d + (x.d + x.dv) * keys, x.nq * x.dv + x.nq};
}
/// 6.5 over the tiles that are visited, with n_J = Nq - Br I_min(J), for g query heads that share K and V (8)
inline Traffic causal_backward(const Sizes& x, Index diagonal, Index g) {
  Index queries = 0;
  for (Index J = 0; J < x.tc(); ++J) queries += x.nq == 0 ? 0 : x.nq - x.br * first_row_tile(x, J, diagonal);
  return {2 * g * x.nq * x.dv + x.nk * (x.d + x.dv) + g * (x.d + x.dv + 2) * queries, g * (x.nq + x.nq * x.d) + x.nk * (x.d + x.dv), g * x.d * queries};
}

// ---- Footprints, of tiles that are not cut off --------------------------------------------------------------------------

/// 4.2
inline Index fa1_footprint(Index br, Index bc, Index d, Index dv) { return bc * (d + dv) + br * (d + dv) + br * bc + 6 * br; }
/// 5.2
inline Index fa2_footprint(Index br, Index bc, Index d, Index dv) { return br * (d + dv) + bc * (d + dv) + br * bc + 3 * br; }
/// 6.5
inline Index column_order_footprint(Index br, Index bc, Index d, Index dv) {
  return std::max(2 * br * dv + br, bc * (3 * d + 2 * dv) + br * (2 * d + dv + 2) + 2 * br * bc);
}

}  // namespace flashsteps::formula
