#pragma once
// A whole problem: all heads of all batch entries, in one of the two layouts.
#include "common/attention/definition.hpp"
#include "common/runner/options.hpp"
#include "common/runner/step.hpp"

namespace flashsteps {

/// A tensor [batch, heads, rows, cols]. In the layout bshd the rows of a head stand apart by all heads: it is read through strides.
template <class T> struct Tensor {
  Index batch = 0, heads = 0, rows = 0, cols = 0;
  Layout layout = Layout::bhsd;
  std::vector<T> numbers;

  Tensor() = default;
  Tensor(Index batch, Index heads, Index rows, Index cols, Layout layout, T value)
      : batch(batch), heads(heads), rows(rows), cols(cols), layout(layout), numbers(batch * heads * rows * cols, value) {}

  Index row_stride() const { return layout == Layout::bhsd ? cols : heads * cols; }
  Index offset(Index b, Index h) const { return layout == Layout::bhsd ? (b * heads + h) * rows * cols : b * rows * heads * cols + h * cols; }
  /// The matrix of one head.
  Slow<T> matrix(Name name, Index b, Index h) { return {name, numbers.data() + offset(b, h), rows, cols, row_stride()}; }
  Slow<const T> matrix(Name name, Index b, Index h) const { return {name, numbers.data() + offset(b, h), rows, cols, row_stride()}; }
  Raw<T> raw(Index b, Index h) const { return {numbers.empty() ? nullptr : numbers.data() + offset(b, h), row_stride()}; }
  T& at(Index b, Index h, Index i, Index x) { return numbers[offset(b, h) + i * row_stride() + x]; }
  const T& at(Index b, Index h, Index i, Index x) const { return numbers[offset(b, h) + i * row_stride() + x]; }
  /// The lengths of the axes as they stand in a file.
  std::vector<std::ptrdiff_t> shape() const {
    return layout == Layout::bhsd ? std::vector<std::ptrdiff_t>{batch, heads, rows, cols} : std::vector<std::ptrdiff_t>{batch, rows, heads, cols};
  }
};

/// What goes in; d_o only where there is a backward pass.
template <class T> struct Problem {
  Tensor<T> q, k, v, d_o;
  bool gradients = false;   // is there a backward pass?
  T scale = T(1);
  bool causal = false;
  std::string source;       // where the numbers come from, for a person

  Index batch() const { return q.batch; }
  Index heads() const { return q.heads; }
  Index kv_heads() const { return k.heads; }
  Index seq_q() const { return q.rows; }
  Index seq_k() const { return k.rows; }
  Index head_dim() const { return q.cols; }
  Index value_dim() const { return v.cols; }
  Index diagonal() const { return causal ? seq_k() - seq_q() : seq_k(); }
  /// The sizes that the closed forms of a form need, without tiles.
  HeadSizes sizes(Pieces pieces) const {
    return {.nq = seq_q(), .nk = seq_k(), .d = head_dim(), .dv = value_dim(), .diagonal = diagonal(),
            .group = pieces == Pieces::groups && kv_heads() > 0 ? heads() / kv_heads() : 1};
  }
  /// How many pieces of that size there are.
  Index count(Pieces pieces) const { return batch() * (pieces == Pieces::groups ? kv_heads() : heads()); }
};

/// What comes out, NaN until it is written.
template <class T> struct Output {
  Tensor<T> o, lse, dq, dk, dv;

  explicit Output(const Problem<T>& p) {
    const T nan = std::numeric_limits<T>::quiet_NaN();
    o = {p.batch(), p.heads(), p.seq_q(), p.value_dim(), p.q.layout, nan};
    lse = {p.batch(), p.heads(), p.seq_q(), 1, Layout::bhsd, nan};
    if (!p.gradients) return;
    dq = {p.batch(), p.heads(), p.seq_q(), p.head_dim(), p.q.layout, nan};
    dk = {p.batch(), p.kv_heads(), p.seq_k(), p.head_dim(), p.k.layout, nan};
    dv = {p.batch(), p.kv_heads(), p.seq_k(), p.value_dim(), p.v.layout, nan};
  }
  void poison(bool gradients) {
    const auto fill = [](Tensor<T>& x) { std::fill(x.numbers.begin(), x.numbers.end(), std::numeric_limits<T>::quiet_NaN()); };
    if (gradients) fill(dq), fill(dk), fill(dv);
    else fill(o), fill(lse);
  }
};

/// Tiles of Br queries by Bc keys.
struct TileShape { Index br = 1, bc = 1; };

/// Query head h of batch entry b, as a step sees it.
template <class T> Head<T> head_of(const Problem<T>& p, Output<T>& out, Index b, Index h, Index kv, TileShape tiles) {
  return {p.q.matrix(tensor::q, b, h), p.k.matrix(tensor::k, b, kv), p.v.matrix(tensor::v, b, kv), out.o.matrix(tensor::o, b, h),
          out.lse.matrix(tensor::lse, b, h), p.scale, tiles.br, tiles.bc, p.diagonal(), {}};
}
template <class T> Gradients<T> gradients_of(const Problem<T>& p, Output<T>& out, Index b, Index h, Index kv) {
  return {p.d_o.matrix(tensor::d_o, b, h), {}, out.dq.matrix(tensor::dq, b, h), out.dk.matrix(tensor::dk, b, kv), out.dv.matrix(tensor::dv, b, kv)};
}
/// The same head for the definition; with gradients, d_o is there even if it has no element.
template <class T> RawHead<T> raw_head(const Problem<T>& p, Index b, Index h, Index kv, bool gradients) {
  static const T none{};
  const Raw<T> d_o = p.d_o.numbers.empty() ? Raw<T>{&none, 0} : p.d_o.raw(b, h);
  return {p.q.raw(b, h), p.k.raw(b, kv), p.v.raw(b, kv), gradients ? d_o : Raw<T>{}, {}, p.seq_q(), p.seq_k(), p.head_dim(), p.value_dim(), p.scale, p.diagonal()};
}

/// Reads or makes Q, K, V, and dO for a step with a backward pass, as the options say.
/// @throws BadInput with one line
template <class T> Problem<T> make_problem(const Step& step, const Options& options);

}  // namespace flashsteps
