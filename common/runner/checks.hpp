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
  std::vector<Index> rows;  ///< in order
  bool all = true;          ///< are they all?
};
/// Takes all rows, or one of each of so many equal parts.
/// @param rows                 of a head
/// @param heads                query heads of all batch entries
/// @param multiply_adds_a_row  what a row costs
/// @param most                 multiply-adds that may be spent
/// @param seed                 of the choice
/// @return at least one row, if there is one
RowSample sample_rows(Index rows, Index heads, double multiply_adds_a_row, double most, std::uint64_t seed);

/// The head of K and V of query head h by definition (math 8). Steps have their own, which is held to this one.
/// @param h               query head
/// @param heads,kv_heads  how many there are of either
/// @return its head of K and V
inline Index defined_kv_head(Index h, Index heads, Index kv_heads) { return h * kv_heads / heads; }

/// Judges O and L, and dQ, dK, dV if there are gradients, over all heads.
/// @param p          the problem
/// @param out        what a step computed
/// @param gradients  are they judged too?
/// @param sample     rows of each head
/// @param rounding   of S, P and O
/// @return the errors and their budgets
template <class T> Judgement<T> judge(const Problem<T>& p, const Output<T>& out, bool gradients, const RowSample& sample, const Rounding<T>& rounding = {});

/// The same problem with dO = 0 in all rows but these.
/// @param p     the problem
/// @param rows  of each head
/// @return a copy
template <class T> Problem<T> with_rows_of_d_o(const Problem<T>& p, const std::vector<Index>& rows);

/// max|a - b| over two tensors of the same axes.
/// @param a,b      tensors, in either layout
/// @param spoiled  what counts as the same
/// @return the distance, or NaN
template <class T> double largest_distance(const Tensor<T>& a, const Tensor<T>& b, Spoiled spoiled);

/// One row at a time: the step before on each query and the keys that it sees. Writes what the whole must be, into `out`.
/// @param forward,backward  forms without a mask; backward may be nullptr
/// @param p       the problem
/// @param tiles   Br and Bc of these forms
/// @param sample  the rows
/// @param out     gets O and L, or the gradients too
template <class T>
void one_row_at_a_time(const Form& forward, const Form* backward, const Problem<T>& p, TileShape tiles, const RowSample& sample, Output<T>& out);

/// K and V repeated for every query head that reads them, so that a step without groups can run.
/// @param p  the problem
/// @return a problem with as many heads of K and V as of Q
template <class T> Problem<T> repeat_heads(const Problem<T>& p);
/// The sums of dK and dV over the heads of each group.
/// @param repeated  what was computed for repeat_heads(p)
/// @param p         the problem
/// @param out       gets dK and dV
template <class T> void sum_groups(const Output<T>& repeated, const Problem<T>& p, Output<T>& out);

}  // namespace flashsteps
