#pragma once
// The cases of known faults on CUDA kernels: every kernel of every step, in the tiles that it is compiled for.
#include "common/cuda/device.hpp"
#include "tests/fault_case.hpp"
#include "tests/kernel_case.hpp"
#include <numeric>

namespace flashsteps {

/// How several heads lie in one problem: the batch entries that they are divided into, and the query heads that share K and V.
struct Arrangement {
  Index batch = 1, group = 1;
  Layout layout = Layout::bhsd;
};

inline void put(Tensor<float>& x, Index b, Index h, const std::vector<float>& from) {
  for (Index i = 0; i < x.rows; ++i)
    for (Index e = 0; e < x.cols; ++e) x.at(b, h, i, e) = from[i * x.cols + e];
}
inline void take(const Tensor<float>& x, Index b, Index h, std::vector<float>& to) {
  for (Index i = 0; i < x.rows; ++i)
    for (Index e = 0; e < x.cols; ++e) to[i * x.cols + e] = x.at(b, h, i, e);
}

/// Heads as one problem. K and V of a group are those of its first head.
inline Problem<float> problem_of(const std::vector<Case<float>>& heads, const Arrangement& a, bool gradients) {
  const Case<float>& x = heads.front();
  const Index n = Index(heads.size()) / a.batch, kv = n / a.group;
  Problem<float> p;
  p.q = {a.batch, n, x.nq, x.d, a.layout, 0.0f};
  p.k = {a.batch, kv, x.nk, x.d, a.layout, 0.0f};
  p.v = {a.batch, kv, x.nk, x.dv, a.layout, 0.0f};
  p.d_o = {a.batch, n, x.nq, x.dv, a.layout, 0.0f};
  p.gradients = gradients, p.scale = x.scale, p.causal = x.causal;
  for (Index b = 0; b < a.batch; ++b)
    for (Index h = 0; h < n; ++h) {
      const Case<float>& head = heads[b * n + h];
      put(p.q, b, h, head.q), put(p.d_o, b, h, head.d_o);
      if (h % a.group == 0) put(p.k, b, h / a.group, head.k), put(p.v, b, h / a.group, head.v);
    }
  return p;
}

/// C33: Q, K, V and dO by rule O, [batch, heads, 1, 16].
inline Problem<float> one_key(Index batch, Index heads) {
  const Index n = batch * heads;
  Problem<float> p;
  p.q = {batch, heads, 1, 16, Layout::bhsd, 0.0f};
  p.k = p.v = p.d_o = p.q;
  p.q.numbers = rule_q.numbers<float>(0, n * 16), p.k.numbers = rule_k.numbers<float>(0, n * 16), p.v.numbers = rule_v.numbers<float>(0, n * 16);
  p.d_o.numbers = rule_g.numbers<float>(0, n * 16);
  p.scale = 0.25f;
  return p;
}

/// Runs a kernel on heads. dK and dV of a group stand in its first head; a backward kernel takes O and L from the heads.
inline void run_heads(const Kernel& kernel, const gpu::Compiled& compiled, std::vector<Case<float>>& heads, const Arrangement& a) {
  const Problem<float> p = problem_of(heads, a, kernel.backward);
  const Index n = p.heads();
  Output<float> out(p);
  for (std::size_t at = 0; at < heads.size() && kernel.backward; ++at)
    put(out.o, Index(at) / n, Index(at) % n, heads[at].o), put(out.lse, Index(at) / n, Index(at) % n, heads[at].lse);
  run_kernel(kernel, compiled, p, out);
  for (Index b = 0; b < a.batch; ++b)
    for (Index h = 0; h < n; ++h) {
      Case<float>& head = heads[b * n + h];
      if (!kernel.backward) {
        take(out.o, b, h, head.o), take(out.lse, b, h, head.lse);
        continue;
      }
      take(out.dq, b, h, head.dq);
      if (h % a.group == 0) take(out.dk, b, h / a.group, head.dk), take(out.dv, b, h / a.group, head.dv_);
    }
}

/// A kernel without masks gets causal heads row by row, each row with the keys that it sees.
inline void run_row_by_row(const Kernel& kernel, const gpu::Compiled& compiled, std::vector<Case<float>>& heads, const Arrangement& a) {
  const CaseShape shape = heads.front();
  const auto part = [](const std::vector<float>& x, Index first, Index count) { return std::vector<float>(x.begin() + first, x.begin() + first + count); };
  if (kernel.backward)
    for (Case<float>& x : heads) x.dk.assign(x.dk.size(), 0), x.dv_.assign(x.dv_.size(), 0);
  for (Index i = 0; i < shape.nq; ++i) {
    const Index keys = heads.front().raw().keys(i);
    std::vector<Case<float>> rows;
    for (const Case<float>& x : heads) {
      Case<float> row({1, keys, x.d, x.dv}, x.scale);
      row.q = part(x.q, i * x.d, x.d), row.k = part(x.k, 0, keys * x.d), row.v = part(x.v, 0, keys * x.dv), row.d_o = part(x.d_o, i * x.dv, x.dv);
      if (kernel.backward) row.o = part(x.o, i * x.dv, x.dv), row.lse = part(x.lse, i, 1);
      rows.push_back(std::move(row));
    }
    run_heads(kernel, compiled, rows, a);
    for (std::size_t h = 0; h < heads.size(); ++h) {
      Case<float>& x = heads[h];
      std::copy(rows[h].o.begin(), rows[h].o.end(), x.o.begin() + i * x.dv), x.lse[i] = rows[h].lse[0];
      if (!kernel.backward) continue;
      std::copy(rows[h].dq.begin(), rows[h].dq.end(), x.dq.begin() + i * x.d);
      for (std::size_t n = 0; n < rows[h].dk.size(); ++n) x.dk[n] += rows[h].dk[n];
      for (std::size_t n = 0; n < rows[h].dv_.size(); ++n) x.dv_[n] += rows[h].dv_[n];
    }
  }
}

/// A head with Q, K and V as the type holds them.
inline Case<float> rounded(gpu::Element element, Case<float> x) {
  for (std::vector<float>* t : {&x.q, &x.k, &x.v})
    for (float& y : *t) y = rounded(element, y);
  return x;
}
/// Does the type hold the scores exactly, and V without making it infinite?
inline bool holds(gpu::Element element, const std::vector<Case<float>>& heads) {
  for (const Case<float>& x : heads) {
    const Case<float> y = rounded(element, x);
    const auto exact = [](const std::vector<float>& a, const std::vector<float>& b) { return largest_distance<double>(a, b) <= 0; };
    const double v = largest_distance<double>(x.v, y.v);
    if (!exact(x.q, y.q) || !exact(x.k, y.k) || v != v) return false;
  }
  return true;
}

/// Is there so much to do that one tile and one arrangement after the other take their turns?
inline bool is_long(const std::vector<Case<float>>& heads) { return Index(heads.size()) * heads.front().nq * heads.front().nk > 400; }

/// The tiles that take heads like these: all, or one of the least dimension that fits if `turn` is given.
inline std::vector<const gpu::Compiled*> tiles_for(const Kernel& kernel, gpu::Element element, Index d, Index dv, std::optional<unsigned> turn = {}) {
  const gpu::Compiled* least = find_compiled(kernel.compiled, element, d, dv);
  const std::optional<gpu::Device> device = gpu::device();
  std::vector<const gpu::Compiled*> tiles;
  for (const gpu::Compiled& c : kernel.compiled) {
    const bool fits = c.element == element && std::max(d, dv) <= c.dim && (!turn || c.dim == least->dim);
    if (fits && device && c.capability <= device->capability && c.shared_bytes <= device->shared_bytes) tiles.push_back(&c);
  }
  if (turn && !tiles.empty()) tiles = {tiles[*turn % tiles.size()]};
  return tiles;
}

/// In a tile on the diagonal tensor cores multiply P = 0 by V, which has to be finite there: a precondition of these kernels (E2).
inline bool multiplies_masked_v(const Step& step, const Kernel& kernel) { return step.causal && kernel.tensor_cores; }

/// For messages.
inline std::string name_of(const Step& step, const Kernel& kernel, const gpu::Compiled& c) {
  return step.name + ", " + kernel.name + ", tile " + std::to_string(c.br) + " x " + std::to_string(c.bc) + ", dim " + std::to_string(c.dim) + ", element " +
         std::to_string(int(c.element));
}

/// Where a case is run: here by every kernel. Sizes of tiles are those that are compiled.
class OnKernels {
 public:
  using Number = float;
  double tolerance = 1e-5;     ///< of the type of the kernel that runs
  bool exact = true;           ///< must the type of a kernel hold the scores exactly?
  bool in_turn = false;        ///< do tiles take turns however little there is to do?
  bool masked_v_is_finite = true;  ///< if not, kernels that multiply masked weights of 0 do not take the case: they say so (math 0.3, E2)
  Index long_row = 5000;       ///< keys: some 80 tiles of them
  int runs = 0;

