#pragma once
// One head as the tests use it: seeded inputs, outputs that are NaN until somebody writes them.
#include "common/attention/budget.hpp"
#include "common/attention/head.hpp"
#include <cstring>
#include <random>
#include <span>

namespace flashsteps {

template <class T> const T nan_of = std::numeric_limits<T>::quiet_NaN();

/// The sizes of a head and of its tiles.
struct CaseShape {
  Index nq, nk, d, dv, br = 4, bc = 4;
  bool causal = false;
};

/// A head with its numbers, gradients included. Numbers are standard normal, rounded to float so that every type holds the same.
template <class T> struct Case : CaseShape {
  T scale;
  unsigned seed;
  std::vector<T> q, k, v, d_o, d_lse;        // in
  std::vector<T> o, lse, dq, dk, dv_;        // out
  std::vector<Moment<T>> moments;            // what the step knew of row `watched`
  Index watched = -1;
  bool with_d_lse = false;

  explicit Case(const CaseShape& shape, T scale = T(0.4), unsigned seed = 1) : CaseShape(shape), scale(scale), seed(seed) {
    std::mt19937 random(seed);
    std::normal_distribution<double> normal;
    const auto draw = [&](Index n) {
      std::vector<T> x(n);
      for (T& y : x) y = T(float(normal(random)));
      return x;
    };
    q = draw(nq * d), k = draw(nk * d), v = draw(nk * dv), d_o = draw(nq * dv), d_lse = draw(nq);
    poison();
  }
  /// Fills every output with NaN.
  void poison() {
    o.assign(nq * dv, nan_of<T>), lse.assign(nq, nan_of<T>);
    dq.assign(nq * d, nan_of<T>), dk.assign(nk * d, nan_of<T>), dv_.assign(nk * dv, nan_of<T>);
    moments.clear();
  }
  Index diagonal() const { return causal ? nk - nq : nk; }

  Head<T> head() {
    Head<T> head{{tensor::q, q.data(), nq, d},  {tensor::k, k.data(), nk, d}, {tensor::v, v.data(), nk, dv}, {tensor::o, o.data(), nq, dv},
                 {tensor::lse, lse.data(), nq, 1}, scale, br, bc, diagonal(), {}};
    if (watched >= 0) head.watch = {moments, watched};
    return head;
  }
  Gradients<T> gradients() {
    return {{tensor::d_o, d_o.data(), nq, dv},
            with_d_lse ? Slow<const T>{tensor::d_lse, d_lse.data(), nq, 1} : Slow<const T>{},
            {tensor::dq, dq.data(), nq, d},
            {tensor::dk, dk.data(), nk, d},
            {tensor::dv, dv_.data(), nk, dv}};
  }
  RawHead<T> raw(bool gradients = false) const {
    return {{q.data(), d}, {k.data(), d}, {v.data(), dv}, {gradients ? d_o.data() : nullptr, dv}, {gradients && with_d_lse ? d_lse.data() : nullptr, 1},
            nq, nk, d, dv, scale, diagonal()};
  }
  Results<T> results(bool gradients = false) const {
    Results<T> r{{o.data(), dv}, {lse.data(), 1}, {}, {}, {}};
    if (gradients) r.dq = {dq.data(), d}, r.dk = {dk.data(), d}, r.dv = {dv_.data(), dv};
    return r;
  }
  /// The results held to the definition (float and double).
  Judgement<T> judge(bool gradients = false) const {
    std::vector<Index> rows(nq);
    for (Index i = 0; i < nq; ++i) rows[i] = i;
    return Judgement<T>().add(raw(gradients), results(gradients), rows);
  }
  /// O and L by the definition, in R.
  template <class R> std::pair<std::vector<R>, std::vector<R>> define() const {
    std::pair<std::vector<R>, std::vector<R>> result;
    for (Index i = 0; i < nq; ++i) {
      const RowResult<R> row = define_row<R>(raw(), i);
      result.first.insert(result.first.end(), row.o.begin(), row.o.end());
      result.second.push_back(row.lse);
    }
    return result;
  }
  /// dQ, dK, dV by the definition, in R.
  template <class R> GradientSums<R> define_gradients() const {
    GradientSums<R> sums(raw(true));
    for (Index i = 0; i < nq; ++i) define_gradient_row(raw(true), i, define_row<R>(raw(true), i), sums);
    return sums;
  }
};

/// The same case in another number type.
template <class To, class From> Case<To> convert(const Case<From>& x) {
  Case<To> y(x, To(x.scale), x.seed);
  const auto copy = [](const std::vector<From>& from, std::vector<To>& to) { to.assign(from.begin(), from.end()); };
  copy(x.q, y.q), copy(x.k, y.k), copy(x.v, y.v), copy(x.d_o, y.d_o), copy(x.d_lse, y.d_lse);
  y.with_d_lse = x.with_d_lse;
  return y;
}

/// Bit for bit the same.
template <class T> bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

/// The shapes that are always among those tested: 0, 1, tile - 1, tile, tile + 1, primes, Br != Bc, seq_q != seq_k both ways,
/// dimensions that are multiples of nothing, dv != d.
inline std::vector<CaseShape> fixed_shapes() {
  return {{1, 1, 1, 1, 1, 1},       {5, 7, 3, 2, 2, 3},      {7, 5, 3, 2, 3, 2},      {15, 16, 8, 8, 16, 16},   {16, 16, 8, 8, 16, 16},   {17, 16, 8, 8, 16, 16},
          {16, 17, 8, 8, 16, 16},   {17, 33, 5, 9, 4, 8},    {33, 17, 8, 3, 16, 5},   {40, 40, 16, 16, 64, 64}, {63, 65, 20, 24, 64, 64}, {65, 63, 20, 24, 64, 64},
          {37, 101, 40, 33, 37, 13}, {101, 37, 1, 31, 7, 64}, {100, 3, 7, 1, 48, 7},  {3, 100, 7, 1, 48, 7},    {2, 5, 4, 4, 2, 2},       {5, 2, 4, 4, 2, 2},
          {0, 5, 3, 2, 2, 2},       {5, 0, 3, 2, 2, 2},      {0, 0, 3, 2, 2, 2},      {1, 64, 64, 64, 64, 64},  {64, 1, 64, 64, 64, 64},  {9, 9, 3, 3, 3, 3}};
}

/// A random shape: small lengths, tiles from 1 up to beyond them, ragged.
inline CaseShape random_shape(unsigned seed, Index longest = 70, Index widest = 40) {
  std::mt19937 random(seed * 2654435761u + 17);
  const auto pick = [&](Index low, Index high) { return std::uniform_int_distribution<Index>(low, high)(random); };
  return {pick(1, longest), pick(1, longest), pick(1, widest), pick(1, widest), pick(1, longest), pick(1, longest), pick(0, 1) == 1};
}

}  // namespace flashsteps
