// The edge rules of the specification (math 0.3) on every CUDA kernel. E5 leaves open what comes out.
#include "tests/kernel_fault_case.hpp"

namespace flashsteps {
namespace {

const double plus_infinity = -minus_infinity;

/// Is a row of scores empty (E1), NaN (E3, E4), or a softmax?
enum Kind { empty, nan_row, ordinary };
Kind kind_of(const std::vector<float>& scores) {
  Kind kind = empty;
  for (const float s : scores) {
    if (s != s || s == infinity<float>) return nan_row;
    if (s != -infinity<float>) kind = ordinary;
  }
  return kind;
}
std::string text(const std::vector<float>& x) { return Catch::Detail::stringify(x); }
/// All rows of n scores out of five values, each a head with three queries of positive sizes. Between the scores lie `apart` - 1 keys whose
/// score is -inf: 1 puts all into one tile, 70 each into another.
std::vector<Case<float>> all_rows_of(Index n, Index apart) {
  const double values[] = {minus_infinity, spoiled, plus_infinity, 0.5, -3};
  std::vector<Case<float>> heads;
  for (Index row = 0, rows = Index(std::pow(5, n)); row < rows; ++row) {
    Case<float> x({3, n == 0 ? 0 : (n - 1) * apart + 1, 1, 2}, 1);
    x.q = {1, 2, 0.25f};
    std::fill(x.k.begin(), x.k.end(), -infinity<float>);
    for (Index j = 0, rest = row; j < n; ++j, rest /= 5) x.k[j * apart] = float(values[rest % 5]);
    heads.push_back(x);
  }
  return heads;
}
const std::vector<std::pair<Index, Index>> score_rows{{0, 1}, {1, 1}, {2, 1}, {3, 1}, {2, 70}};

TEST_CASE("E1 E3 E4 E6 E7 kernels: every row of up to three scores - step01 step02 step03 step04 step05 step07 step08") {
  OnKernels on;
  on.in_turn = true;
  for (const auto& [n, apart] : score_rows) {
    const std::vector<Case<float>> heads = all_rows_of(n, apart);
    std::vector<std::pair<std::vector<double>, std::vector<double>>> right;
    for (const Case<float>& x : heads) right.push_back(x.define<double>());
    on.forward(heads, {}, [&](const std::vector<Case<float>>& each) {
      for (std::size_t row = 0; row < each.size(); ++row) {
        const Case<float>& y = each[row];
        const Kind kind = kind_of(y.k);
        bool found = error(y.o, right[row].first) <= on.tolerance && error(y.lse, right[row].second) <= on.tolerance;
        if (kind == empty) found = all_are(y.o, 0) && all_are(y.lse, minus_infinity);
        if (kind == nan_row) found = all_are(y.o, spoiled) && all_are(y.lse, spoiled);
        if (!found) FAIL_CHECK("row " << row << ", scores " << text(y.k) << ": O " << text(y.o) << ", L " << text(y.lse));
      }
      SUCCEED();
    });
  }
  CHECK(on.runs > 0);
}

TEST_CASE("E1 E3 E4 kernels: the gradients of every row of up to three scores - step06 step07 step08") {
  OnKernels on;
  on.in_turn = true;
  for (const auto& [n, apart] : score_rows) {
    const std::vector<Case<float>> heads = all_rows_of(n, apart);
    std::vector<std::vector<double>> right;
    for (const Case<float>& x : heads) right.push_back(x.define_gradients<double>().dv);
    on.backward(heads, {}, [&](const std::vector<Case<float>>& each) {
      for (std::size_t row = 0; row < each.size(); ++row) {
        const Case<float>& y = each[row];
        const Kind kind = kind_of(y.k);
        bool found = largest_distance<double>(y.dv_, right[row]) <= on.tolerance;
        if (kind == empty) found = all_are(y.dq, 0) && all_are(y.dk, 0) && all_are(y.dv_, 0);
        if (kind == nan_row) found = all_are(y.dq, spoiled) && all_are(y.dk, spoiled) && all_are(y.dv_, spoiled);
        if (!found) FAIL_CHECK("row " << row << ", scores " << text(y.k) << ": dQ " << text(y.dq) << ", dK " << text(y.dk) << ", dV " << text(y.dv_));
      }
      SUCCEED();
    });
  }
  CHECK(on.runs > 0);
}

TEST_CASE("E8 kernels: degenerate shapes - step01 step02 step03 step04 step05 step06 step07 step08") {
  OnKernels on;
  on.exact = false, on.in_turn = true;
  for (const bool causal : {false, true})
    for (CaseShape shape : std::vector<CaseShape>{{0, 5, 3, 2}, {5, 0, 3, 2}, {0, 0, 3, 2}, {1, 1, 1, 1}, {1, 5, 1, 1}, {5, 1, 1, 1}}) {
      INFO(shape.nq << " x " << shape.nk << (causal ? ", causal" : ""));
      shape.causal = causal;
      on.forward(Case<float>(shape), {}, [&](const Case<float>& y) { CHECK(on.in_budget(y)); });
      on.backward(Case<float>(shape), {}, [&](const Case<float>& y) { CHECK(on.in_budget(y, true)); });
    }
  CHECK(on.runs > 0);
}

TEST_CASE("E9 kernels: any scale - step01 step02 step03 step04 step05 step06 step07 step08") {
  OnKernels on;
  on.exact = false, on.in_turn = true;
  for (const bool causal : {false, true})
    for (const float scale : {0.f, -0.4f, 1.f, 1e-30f, -1e-30f, 20.f, -20.f}) {
      INFO("scale " << scale);
      const Case<float> x({13, 37, 6, 5, 1, 1, causal}, scale);
      on.forward(x, {}, [&](const Case<float>& y) { CHECK(on.in_budget(y)); });
      on.backward(x, {}, [&](const Case<float>& y) {
        CHECK(on.in_budget(y, true));
        if (scale == 0) CHECK((all_are(y.dq, 0) && all_are(y.dk, 0)));
      });
    }
  // A huge scale chooses the largest, or with a minus the smallest: that row of V
  for (const float scale : {1e30f, -1e30f}) {
    Case<float> x({2, 5, 1, 2}, scale);
    x.q = {1, 2}, x.k = {1, -3, 7, 2, -4};
    const Index chosen = scale > 0 ? 2 : 4;
    on.forward(x, {}, [&](const Case<float>& y) {
      const double a = double(y.v[chosen * 2]), b = double(y.v[chosen * 2 + 1]);
      CHECK(error(y.o, {a, b, a, b}) <= on.tolerance);
      CHECK(error(y.lse, {scale * double(y.k[chosen]), 2 * scale * double(y.k[chosen])}) <= on.tolerance);
    });
  }
  CHECK(on.runs > 0);
}

TEST_CASE("E9 kernels: large and peaked scores - step01 step02 step03 step04 step05 step06 step07 step08") {
  OnKernels on;
  on.exact = false, on.in_turn = true;
  for (const float level : {-5000.f, 5000.f})
    for (const Index peak : {0, 17, 36}) {
      Case<float> x({13, 37, 6, 5}, 1);
      for (Index i = 0; i < x.nq; ++i) x.q[i * 6] = 1;
      for (Index j = 0; j < x.nk; ++j) x.k[j * 6] = level + (j == peak ? 80 : 0);
      on.forward(x, {}, [&](const Case<float>& y) {
        CHECK(on.in_budget(y));
        CHECK(std::abs(double(y.lse[0]) - level) <= 200);
      });
      on.backward(x, {}, [&](const Case<float>& y) { CHECK(on.in_budget(y, true)); });
    }
  CHECK(on.runs > 0);
}

/// Puts numbers into some rows of Q, K, V and dO, NaN into whole rows or others too, and holds all results to those without them:
/// what does not see them is the same, bit for bit where nothing is added by atomics, and what sees a NaN is NaN.
void try_numbers(const Step& step, const Kernel& kernel, gpu::Element element, unsigned seed) {
  std::mt19937 random(seed * 747796405u + 3);
  const auto pick = [&](Index low, Index high) { return std::uniform_int_distribution<Index>(low, high)(random); };
  const bool nan = seed % 2 == 0;
  const CaseShape shape{pick(1, 70), pick(1, 70), pick(1, 20), pick(1, 20), 1, 1, step.causal && pick(0, 4) > 0};
  const Arrangement together{1, step.gqa ? pick(1, 3) : 1};
  const std::vector<const gpu::Compiled*> tiles = tiles_for(kernel, element, shape.d, shape.dv, seed);
  if (tiles.empty()) return;
  const gpu::Compiled& compiled = *tiles.front();
  INFO(name_of(step, kernel, compiled) << ", seed " << seed << ": " << shape.nq << " x " << shape.nk << ", dim " << shape.d << ", " << shape.dv
                                       << (shape.causal ? ", causal" : "") << ", group " << together.group);

  std::vector<Case<float>> clean;
  for (Index h = 0; h < together.group; ++h) {
    clean.push_back(rounded(element, Case<float>(shape, 0.4f, seed + unsigned(h))));
    clean[h].k = clean[0].k, clean[h].v = clean[0].v;
  }
  std::vector<Case<float>> bad = clean;
  const float numbers[] = {nan_of<float>, infinity<float>, -infinity<float>, 1e30f};
  Places places{std::vector<bool>(shape.nk), std::vector<bool>(shape.nk), {}, {}};
  places.q.assign(clean.size(), std::vector<bool>(shape.nq)), places.d_o = places.q;
  const auto spoil = [&](std::vector<float>& x, std::vector<bool>& place, Index row, Index cols) {
    place[row] = true;
    const Index only = nan || pick(0, 1) == 0 ? -1 : pick(0, cols - 1);
    for (Index e = 0; e < cols; ++e)
      if (only < 0 || e == only) x[row * cols + e] = numbers[nan ? 0 : pick(0, 3)];
  };
  for (Index n = pick(1, 4); n > 0; --n) {
    const Index j = pick(shape.nk / 2, shape.nk - 1), i = pick(0, shape.nq - 1), h = pick(0, together.group - 1);
    if (pick(0, 1)) spoil(bad[0].k, places.k, j, shape.d);
    if (pick(0, 1)) spoil(bad[0].v, places.v, j, shape.dv);
    if (pick(0, 2) == 0) spoil(bad[h].q, places.q[h], i, shape.d);
    if (pick(0, 2) == 0) spoil(bad[h].d_o, places.d_o[h], i, shape.dv);
  }
  for (Case<float>& x : bad) x.k = bad[0].k, x.v = bad[0].v;
  for (std::vector<Case<float>>* heads : {&clean, &bad}) {
    for (Case<float>& x : *heads) {
      x.poison();
      Memory memory;
      if (kernel.backward) step07::forward(x.head(), memory);
    }
    run_heads(kernel, compiled, *heads, together);
  }

  // Where P = 0 is multiplied by V, a V that is not finite may be seen from the rows of every tile that the kernel visits
  const auto may_see_v = [&](Index i) {
    if (!shape.causal || !multiplies_masked_v(step, kernel)) return false;
    const Index last_row = std::min((i / compiled.br + 1) * compiled.br, shape.nq) - 1;
    const Index keys = std::clamp<Index>(last_row + clean[0].diagonal() + 1, 0, shape.nk);
    const Index end = std::min((keys + compiled.bc - 1) / compiled.bc * compiled.bc, shape.nk);
    return std::find(places.v.begin(), places.v.begin() + end, true) != places.v.begin() + end;
  };

  bool untouched = true, spoiled = true;
  const auto hold = [&](bool sees, const std::vector<float>& x, const std::vector<float>& y, Index row, Index cols) {
    for (Index n = row * cols; n < (row + 1) * cols; ++n) {
      const bool same = kernel.atomics ? distance(x[n], y[n]) <= 1e-5f * std::max(1.f, std::abs(y[n])) : std::memcmp(&x[n], &y[n], sizeof x[n]) == 0;
      if (!sees) untouched = untouched && same;
      if (sees && nan) spoiled = spoiled && x[n] != x[n];
    }
  };
  for (Index h = 0; h < together.group; ++h)
    for (Index i = 0; i < shape.nq; ++i) {
      const Seen s = seen(places, std::size_t(h), i, clean[h].diagonal());
      if (kernel.backward) {
        hold(s.dq, bad[h].dq, clean[h].dq, i, shape.d);
        continue;
      }
      hold(s.lse, bad[h].lse, clean[h].lse, i, 1);
      if (s.o || !may_see_v(i)) hold(s.o, bad[h].o, clean[h].o, i, shape.dv);
    }
  for (Index j = 0; j < shape.nk && kernel.backward; ++j) {
    bool dk = false, dv = false;
    for (Index h = 0; h < together.group; ++h)
      for (Index i = std::max<Index>(0, j - clean[h].diagonal()); i < shape.nq; ++i) {
        const Seen s = seen(places, std::size_t(h), i, clean[h].diagonal());
        dk = dk || s.dq, dv = dv || s.dv;
      }
    hold(dk, bad[0].dk, clean[0].dk, j, shape.d);
    hold(dv, bad[0].dv_, clean[0].dv_, j, shape.dv);
  }
  CHECK(untouched);
  CHECK(spoiled);
}

TEST_CASE("E2 E3 kernels: NaN reaches those that see it and no other - step01 step02 step03 step04 step05 step06 step07 step08") {
  for (const Step* step : all_steps())
    for (const Kernel& kernel : step->kernels)
      for (const gpu::Element element : elements_of(kernel))
        for (unsigned seed = 1; seed <= (step->causal ? 24 : 12); ++seed) try_numbers(*step, kernel, element, seed);
}

}  // namespace
}  // namespace flashsteps
