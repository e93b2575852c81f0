#pragma once
// Holds what a step computed to the definition, and to what the step before computes.
#include "common/attention/budget.hpp"
#include "common/runner/execute.hpp"
#include "common/runner/tile_choice.hpp"

namespace flashsteps {

/// Above so many multiply-adds the definition takes a sample of the rows; computing row by row with a step, above a tenth of it.
inline constexpr double most_multiply_adds = 1e10;

/// The rows of a head that are held to the definition: all, or a seeded sample.
struct RowSample {
  std::vector<Index> rows;
  bool all = true;
};
RowSample sample_rows(Index rows, Index heads, double multiply_adds_a_row, double most, std::uint64_t seed);

/// The head of K and V of query head h by definition (math 8). Steps have their own, which is held to this one.
inline Index defined_kv_head(Index h, Index heads, Index kv_heads) { return h * kv_heads / heads; }

/// Judges O and L, and dQ, dK, dV if there are gradients, over all heads.
template <class T> Judgement<T> judge(const Problem<T>& p, const Output<T>& out, bool gradients, const RowSample& sample, const Rounding<T>& rounding = {});

/// The same problem with dO = 0 in all rows but these.
template <class T> Problem<T> with_rows_of_d_o(const Problem<T>& p, const std::vector<Index>& rows);

/// max|a - b| over two tensors of the same axes.
template <class T> double largest_distance(const Tensor<T>& a, const Tensor<T>& b, Spoiled spoiled);

/// One row at a time: the step before on each query and the keys that it sees. Writes what the whole must be, into `out`.
/// @param forward,backward forms without a mask; backward may be nullptr
template <class T>
void one_row_at_a_time(const Form& forward, const Form* backward, const Problem<T>& p, TileShape tiles, const RowSample& sample, Output<T>& out);

/// K and V repeated for every query head that reads them, so that a step without groups can run.
template <class T> Problem<T> repeat_heads(const Problem<T>& p);
/// The sums of dK and dV over the heads of each group.
template <class T> void sum_groups(const Output<T>& repeated, const Problem<T>& p, Output<T>& out);

}  // namespace flashsteps
