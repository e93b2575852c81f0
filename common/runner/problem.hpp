#pragma once
// A whole problem: all heads of all batch entries, in one of the two layouts.
#include "common/attention/definition.hpp"
#include "common/runner/options.hpp"
#include "common/runner/step.hpp"

namespace flashsteps {

/// A tensor [batch, heads, rows, cols]. In the layout bshd the rows of a head stand apart by all heads: it is read through strides.
template <class T> struct Tensor {
  Index batch = 0,               ///< batch entries
      heads = 0,                 ///< heads of a batch entry
      rows = 0,                  ///< rows of a head
      cols = 0;                  ///< elements of a row
  Layout layout = Layout::bhsd;  ///< order of the axes
  std::vector<T> numbers;        ///< in that order

  /// No element.
  Tensor() = default;
  /// The same number everywhere.
  /// @param batch,heads,rows,cols  the axes
  /// @param layout                 their order
  /// @param value                  of every element
  Tensor(Index batch, Index heads, Index rows, Index cols, Layout layout, T value)
      : batch(batch), heads(heads), rows(rows), cols(cols), layout(layout), numbers(batch * heads * rows * cols, value) {}

  /// @return elements from one row of a head to the next
  Index row_stride() const { return layout == Layout::bhsd ? cols : heads * cols; }
  /// @param b,h  batch entry and head
  /// @return where that head begins
  Index offset(Index b, Index h) const { return layout == Layout::bhsd ? (b * heads + h) * rows * cols : b * rows * heads * cols + h * cols; }
  /// @{
  /// The matrix of one head.
  /// @param name  its traffic is counted under it
  /// @param b,h   batch entry and head
  /// @return [rows x cols]
  Slow<T> matrix(Name name, Index b, Index h) { return {name, numbers.data() + offset(b, h), rows, cols, row_stride()}; }
  Slow<const T> matrix(Name name, Index b, Index h) const { return {name, numbers.data() + offset(b, h), rows, cols, row_stride()}; }
  /// @}
  /// @param b,h  batch entry and head
  /// @return the matrix of that head, for the definition; nothing if the tensor has no element
  Raw<T> raw(Index b, Index h) const { return {numbers.empty() ? nullptr : numbers.data() + offset(b, h), row_stride()}; }
  /// @{
  /// @param b,h,i,x  batch entry, head, row and column
  /// @return the element
  T& at(Index b, Index h, Index i, Index x) { return numbers[offset(b, h) + i * row_stride() + x]; }
  const T& at(Index b, Index h, Index i, Index x) const { return numbers[offset(b, h) + i * row_stride() + x]; }
  /// @}
  /// @return the lengths of the axes as they stand in a file
  std::vector<std::ptrdiff_t> shape() const {
    return layout == Layout::bhsd ? std::vector<std::ptrdiff_t>{batch, heads, rows, cols} : std::vector<std::ptrdiff_t>{batch, rows, heads, cols};
  }
};

/// What goes in; d_o only where there is a backward pass.
template <class T> struct Problem {
  Tensor<T> q,             ///< queries  [batch, heads, Nq, d]
      k,                   ///< keys     [batch, kv_heads, Nk, d]
      v,                   ///< values   [batch, kv_heads, Nk, dv]
      d_o;                 ///< dO       [batch, heads, Nq, dv]
  bool gradients = false;  ///< is there a backward pass?
  T scale = T(1);          ///< tau, the factor of Q K^T
  bool causal = false;     ///< is there a mask?
  std::string source;      ///< where the numbers come from, for a person

  Index batch() const { return q.batch; }                                  ///< @return batch entries
  Index heads() const { return q.heads; }                                  ///< @return query heads of a batch entry
  Index kv_heads() const { return k.heads; }                               ///< @return heads of K and V of a batch entry
  Index seq_q() const { return q.rows; }                                   ///< @return Nq
  Index seq_k() const { return k.rows; }                                   ///< @return Nk
  Index head_dim() const { return q.cols; }                                ///< @return d
  Index value_dim() const { return v.cols; }                               ///< @return dv
  Index diagonal() const { return causal ? seq_k() - seq_q() : seq_k(); }  ///< @return row i sees the keys j <= i + diagonal
  /// The sizes that the closed forms of a form need, without tiles.
  /// @param pieces  what the form takes at a time
  /// @return the sizes of one head, or of one group
  HeadSizes sizes(Pieces pieces) const {
    return {.nq = seq_q(), .nk = seq_k(), .d = head_dim(), .dv = value_dim(), .diagonal = diagonal(),
            .group = pieces == Pieces::groups && kv_heads() > 0 ? heads() / kv_heads() : 1};
  }
  /// How many pieces of that size there are.
  /// @param pieces  what the form takes at a time
  /// @return heads, or groups, of all batch entries
  Index count(Pieces pieces) const { return batch() * (pieces == Pieces::groups ? kv_heads() : heads()); }
};

/// What comes out, NaN until it is written.
template <class T> struct Output {
  Tensor<T> o,  ///< attention  [batch, heads, Nq, dv]
      lse,      ///< L          [batch, heads, Nq, 1]
      dq,       ///< as q, or no element
      dk,       ///< as k, or no element
      dv;       ///< as v, or no element

  /// @param p  whose sizes and layout they have
  explicit Output(const Problem<T>& p) {
    const T nan = std::numeric_limits<T>::quiet_NaN();
    o = {p.batch(), p.heads(), p.seq_q(), p.value_dim(), p.q.layout, nan};
    lse = {p.batch(), p.heads(), p.seq_q(), 1, Layout::bhsd, nan};
    if (!p.gradients) return;
    dq = {p.batch(), p.heads(), p.seq_q(), p.head_dim(), p.q.layout, nan};
    dk = {p.batch(), p.kv_heads(), p.seq_k(), p.head_dim(), p.k.layout, nan};
    dv = {p.batch(), p.kv_heads(), p.seq_k(), p.value_dim(), p.v.layout, nan};
  }
  /// Makes the results of a pass NaN again.
  /// @param gradients  those of the backward pass, not of the forward pass
  void poison(bool gradients) {
    const auto fill = [](Tensor<T>& x) { std::fill(x.numbers.begin(), x.numbers.end(), std::numeric_limits<T>::quiet_NaN()); };
    if (gradients) fill(dq), fill(dk), fill(dv);
    else fill(o), fill(lse);
  }
};

/// Tiles of Br queries by Bc keys.
struct TileShape {
  Index br = 1,  ///< queries of a tile
      bc = 1;    ///< keys of a tile
};

/// Query head h of batch entry b, as a step sees it.
/// @param p      the problem
/// @param out    its results
/// @param b,h    batch entry and query head
/// @param kv     the head of K and V that it reads
/// @param tiles  Br and Bc
/// @return the head, which nobody watches
template <class T> Head<T> head_of(const Problem<T>& p, Output<T>& out, Index b, Index h, Index kv, TileShape tiles) {
  return {p.q.matrix(tensor::q, b, h), p.k.matrix(tensor::k, b, kv), p.v.matrix(tensor::v, b, kv), out.o.matrix(tensor::o, b, h),
          out.lse.matrix(tensor::lse, b, h), p.scale, tiles.br, tiles.bc, p.diagonal(), {}};
}
/// Its gradients, without dL.
/// @param p      the problem
/// @param out    its results
/// @param b,h    batch entry and query head
/// @param kv     the head of K and V that it reads
/// @return where they lie
template <class T> Gradients<T> gradients_of(const Problem<T>& p, Output<T>& out, Index b, Index h, Index kv) {
  return {p.d_o.matrix(tensor::d_o, b, h), {}, out.dq.matrix(tensor::dq, b, h), out.dk.matrix(tensor::dk, b, kv), out.dv.matrix(tensor::dv, b, kv)};
}
/// The same head for the definition; with gradients, d_o is there even if it has no element.
/// @param p          the problem
/// @param b,h        batch entry and query head
/// @param kv         the head of K and V that it reads
/// @param gradients  is dO wanted?
/// @return the head
template <class T> RawHead<T> raw_head(const Problem<T>& p, Index b, Index h, Index kv, bool gradients) {
  static const T none{};
  const Raw<T> d_o = p.d_o.numbers.empty() ? Raw<T>{&none, 0} : p.d_o.raw(b, h);
  return {p.q.raw(b, h), p.k.raw(b, kv), p.v.raw(b, kv), gradients ? d_o : Raw<T>{}, {}, p.seq_q(), p.seq_k(), p.head_dim(), p.value_dim(), p.scale, p.diagonal()};
}

/// Reads or makes Q, K, V, and dO for a step with a backward pass, as the options say.
/// @param step     says what it takes
/// @param options  say where Q, K and V come from
/// @return the problem
/// @throws BadInput with one line
template <class T> Problem<T> make_problem(const Step& step, const Options& options);

}  // namespace flashsteps