  void forward(const std::vector<Case<float>>& heads, const TileSizes&, CheckAll<float> check) { run_and_check(heads, false, 1, check); }
  void backward(const std::vector<Case<float>>& heads, const TileSizes&, CheckAll<float> check) { run_and_check(heads, true, 1, check); }
  void groups(const std::vector<Case<float>>& heads, Index group, const TileSizes&, CheckAll<float> check) { run_and_check(heads, true, group, check); }
  void forward(const Case<float>& x, const TileSizes& sizes, CheckOne<float> check) {
    forward(std::vector{x}, sizes, [&](const std::vector<Case<float>>& heads) { check(heads.front()); });
  }
  void backward(const Case<float>& x, const TileSizes& sizes, CheckOne<float> check) {
    backward(std::vector{x}, sizes, [&](const std::vector<Case<float>>& heads) { check(heads.front()); });
  }
  /// With V = 1, the identity, O is P.
  template <class F> void softmax(const std::vector<double>& scores, F check) {
    const Index n = Index(scores.size());
    std::vector<double> identity(n * n, 0.0);
    for (Index j = 0; j < n; ++j) identity[j * n + j] = 1;
    forward(one_row<float>(scores, identity), {}, [&](const Case<float>& y) { check(y.o, y.lse[0]); });
  }
  template <class F> void every_form(const Case<float>& like, F f) {
    exact = false;  // such a case compares what the kernel gives, not numbers that are known
    each({like}, false, 1, [&](auto run) {
      f([&](Case<float>& y) {
        std::vector<Case<float>> one{y};
        run(one);
        y = one.front();
      });
    });
    exact = true;
  }
  bool in_budget(const Case<float>& x, bool gradients = false) const {
    std::vector<Index> rows(x.nq);
    std::iota(rows.begin(), rows.end(), 0);
    const Judgement<float> judgement = Judgement<float>(rounding(element_)).add(x.raw(gradients), x.results(gradients), rows);
    for (const Result r : gradients ? std::vector{Result::dq, Result::dk, Result::dv} : std::vector{Result::o, Result::lse})
      if (!judgement.of(r).equal()) return false;
    return true;
  }

