#pragma once
// What "a step equals the one before it" means, as functions that say what is wrong. tests/chain.cpp and tests/chain_fifty.cpp ask
// them of the steps; tests/harness.cpp asks them of steps that are wrong on purpose, so that it is known that they can fail.
#include "tests/case.hpp"
#include "tests/steps.hpp"
#include <sstream>

namespace flashsteps {

/// What a check found wrong, in words; empty if nothing is.
using Fault = std::string;

/// The type in which distances of results in T are taken.
template <class T> struct ExactType { using type = T; };
template <> struct ExactType<float> { using type = Wider<float>; };
template <> struct ExactType<double> { using type = Wider<double>; };
template <class T> using Exact = typename ExactType<T>::type;

template <class T> const std::vector<T>& output(const Case<T>& x, Result result) {
  const std::array<const std::vector<T>*, 5> outputs{&x.o, &x.lse, &x.dq, &x.dk, &x.dv_};
  return *outputs[int(result)];
}
inline constexpr std::array<Result, 2> forward_results{Result::o, Result::lse};
inline constexpr std::array<Result, 5> all_results{Result::o, Result::lse, Result::dq, Result::dk, Result::dv};

// ---- Held to the definition, and to one another ----------------------------------------------------------------------

/// In 50 digits, results may differ by 1e-45 max(1, max|ref|).
template <class R> double exact_budget(const std::vector<R>& reference) {
  using std::abs;
  R largest(1);
  for (const R& x : reference)
    if (x - x == R(0) && abs(x) > largest) largest = abs(x);
  return 1e-45 * double(largest);
}

/// The errors of all results beside their budgets.
using Judged = std::array<Comparison, 5>;
template <class T> Judged judge(const Case<T>& x, bool gradients) {
  Judged judged;
  if constexpr (std::is_floating_point_v<T>) {
    const Judgement<T> judgement = x.judge(gradients);
    for (const Result r : all_results) judged[int(r)] = judgement.of(r);
  } else {
    const auto held = [&](Result r, const std::vector<T>& reference) {
      judged[int(r)] = {double(largest_distance<T>(output(x, r), reference)), exact_budget(reference)};
    };
    const auto [o, lse] = x.template define<T>();
    held(Result::o, o), held(Result::lse, lse);
    if (!gradients) return judged;
    const GradientSums<T> sums = x.template define_gradients<T>();
    held(Result::dq, sums.dq), held(Result::dk, sums.dk), held(Result::dv, sums.dv);
  }
  return judged;
}
/// Two steps are held to the sum of their budgets; in 50 digits to the same 1e-45.
template <class T> constexpr int both = std::is_floating_point_v<T> ? 2 : 1;

inline Fault fault_of(const std::string& what, Result result, const Comparison& comparison) {
  if (comparison.equal()) return {};
  std::ostringstream text;
  text << what << ": " << result_text[int(result)] << " is off by " << comparison.max_error << ", allowed is " << comparison.budget;
  return text.str();
}
/// x beside the definition.
template <class T> Fault definition_fault(const std::string& what, const Case<T>& x, bool gradients) {
  const Judged judged = judge(x, gradients);
  for (const Result r : all_results)
    if (const Fault fault = fault_of(what + " beside the definition", r, judged[int(r)]); !fault.empty()) return fault;
  return {};
}
/// x beside the definition, and beside y: the same problem, computed in another way.
template <class T, std::size_t N>
Fault distance_fault(const std::string& what, const Case<T>& x, const Case<T>& y, const std::array<Result, N>& results) {
  const Judged judged = judge(x, N == 5);
  for (const Result r : results) {
    if (const Fault fault = fault_of(what + " beside the definition", r, judged[int(r)]); !fault.empty()) return fault;
    const Comparison step_by_step{double(largest_distance<Exact<T>>(output(x, r), output(y, r))), both<T> * judged[int(r)].budget};
    if (const Fault fault = fault_of(what, r, step_by_step); !fault.empty()) return fault;
  }
  return {};
}
/// Bit for bit the same; 50 digits have no bits to compare but must not differ at all.
template <class T> bool identical(const std::vector<T>& a, const std::vector<T>& b) {
  if constexpr (std::is_floating_point_v<T>) return same_bits(a, b);
  else return largest_distance<T>(a, b) == T(0);
}
template <class T, std::size_t N>
Fault identity_fault(const std::string& what, const Case<T>& x, const Case<T>& y, const std::array<Result, N>& results) {
  for (const Result r : results)
    if (!identical(output(x, r), output(y, r))) return what + ": " + result_text[int(r)] + " is not the same bit for bit";
  return {};
}
/// The same, and x beside the definition.
template <class T, std::size_t N>
Fault bits_fault(const std::string& what, const Case<T>& x, const Case<T>& y, const std::array<Result, N>& results) {
  const Fault fault = identity_fault(what, x, y, results);
  return fault.empty() ? definition_fault(what, x, N == 5) : fault;
}

// ---- Problems --------------------------------------------------------------------------------------------------------

template <class T> std::string describe(const Case<T>& x) {
  std::ostringstream text;
  text << "seed " << x.seed << ", nq " << x.nq << ", nk " << x.nk << ", d " << x.d << ", dv " << x.dv << ", br " << x.br << ", bc " << x.bc
       << (x.causal ? ", causal" : "") << (x.with_d_lse ? ", with dL" : "") << ", scale " << double(x.scale);
  return text.str();
}
/// The default, none at all, negative, and one so large that exp of a score overflows unless its maximum is subtracted. (In 50 digits
/// nothing overflows, and rounding grows with the scores: there 3 is large.)
template <class T> std::array<T, 4> scales(Index d) {
  using std::sqrt;
  return {T(1) / sqrt(T(d)), T(0), T(-0.7), std::is_floating_point_v<T> ? T(300) : T(3)};
}
inline constexpr unsigned random_problems = 200;

/// Calls check(problem) for the fixed shapes with every scale and for 200 random problems, until it finds a fault.
/// In 50 digits the shapes are small ones.
template <class T, class Check> Fault over_problems(bool causal, Check check) {
  constexpr bool fast = std::is_floating_point_v<T>;
  const auto checked = [&](CaseShape shape, T scale, unsigned seed) -> Fault {
    shape.causal = causal;
    Case<T> x(shape, scale, seed);
    x.with_d_lse = seed % 2 == 1;
    const Fault fault = check(x);
    return fault.empty() ? fault : fault + " (" + describe(x) + ")";
  };
  unsigned seed = 0;
  for (const CaseShape& shape : fixed_shapes()) {
    if (!fast && shape.nq * shape.nk * (shape.d + shape.dv) > 4000) continue;
    for (const T& scale : scales<T>(shape.d))
      if (const Fault fault = checked(shape, scale, ++seed); !fault.empty()) return fault;
  }
  for (seed = 1000; seed < 1000 + random_problems; ++seed) {
    const CaseShape shape = fast ? random_shape(seed) : random_shape(seed, 12, 6);
    if (const Fault fault = checked(shape, seed % 3 == 0 ? scales<T>(shape.d)[seed / 3 % 4] : scales<T>(shape.d)[0], seed); !fault.empty()) return fault;
  }
  return {};
}

// ---- One step beside another -----------------------------------------------------------------------------------------

/// Runs a forward pass; whatever it does not write stays NaN.
template <class T> void run(const ForwardForm<T>& step, Case<T>& x) {
  Memory memory;
  x.poison();
  step.run(x.head(), memory);
}
/// Runs a forward and a backward pass.
template <class T> void run(const ForwardForm<T>& forward, const BackwardForm<T>& step, Case<T>& x) {
  Memory memory;
  x.poison();
  forward.run(x.head(), memory);
  step.run(x.head(), x.gradients(), memory);
}

/// A forward pass beside the definition and beside another one, within the error budget.
template <class T> Fault forward_fault(const ForwardForm<T>& step, const ForwardForm<T>& before, Case<T> x) {
  Case<T> y = x;
  run(step, x), run(before, y);
  return distance_fault(step.name + std::string(" beside ") + before.name, x, y, forward_results);
}
/// A backward pass beside the definition and beside another one, within the error budget.
template <class T> Fault backward_fault(const ForwardForm<T>& forward, const BackwardForm<T>& step, const BackwardForm<T>& before, Case<T> x) {
  Case<T> y = x;
  run(forward, step, x), run(forward, before, y);
  return distance_fault(step.name + std::string(" beside ") + before.name, x, y, all_results);
}
/// The same two, bit for bit.
template <class T> Fault forward_bits_fault(const ForwardForm<T>& step, const ForwardForm<T>& before, Case<T> x) {
  Case<T> y = x;
  run(step, x), run(before, y);
  return bits_fault(step.name + std::string(" beside ") + before.name, x, y, forward_results);
}
template <class T> Fault backward_bits_fault(const ForwardForm<T>& forward, const BackwardForm<T>& step, const BackwardForm<T>& before, Case<T> x) {
  Case<T> y = x;
  run(forward, step, x), run(forward, before, y);
  return bits_fault(step.name + std::string(" beside ") + before.name, x, y, all_results);
}

// ---- A mask, checked by code that has none ---------------------------------------------------------------------------

/// Row i of a causal head as a problem of its own: one query and the i + 1 + (nk - nq) keys that it sees. `br` is at will.
template <class T> Case<T> one_row(const Case<T>& x, Index i, Index br) {
  const Index keys = std::clamp<Index>(i + 1 + x.nk - x.nq, 0, x.nk);
  Case<T> row(CaseShape{1, keys, x.d, x.dv, br, x.bc, false}, x.scale, x.seed);
  const auto part = [](std::vector<T>& to, const std::vector<T>& from, Index begin, Index size) {
    to.assign(from.begin() + begin, from.begin() + begin + size);
  };
  part(row.q, x.q, i * x.d, x.d), part(row.d_o, x.d_o, i * x.dv, x.dv), part(row.d_lse, x.d_lse, i, 1);
  part(row.k, x.k, 0, keys * x.d), part(row.v, x.v, 0, keys * x.dv);
  row.with_d_lse = x.with_d_lse;
  return row;
}
/// Every row of a causal forward pass is, bit for bit, what a pass without a mask gives for that row alone.
template <class T> Fault causal_rows_fault(const ForwardForm<T>& step, const ForwardForm<T>& unmasked, Case<T> x) {
  Case<T> y = x;
  run(step, x);
  y.poison();
  for (Index i = 0; i < x.nq; ++i) {
    Case<T> row = one_row(x, i, 1 + i % 5);
    run(unmasked, row);
    std::copy(row.o.begin(), row.o.end(), y.o.begin() + i * x.dv);
    y.lse[i] = row.lse[0];
  }
  return bits_fault(step.name + std::string(" row by row beside ") + unmasked.name, x, y, forward_results);
}
/// The gradients of a causal head are the sums over its rows of what a pass without a mask gives for each alone.
template <class T>
Fault causal_gradients_fault(const ForwardForm<T>& forward, const BackwardForm<T>& step, const ForwardForm<T>& unmasked_forward,
                             const BackwardForm<T>& unmasked, Case<T> x) {
  Case<T> y = x;
  run(forward, step, x);
  std::vector<Exact<T>> dk(x.nk * x.d, Exact<T>(0)), dv(x.nk * x.dv, Exact<T>(0));
  for (Index i = 0; i < x.nq; ++i) {
    Case<T> row = one_row(x, i, 1 + i % 5);
    run(unmasked_forward, unmasked, row);
    std::copy(row.o.begin(), row.o.end(), y.o.begin() + i * x.dv);
    std::copy(row.dq.begin(), row.dq.end(), y.dq.begin() + i * x.d);
    y.lse[i] = row.lse[0];
    for (std::size_t e = 0; e < row.dk.size(); ++e) dk[e] += Exact<T>(row.dk[e]);
    for (std::size_t e = 0; e < row.dv_.size(); ++e) dv[e] += Exact<T>(row.dv_[e]);
  }
  std::transform(dk.begin(), dk.end(), y.dk.begin(), [](const Exact<T>& e) { return T(e); });
  std::transform(dv.begin(), dv.end(), y.dv_.begin(), [](const Exact<T>& e) { return T(e); });
  return distance_fault(step.name + std::string(" beside the sum over rows of ") + unmasked.name, x, y, all_results);
}

// ---- Groups ----------------------------------------------------------------------------------------------------------

/// What step 08 is: passes, and the head of K and V that query head h reads.
template <class T> struct GroupStep {
  void (*forward)(const Head<T>&, Memory&);
  void (*backward)(std::span<const Head<T>>, std::span<const Gradients<T>>, Memory&);
  Index (*kv_head)(Index h, Index heads, Index kv_heads);
};
template <class T> GroupStep<T> grouped() { return {step08::forward<T>, step08::backward<T>, step08::kv_head}; }

/// Grouped heads beside step 07 with K and V repeated for every query head: O and L bit for bit, dQ within the budget, dK and dV
/// beside the sums over the group, of step 07's gradients and of the definition's.
template <class T> Fault group_fault(const GroupStep<T>& step, const CaseShape& shape, const T& scale, unsigned seed, Index kv_heads, Index g) {
  const Index heads = kv_heads * g;
  std::vector<Case<T>> keys, queries, repeated;
  for (Index h = 0; h < kv_heads; ++h) keys.emplace_back(shape, scale, seed + 1000 + unsigned(h));
  for (Index h = 0; h < heads; ++h) {
    queries.emplace_back(shape, scale, seed + 2000 + unsigned(h));
    queries.back().with_d_lse = seed % 2 == 1;
  }
  Memory memory;
  std::vector<std::vector<Head<T>>> group(kv_heads);
  std::vector<std::vector<Gradients<T>>> group_gradients(kv_heads);
  for (Index h = 0; h < heads; ++h) {
    const Index shared = step.kv_head(h, heads, kv_heads);
    if (shared < 0 || shared >= kv_heads) return "query head " + std::to_string(h) + " has no head of K and V";
    const Head<T> of_keys = keys[shared].head();
    const Gradients<T> out = keys[shared].gradients();
    Head<T> head = queries[h].head();
    Gradients<T> gradients = queries[h].gradients();
    head.k = of_keys.k, head.v = of_keys.v, gradients.dk = out.dk, gradients.dv = out.dv;
    step.forward(head, memory);
    group[shared].push_back(head), group_gradients[shared].push_back(gradients);
  }
  for (Index h = 0; h < kv_heads; ++h)
    if (!group[h].empty()) step.backward(group[h], group_gradients[h], memory);

  const ForwardForm<T> forward07{"step07", step07::forward<T>, true};
  const BackwardForm<T> backward07{"step07", step07::backward<T>, true};
  for (Index h = 0, copies = 0; h < kv_heads; ++h) {
    std::vector<Exact<T>> dk(keys[h].dk.size(), Exact<T>(0)), dv(keys[h].dv_.size(), Exact<T>(0)), dk_defined = dk, dv_defined = dv;
    double dk_budget = 0, dv_budget = 0;
    for (Index copy = 0; copy < g; ++copy, ++copies) {
      Case<T> x = queries[copies];  // with the results of step 08
      x.k = keys[h].k, x.v = keys[h].v;
      Case<T> y = x;
      run(forward07, backward07, y);
      x.dk = y.dk, x.dv_ = y.dv_;  // those are compared for the group
      const std::string name = "step08 beside step07 with K and V repeated, query head " + std::to_string(copies);
      if (const Fault fault = bits_fault(name, x, y, forward_results); !fault.empty()) return fault;
      if (const Fault fault = distance_fault(name, x, y, all_results); !fault.empty()) return fault;
      const Judged judged = judge(y, true);
      const GradientSums<Exact<T>> sums = y.template define_gradients<Exact<T>>();
      const auto add = [](std::vector<Exact<T>>& sum, const auto& x) {
        for (std::size_t e = 0; e < sum.size(); ++e) sum[e] += Exact<T>(x[e]);
      };
      add(dk, y.dk), add(dv, y.dv_), add(dk_defined, sums.dk), add(dv_defined, sums.dv);
      dk_budget += judged[int(Result::dk)].budget, dv_budget += judged[int(Result::dv)].budget;
    }
    const std::string name = "step08, key-value head " + std::to_string(h);
    const auto held = [&](const std::vector<T>& x, const std::vector<Exact<T>>& y, Result r, double budget) {
      return fault_of(name, r, {double(largest_distance<Exact<T>>(x, y)), budget});
    };
    for (const Fault& fault : {held(keys[h].dk, dk, Result::dk, both<T> * dk_budget), held(keys[h].dv_, dv, Result::dv, both<T> * dv_budget),
                               held(keys[h].dk, dk_defined, Result::dk, dk_budget), held(keys[h].dv_, dv_defined, Result::dv, dv_budget)})
      if (!fault.empty()) return fault;
  }
  return {};
}
/// The same over 200 random problems, multi-head (g = 1), multi-query (one head of K and V) and between, with and without a mask.
template <class T> Fault over_groups(const GroupStep<T>& step) {
  constexpr bool fast = std::is_floating_point_v<T>;
  constexpr std::array<std::array<Index, 2>, 7> groups{{{1, 1}, {3, 1}, {1, 4}, {2, 2}, {2, 3}, {3, 2}, {4, 2}}};
  for (unsigned seed = 3000; seed < 3000 + random_problems; ++seed) {
    const CaseShape shape = fast ? random_shape(seed, 40, 20) : random_shape(seed, 7, 4);
    const auto [kv_heads, g] = groups[seed % groups.size()];
    const T scale = scales<T>(shape.d)[seed % 5 == 0 ? seed / 5 % 4 : 0];
    const Fault fault = group_fault(step, shape, scale, seed, kv_heads, g);
    if (fault.empty()) continue;
    return fault + " (" + std::to_string(kv_heads) + " heads of K and V, groups of " + std::to_string(g) + ", " +
           describe(Case<T>(shape, scale, seed)) + ")";
  }
  return {};
}

// ---- Where the numbers lie -------------------------------------------------------------------------------------------

/// Row tiles computed one by one, as threads share them out, beside the whole head (which other checks hold to the definition).
/// `exact` demands the same bits.
template <class T> Fault pieces_fault(const ForwardForm<T>& step, Case<T> x, Index piece, bool exact) {
  Case<T> y = x;
  run(step, y);
  x.poison();
  for (const Range i : tiles(x.nq, piece)) {
    Memory memory;
    step.run(x.head().rows(i), memory);
  }
  const std::string name = step.name + std::string(" in pieces of ") + std::to_string(piece) + " rows beside the whole";
  return exact ? identity_fault(name, x, y, forward_results) : distance_fault(name, x, y, forward_results);
}

/// A matrix as head 1 of 3 of a tensor [seq, heads, dim]; NaN stands in the other heads.
template <class T> struct Strided {
  static constexpr Index heads = 3;
  Index rows, cols;
  std::vector<T> data;
  Strided(Index rows, Index cols) : rows(rows), cols(cols), data(rows * heads * cols, nan_of<T>) {}
  Strided(const std::vector<T>& x, Index rows, Index cols) : Strided(rows, cols) {
    for (Index i = 0; i < rows; ++i) std::copy_n(x.begin() + i * cols, cols, data.begin() + (i * heads + 1) * cols);
  }
  template <class S> operator Slow<S>() { return {Name{}, data.data() + cols, rows, cols, heads * cols}; }
  std::vector<T> dense() const {
    std::vector<T> x;
    for (Index i = 0; i < rows; ++i) x.insert(x.end(), data.begin() + (i * heads + 1) * cols, data.begin() + (i * heads + 2) * cols);
    return x;
  }
  bool others_untouched() const {
    for (std::size_t i = 0; i < data.size(); ++i)
      if (Index(i) / cols % heads != 1 && data[i] == data[i]) return false;
    return true;
  }
};
/// A head that is read and written through strides beside one whose rows stand side by side. `exact` demands the same bits.
template <class T>
Fault strided_fault(const ForwardForm<T>& forward, const BackwardForm<T>* backward, Case<T> x, bool exact) {
  Case<T> y = x;
  backward ? run(forward, *backward, y) : run(forward, y);
  Strided<T> q(x.q, x.nq, x.d), k(x.k, x.nk, x.d), v(x.v, x.nk, x.dv), d_o(x.d_o, x.nq, x.dv), d_lse(x.d_lse, x.nq, 1);
  Strided<T> o(x.nq, x.dv), lse(x.nq, 1), dq(x.nq, x.d), dk(x.nk, x.d), dv(x.nk, x.dv);
  const Head<T> head{q, k, v, o, lse, x.scale, x.br, x.bc, x.diagonal(), {}};
  Memory memory;
  forward.run(head, memory);
  if (backward) backward->run(head, {d_o, x.with_d_lse ? Slow<const T>(d_lse) : Slow<const T>{}, dq, dk, dv}, memory);
  x.o = o.dense(), x.lse = lse.dense(), x.dq = dq.dense(), x.dk = dk.dense(), x.dv_ = dv.dense();
  const std::string name = (backward ? backward->name : forward.name) + std::string(" through strides beside the same without");
  for (const Strided<T>* out : {&o, &lse, &dq, &dk, &dv})
    if (!out->others_untouched()) return name + ": wrote between the rows of its head";
  if (backward) return exact ? bits_fault(name, x, y, all_results) : distance_fault(name, x, y, all_results);
  return exact ? bits_fault(name, x, y, forward_results) : distance_fault(name, x, y, forward_results);
}

}  // namespace flashsteps
