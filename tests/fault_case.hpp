#pragma once
// The cases of known faults: their inputs (rule O), their tolerances, and the run of a case through every step that can take it.
#include <cstdlib>
#include <functional>
#include <new>
#include <string>
#include <utility>
#include "tests/case.hpp"
#include "tests/catch.hpp"
#include "tests/steps.hpp"

// Room on chip is born as NaN, every byte 0xFF: what a step reads before it wrote it shows.
[[gnu::weak]] void* operator new(std::size_t bytes, std::align_val_t alignment) {
  const std::size_t line = static_cast<std::size_t>(alignment);
  void* room = std::aligned_alloc(line, (bytes + line - 1) / line * line);
  if (!room) throw std::bad_alloc();
  return std::memset(room, 0xff, bytes);
}
[[gnu::weak]] void operator delete(void* room, std::align_val_t) noexcept { std::free(room); }
[[gnu::weak]] void operator delete(void* room, std::size_t, std::align_val_t) noexcept { std::free(room); }

namespace flashsteps {

// ---- Numbers -------------------------------------------------------------------------------------------------------

/// Rule O: element n of a tensor is ((n^3 + add) mod modulus - middle) / 8, exact in every type.
struct Rule {
  Index add, modulus, middle;
  template <class T> std::vector<T> numbers(Index first, Index count) const {
    std::vector<T> x(count);
    for (Index n = 0; n < count; ++n) {
      const Index r = (first + n) % modulus;
      x[n] = T((r * r * r + add) % modulus - middle) / 8;
    }
    return x;
  }
};
inline constexpr Rule rule_q{2, 17, 8}, rule_k{7, 23, 11}, rule_v{5, 29, 14}, rule_g{1, 11, 5};

template <class T> T default_scale(Index d) { return T(1 / std::sqrt(double(d))); }

/// Query head h of a tensor [.., heads, S, D] filled by rule O, with key-value head kv.
template <class T> Case<T> rule_o(const CaseShape& shape, Index h = 0, Index kv = 0) {
  Case<T> x(shape, default_scale<T>(shape.d));
  x.q = rule_q.numbers<T>(h * x.nq * x.d, x.nq * x.d), x.k = rule_k.numbers<T>(kv * x.nk * x.d, x.nk * x.d);
  x.v = rule_v.numbers<T>(kv * x.nk * x.dv, x.nk * x.dv), x.d_o = rule_g.numbers<T>(h * x.nq * x.dv, x.nq * x.dv);
  return x;
}
/// All heads of one batch entry.
template <class T> std::vector<Case<T>> rule_o_heads(const CaseShape& shape, Index heads, Index kv_heads) {
  std::vector<Case<T>> all;
  for (Index h = 0; h < heads; ++h) all.push_back(rule_o<T>(shape, h, step08::kv_head(h, heads, kv_heads)));
  return all;
}
/// One query whose scores are these: d = 1, q = 1, scale 1, k = the scores. A key with the score -inf is not seen.
template <class T> Case<T> one_row(const std::vector<double>& scores, const std::vector<double>& v) {
  Case<T> x({1, Index(scores.size()), 1, scores.empty() ? 1 : Index(v.size() / scores.size())}, T(1));
  x.q = {T(1)};
  x.k.assign(scores.begin(), scores.end()), x.v.assign(v.begin(), v.end());
  return x;
}
/// 0, 1, 2, ...
inline std::vector<double> counted(Index n) {
  std::vector<double> x(n);
  for (Index i = 0; i < n; ++i) x[i] = double(i);
  return x;
}

constexpr double minus_infinity = -std::numeric_limits<double>::infinity(), spoiled = std::numeric_limits<double>::quiet_NaN();

// ---- Comparisons ---------------------------------------------------------------------------------------------------

template <class T> constexpr double tolerance = std::is_same_v<T, float> ? 1e-5 : 1e-10;

/// max|x - reference| over max(1, largest |reference|). NaN, which is never within a tolerance, for a wrong size or for something
/// that is not finite in one of them alone.
template <class T> double error(const std::vector<T>& x, const std::vector<double>& reference) {
  double size = 1;
  for (const double r : reference)
    if (r - r == 0) size = std::max(size, std::abs(r));
  return largest_distance<double>(x, reference) / size;
}
/// The same against part of x.
template <class T> double error_at(const std::vector<T>& x, Index first, const std::vector<double>& reference) {
  if (first + Index(reference.size()) > Index(x.size())) return spoiled;
  return error(std::vector<T>(x.begin() + first, x.begin() + first + reference.size()), reference);
}
/// Checksums: c0 is the sum of x, c1 that of ((n mod 11) + 1) x[n]. Their error, by element.
template <class T> double checksum_error(const std::vector<T>& x, double c0, double c1) {
  double sum = 0, weighted = 0;
  for (std::size_t n = 0; n < x.size(); ++n) sum += double(x[n]), weighted += double(n % 11 + 1) * double(x[n]);
  return worse(std::abs(sum - c0), std::abs(weighted - c1)) / double(x.size());
}
/// Is every number of rows [first, end) of x, `cols` wide, this value? NaN equals NaN here.
template <class T> bool all_are(const std::vector<T>& x, double value, Index first, Index end) {
  for (Index i = first; i < end; ++i)
    if (i >= Index(x.size()) || !(x[i] == T(value) || (value != value && x[i] != x[i]))) return false;
  return true;
}
template <class T> bool all_are(const std::vector<T>& x, double value) { return all_are(x, value, 0, Index(x.size())); }
/// One tensor of several heads, one behind the other.
template <class T> std::vector<T> joined(const std::vector<Case<T>>& heads, std::vector<T> Case<T>::*tensor) {
  std::vector<T> all;
  for (const Case<T>& x : heads) all.insert(all.end(), (x.*tensor).begin(), (x.*tensor).end());
  return all;
}
/// Are the results within the error budget?
template <class T> bool in_budget(const Case<T>& x, bool gradients = false) {
  const Judgement<T> judgement = x.judge(gradients);
  for (int r = 0; r < (gradients ? 5 : 2); ++r)
    if (!judgement.of(Result(r)).equal()) return false;
  return true;
}

// ---- Numbers that are not finite (E2, E3) -------------------------------------------------------------------------------

/// Where the numbers are: rows of K and V, and of each head's Q and dO (dL with it).
struct Places {
  std::vector<bool> k, v;
  std::vector<std::vector<bool>> q, d_o;
};
/// In which results of row i of head h are they seen?
struct Seen { bool lse, o, dq, dv; };
inline Seen seen(const Places& bad, std::size_t h, Index i, Index diagonal) {
  const Index keys = std::clamp<Index>(i + diagonal + 1, 0, Index(bad.k.size()));
  if (keys == 0) return {};
  const bool k = std::find(bad.k.begin(), bad.k.begin() + keys, true) != bad.k.begin() + keys;
  const bool v = std::find(bad.v.begin(), bad.v.begin() + keys, true) != bad.v.begin() + keys;
  const bool lse = k || bad.q[h][i];
  return {lse, lse || v, lse || v || bad.d_o[h][i], lse || bad.d_o[h][i]};
}

// ---- Runs ----------------------------------------------------------------------------------------------------------

using TileSizes = std::vector<std::pair<Index, Index>>;
/// Every Br with every Bc.
inline TileSizes all_pairs(const std::vector<Index>& sizes) {
  TileSizes pairs;
  for (const Index br : sizes)
    for (const Index bc : sizes) pairs.push_back({br, bc});
  return pairs;
}

inline const TileSizes small_tiles = all_pairs({1, 2, 3, 5, 8}), more_small_tiles = all_pairs({1, 2, 3, 4, 5, 8});

/// Row i of a head and the keys that it sees, as a head of its own without a mask.
template <class T> Head<T> row_alone(const Head<T>& head, Index i) {
  const Index keys = std::clamp<Index>(i + head.diagonal + 1, 0, head.k.rows());
  Head<T> row = head.rows({i, i + 1});
  row.k = row.k[{0, keys}], row.v = row.v[{0, keys}], row.diagonal = keys;
  return row;
}
/// A step without masks gets a causal head row by row.
template <class T> void run(const ForwardForm<T>& form, Case<T>& x) {
  Memory memory;
  if (form.masks || !x.causal) return form.run(x.head(), memory);
  for (Index i = 0; i < x.nq; ++i) form.run(row_alone(x.head(), i), memory);
}
template <class T> void run(const BackwardForm<T>& form, Case<T>& x) {
  Memory memory;
  if (form.masks || !x.causal) return form.run(x.head(), x.gradients(), memory);
  x.dk.assign(x.dk.size(), T(0)), x.dv_.assign(x.dv_.size(), T(0));
  for (Index i = 0; i < x.nq; ++i) {
    const Head<T> row = row_alone(x.head(), i);
    const Index keys = row.k.rows();
    std::vector<T> dk(keys * x.d, nan_of<T>), dv(keys * x.dv, nan_of<T>);
    Gradients<T> gradients = x.gradients();
    gradients.d_o = gradients.d_o[{i, i + 1}], gradients.dq = gradients.dq[{i, i + 1}];
    if (x.with_d_lse) gradients.d_lse = gradients.d_lse[{i, i + 1}];
    gradients.dk = {tensor::dk, dk.data(), keys, x.d}, gradients.dv = {tensor::dv, dv.data(), keys, x.dv};
    form.run(row, gradients, memory);
    for (std::size_t n = 0; n < dk.size(); ++n) x.dk[n] += dk[n];
    for (std::size_t n = 0; n < dv.size(); ++n) x.dv_[n] += dv[n];
  }
}

/// The forms up to step 03 have no tiles: they run once.
inline bool has_tiles(const char* name) { return std::string(name) >= "step04"; }

/// Looks at the results of one run.
template <class T> using CheckOne = std::type_identity_t<std::function<void(const Case<T>&)>>;
template <class T> using CheckAll = std::type_identity_t<std::function<void(const std::vector<Case<T>>&)>>;

/// Runs heads through every forward pass with every size of tiles, their outputs NaN before, and calls check(heads) each time.
template <class T> void every_forward(std::vector<Case<T>> heads, const TileSizes& sizes, CheckAll<T> check) {
  for (const ForwardForm<T>& form : forward_forms<T>())
    for (std::size_t n = 0; n < (has_tiles(form.name) ? sizes.size() : 1); ++n) {
      INFO(form.name << ", tiles " << sizes[n].first << " by " << sizes[n].second);
      for (Case<T>& x : heads) {
        x.br = sizes[n].first, x.bc = sizes[n].second;
        x.poison();
        run(form, x);
      }
      check(heads);
    }
}
template <class T> void every_forward(const Case<T>& x, const TileSizes& sizes, CheckOne<T> check) {
  every_forward<T>(std::vector<Case<T>>{x}, sizes, [&](const std::vector<Case<T>>& heads) { check(heads.front()); });
}

/// The same for the backward passes. O and L come from step 07.
template <class T> void every_backward(std::vector<Case<T>> heads, const TileSizes& sizes, CheckAll<T> check) {
  for (const BackwardForm<T>& form : backward_forms<T>())
    for (const auto& [br, bc] : sizes) {
      INFO(form.name << ", tiles " << br << " by " << bc);
      for (Case<T>& x : heads) {
        x.br = br, x.bc = bc;
        x.poison();
        Memory memory;
        step07::forward(x.head(), memory);
        run(form, x);
      }
      check(heads);
    }
}
template <class T> void every_backward(const Case<T>& x, const TileSizes& sizes, CheckOne<T> check) {
  every_backward<T>(std::vector<Case<T>>{x}, sizes, [&](const std::vector<Case<T>>& heads) { check(heads.front()); });
}

/// The gradients of a group of heads that share K and V, with step 08: dK and dV, of the whole group, stand in the first.
template <class T> void run_group(std::vector<Case<T>>& group, Index br, Index bc) {
  std::vector<Head<T>> heads;
  std::vector<Gradients<T>> gradients;
  Memory memory;
  for (Case<T>& x : group) {
    x.br = br, x.bc = bc;
    x.poison();
    heads.push_back(x.head());
    gradients.push_back(x.gradients());
    step08::forward(heads.back(), memory);
  }
  step08::backward<T>(heads, gradients, memory);
}

/// Calls check(p, lse) for softmax of x by all that compute one: the softmax of 01 and 02 (L from blocks of several sizes), and all
/// forward passes with V = 1, the identity, so that O = P.
template <class T, class Check> void every_softmax(const std::vector<double>& scores, Check check) {
  const Index n = Index(scores.size());
  const std::vector<T> x(scores.begin(), scores.end());
  const Slow<const T> in(tensor::x, x.data(), n, 1);
  for (const auto softmax : {step01::softmax<T>, step02::softmax<T>})
    for (const Index block : {Index(1), Index(2), Index(3), Index(7), Index(32), n}) {
      INFO((softmax == &step01::softmax<T> ? "step01 softmax, L by blocks of " : "step02 softmax, L by blocks of ") << block);
      std::vector<T> p(n, nan_of<T>);
      Memory memory;
      softmax(in, {tensor::a, p.data(), n, 1}, memory);
      const step02::MaxSum<T> sum = step02::max_sum(in, block, memory);
      check(p, sum.m + std::log(sum.l));
    }
  std::vector<double> identity(n * n, 0.0);
  for (Index j = 0; j < n; ++j) identity[j * n + j] = 1;
  every_forward(one_row<T>(scores, identity), {{1, 1}, {1, 2}, {1, 3}, {1, 7}, {1, 16}, {4, 32}, {1, n}}, [&](const Case<T>& y) { check(y.o, y.lse[0]); });
}

/// Where a case is run: here by every form of every step on the CPU, with all sizes of tiles. OnKernels is the other place.
template <class T> struct OnCpu {
  using Number = T;
  double tolerance = flashsteps::tolerance<T>;
  Index long_row = 100000;
  bool masked_v_is_finite = true;  ///< does every masked key of the case have a finite V? All is taken here

  /// One head, or several. Outputs are NaN before every run.
  void forward(const Case<T>& x, const TileSizes& sizes, CheckOne<T> check) { every_forward(x, sizes, check); }
  void forward(const std::vector<Case<T>>& heads, const TileSizes& sizes, CheckAll<T> check) { every_forward(heads, sizes, check); }
  void backward(const Case<T>& x, const TileSizes& sizes, CheckOne<T> check) { every_backward(x, sizes, check); }
  void backward(const std::vector<Case<T>>& heads, const TileSizes& sizes, CheckAll<T> check) { every_backward(heads, sizes, check); }
  /// Gradients where `group` neighbouring heads share K and V: dK and dV stand in the first of them.
  void groups(std::vector<Case<T>> heads, Index group, const TileSizes& sizes, CheckAll<T> check) {
    for (const auto& [br, bc] : sizes) {
      INFO("step08 with the group, tiles " << br << " by " << bc);
      for (auto first = heads.begin(); first != heads.end(); first += group) {
        std::vector<Case<T>> some(first, first + group);
        run_group(some, br, bc);
        std::copy(some.begin(), some.end(), first);
      }
      check(heads);
    }
  }
  /// check(p, lse) for the softmax of these scores.
  template <class F> void softmax(const std::vector<double>& scores, F check) { every_softmax<T>(scores, check); }
  /// f(run) for every form, where run(y) is a forward pass; heads like x are to be run.
  template <class F> void every_form(const Case<T>&, F f) {
    for (const ForwardForm<T>& form : forward_forms<T>()) {
      INFO(form.name);
      f([&](Case<T>& y) { y.poison(), run(form, y); });
    }
  }
  bool in_budget(const Case<T>& x, bool gradients = false) const { return flashsteps::in_budget(x, gradients); }
};
/// Runs a case there.
template <class T> void on_cpu(std::type_identity_t<void (*)(OnCpu<T>&)> run_case) {
  OnCpu<T> on;
  run_case(on);
}

}  // namespace flashsteps