  /// f(step, kernel, compiled) for every kernel and every tile that takes heads like these.
  template <class F> void each_kernel(const std::vector<Case<float>>& heads, bool backward, F f) {
    for (const Step* step : all_steps())
      for (const Kernel& kernel : step->kernels)
        for (const gpu::Element element : kernel.backward == backward ? elements_of(kernel) : std::vector<gpu::Element>{}) {
          if (exact && !holds(element, heads)) continue;
          if (!masked_v_is_finite && multiplies_masked_v(*step, kernel)) continue;
          element_ = element;
          tolerance = element == gpu::Element::float32 ? 1e-5 : element == gpu::Element::half ? 2e-3 : 1.6e-2;
          const bool turns = in_turn || is_long(heads);
          for (const gpu::Compiled* c : tiles_for(kernel, element, heads.front().d, heads.front().dv, turns ? std::optional(turn_++) : std::nullopt)) {
            INFO(name_of(*step, kernel, *c));
            ++runs;
            try {
              f(*step, kernel, *c);
            } catch (const std::exception& error) { FAIL_CHECK(error.what()); }
          }
        }
  }

 private:
  void run_and_check(const std::vector<Case<float>>& heads, bool backward, Index group, const CheckAll<float>& check) {
    each(heads, backward, group, [&](auto run) {
      std::vector<Case<float>> y = heads;
      run(y);
      check(y);
    });
  }

  /// f(run) for every kernel, tile and arrangement, where run(heads) runs heads like these.
  template <class F> void each(const std::vector<Case<float>>& heads, bool backward, Index group, F f) {
    each_kernel(heads, backward, [&](const Step& step, const Kernel& kernel, const gpu::Compiled& compiled) {
      const bool by_rows = heads.front().causal && !step.causal;
      if (by_rows && heads.front().nq > 16) return;  // says nothing new of a kernel without masks, and takes long
      if (group > 1 && !step.gqa) return;
      for (const Arrangement& a : arrangements(step, heads, backward, group)) {
        INFO("batch " << a.batch << ", group " << a.group << (a.layout == Layout::bshd ? ", bshd" : ""));
        f([&](std::vector<Case<float>>& y) {
          for (Case<float>& x : y) {
            x = rounded(compiled.element, std::move(x));
            x.poison();
            Memory memory;
            if (backward) step07::forward(x.head(), memory);
          }
          (by_rows ? run_row_by_row : run_heads)(kernel, compiled, y, a);
        });
      }
    });
  }

  std::vector<Arrangement> arrangements(const Step& step, const std::vector<Case<float>>& heads, bool backward, Index group) {
    const Index n = Index(heads.size());
    if (n == 1) return {{}};
    if (group > 1) return n == group ? std::vector<Arrangement>{{1, group}} : std::vector<Arrangement>{{1, group}, {n / group, group}};
    std::vector<Arrangement> all{{}, {n}, {1, 1, Layout::bshd}};
    if (is_long(heads)) all = {all[turn_ % 3]};
    if (step.gqa && !backward) {
      // The most neighbours that have the same K and V
      Index most = 1;
      for (Index g = 2; g <= n; ++g) {
        bool same = n % g == 0;
        for (Index h = 0; h < n && same; ++h) same = same_bits(heads[h].k, heads[h / g * g].k) && same_bits(heads[h].v, heads[h / g * g].v);
        if (same) most = g;
      }
      if (most > 1) all.push_back({1, most, turn_ % 2 ? Layout::bshd : Layout::bhsd});
    }
    return all;
  }

  unsigned turn_ = 0;
  gpu::Element element_ = gpu::Element::float32;
};

/// Runs a case there. Some kernel must take it. A case of many runs may let the tiles take turns.
inline void on_kernels(void (*run_case)(OnKernels&), bool in_turn = false) {
  OnKernels on;
  on.in_turn = in_turn;
  run_case(on);
  CHECK(on.runs > 0);
}

}  // namespace flashsteps
