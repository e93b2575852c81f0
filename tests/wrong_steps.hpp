#pragma once
// Steps that are wrong on purpose: step 05, 07 and 08 with one mistake each, of the kind that people make. The tests of the harness
// show that the functions of tests/chain.hpp catch every one of them.
#include "tests/steps.hpp"

namespace flashsteps::wrong {

/// What is wrong in a forward pass.
enum class Mistake {
  none,
  no_rescale,          // O_I is not rescaled when the maximum grows
  sum_not_rescaled,    // l is not rescaled
  rescale_inverse,     // O_I is divided by alpha, as printed (erratum F2-8)
  max_not_subtracted,  // exp(S) as it is
  max_of_tile,         // the maximum of the tile instead of that of all keys so far
  top_left,            // the mask is aligned with the first query
  one_key_more,        // the mask lets one key too many through
  last_tile,           // the last tile of keys is left out when it is ragged
  no_scale,            // S = Q K^T
  not_normalised,      // O_I is not divided by l
  lse_without_max,     // L = log(l)
  rows_swapped,        // two rows of O change places
  last_row             // the last row of O is never written
};
/// The one that is made. (A step is a plain function, so it stands here.)
inline Mistake mistake = Mistake::none;

/// Step 07's forward pass with that mistake; without a mask it is step 05's.
template <class T> void forward(const Head<T>& head, Memory& memory) {
  const auto& [q, k, v, o, lse, scale, br, bc, right_diagonal, watch] = head;
  using enum Mistake;
  Index diagonal = right_diagonal;
  if (mistake == top_left && diagonal < k.rows()) diagonal = 0;
  if (mistake == one_key_more) diagonal += 1;

  for (const Range i : tiles(q.rows(), br)) {
    const Tile q_i = scaled(memory.load_lanes(q[i]), mistake == no_scale ? T(1) : scale);
    Tile o_i = memory.tile(i.size(), v.cols(), T(0));
    Tile m_i = memory.tile(i.size(), 1, -infinity<T>);
    Tile l_i = memory.tile(i.size(), 1, T(0));

    for (const Range j : tiles(k.rows(), bc)) {
      const TileKind kind = kind_of_tile(i, j, diagonal);
      if (kind == skip || (mistake == last_tile && j.size() < bc)) break;
      const auto k_j = memory.load(k[j]);
      const auto v_j = memory.load(v[j]);
      Tile s = multiply(q_i, transpose(k_j));
      if (kind == partial) mask_causal(s, i, j, diagonal);
      Tile m_new = mistake == max_of_tile ? row_max(s) : max(m_i, row_max(s));
      if (mistake == max_not_subtracted) m_new = memory.tile(i.size(), 1, T(0));
      Tile p = exp_shifted(std::move(s), m_new);
      Tile alpha = exp_shifted(std::move(m_i), m_new);
      const Tile one = memory.tile(i.size(), 1, T(1));
      Tile inverse = alpha;
      inverse.array() = T(1) / inverse.array();
      rescale_add_row_sum(l_i, mistake == sum_not_rescaled ? one : alpha, p);
      rescale_add_product(o_i, mistake == no_rescale ? one : mistake == rescale_inverse ? inverse : alpha, p, v_j);
      m_i = std::move(m_new);
      watch(i, j, m_i, l_i, o_i);
    }
    if (mistake != not_normalised) divide(o_i, l_i);
    if (mistake == rows_swapped && i.size() > 1)
      for (Index e = 0; e < v.cols(); ++e) std::swap(o_i(0, e), o_i(i.size() - 1, e));
    const bool last = mistake == last_row && i.end == q.rows();
    for (Index r = 0; r < i.size() - (last ? 1 : 0); ++r) {
      Tile row = memory.tile(1, v.cols(), T(0));
      for (Index e = 0; e < v.cols(); ++e) row(0, e) = o_i(r, e);
      memory.store(row, o[{i.begin + r, i.begin + r + 1}]);
    }
    if (mistake == lse_without_max) m_i = memory.tile(i.size(), 1, T(0));
    memory.store(log_sum_exp(std::move(m_i), l_i), lse[i]);
  }
}

/// What is wrong in a backward pass.
enum class GradientMistake {
  none,
  no_delta,         // dS = P o dP
  delta_of_dlse,    // dL is not subtracted from D
  no_scale,         // dQ and dK without tau
  scale_twice,      // dK has it twice
  top_left,         // the mask is aligned with the first query
  overwritten,      // dQ_I is stored, not added to
  one_kv_head,      // dK and dV of the last head of a group alone
  dv_of_weights,    // dV_J = P^T O
  row_tile_missing  // dK and dV lack the last row tile
};
inline GradientMistake gradient_mistake = GradientMistake::none;

/// Step 08's backward pass with that mistake; for a group of one it is step 07's, and without a mask step 06's.
template <class T> void backward(std::span<const Head<T>> group, std::span<const Gradients<T>> gradients, Memory& memory) {
  using enum GradientMistake;
  const auto& [first_q, k, v, first_o, first_lse, scale, br, bc, right_diagonal, watch] = group.front();
  const auto& [first_do, first_dlse, first_dq, dk, dv] = gradients.front();
  const Index heads = Index(group.size()), rows = first_q.rows();
  const Index diagonal = gradient_mistake == top_left && right_diagonal < k.rows() ? 0 : right_diagonal;

  const Workspace<T> deltas(tensor::delta, heads * rows);
  for (Index h = 0; h < heads; ++h) {
    for (const Range i : tiles(rows, br)) {
      Tile d_i = row_dot(memory.load_lanes(gradients[h].d_o[i]), memory.load_lanes(group[h].o[i]));
      if (gradients[h].d_lse.rows() > 0 && gradient_mistake != delta_of_dlse) d_i = subtract(std::move(d_i), memory.load_lanes(gradients[h].d_lse[i]));
      if (gradient_mistake == no_delta) d_i = memory.tile(i.size(), 1, T(0));
      memory.store(d_i, deltas[Range{h * rows, (h + 1) * rows}][i]);
    }
    memory.fill(gradients[h].dq, 0);
  }
  for (const Range j : tiles(k.rows(), bc)) {
    const Tile k_j = scaled(memory.load_lanes(k[j]), scale);
    const Tile k_t = gradient_mistake == no_scale ? transposed(memory.load_lanes(k[j])) : transposed(k_j);
    const Tile v_j = memory.load_lanes(v[j]);
    Tile dk_j = memory.tile(j.size(), k.cols(), T(0));
    Tile dv_j = memory.tile(j.size(), v.cols(), T(0));
    for (Index h = 0; h < heads; ++h) {
      if (gradient_mistake == one_kv_head) dk_j = memory.tile(j.size(), k.cols(), T(0)), dv_j = memory.tile(j.size(), v.cols(), T(0));
      for (const Range i : tiles(rows, br)) {
        const TileKind kind = kind_of_tile(i, j, diagonal);
        if (kind == skip) continue;
        const auto q_i = memory.load(group[h].q[i]);
        const auto do_i = memory.load(gradients[h].d_o[i]);
        const auto o_i = memory.load(group[h].o[i]);
        const auto l_i = memory.load(group[h].lse[i]);
        const auto d_i = memory.load(deltas[Range{h * rows, (h + 1) * rows}][i]);
        Tile s = multiply(k_j, transpose(q_i));
        if (kind == partial) mask_causal_columns(s, i, j, diagonal);
        Tile p = probabilities_columns(std::move(s), l_i);
        Tile dp = multiply(v_j, transpose(do_i));
        Tile ds = softmax_gradient_columns(p, std::move(dp), d_i);
        if (gradient_mistake == overwritten) memory.fill(gradients[h].dq[i], 0);
        memory.atomic_add(multiply(k_t, view(ds)), transpose(gradients[h].dq[i]));
        if (gradient_mistake == row_tile_missing && i.end == rows && i.begin > 0) continue;
        add_product(dv_j, p, gradient_mistake == dv_of_weights ? o_i : do_i);
        add_product(dk_j, ds, q_i);
      }
    }
    if (gradient_mistake != no_scale) dk_j = scaled(std::move(dk_j), scale);
    if (gradient_mistake == scale_twice) dk_j = scaled(std::move(dk_j), scale);
    memory.store(dk_j, dk[j]);
    memory.store(dv_j, dv[j]);
  }
}
/// The same for one head.
template <class T> void backward_of_one(const Head<T>& head, const Gradients<T>& gradients, Memory& memory) {
  backward<T>(std::span<const Head<T>>(&head, 1), std::span<const Gradients<T>>(&gradients, 1), memory);
}

/// Head h modulo the key-value heads: right for one group, and for groups of one.
inline Index kv_head_modulo(Index h, Index, Index kv_heads) { return h % kv_heads; }
/// All read the first head.
inline Index kv_head_first(Index, Index, Index) { return 0; }

}  // namespace flashsteps::wrong
