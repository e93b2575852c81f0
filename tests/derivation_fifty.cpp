// Every lemma of the derivation (math 1 to 8) in 50 digits, under its name and number there: the monoids, what is true of m, l and o
// after every key or tile, and the gradients beside central differences.
#include "tests/catch.hpp"
#include "tests/case.hpp"
#include "tests/fifty.hpp"
#include "tests/steps.hpp"
#include <functional>
#include <numeric>

using namespace flashsteps;

namespace {

const Fifty minus_infinity = -infinity<Fifty>;
constexpr double exact = 1e-45;

/// |a - b| beside max(1, |b|); 0 for the same infinity, NaN if only one is finite.
double apart(const Fifty& a, const Fifty& b) {
  using std::abs;
  const bool finite = b - b == 0;
  const Fifty size = finite && abs(b) > 1 ? Fifty(abs(b)) : Fifty(1);
  return double(distance(a, b) / size);
}
/// The same for vectors, beside max(1, max|b|); NaN for another size.
double apart(const std::vector<Fifty>& a, const std::vector<Fifty>& b) {
  using std::abs;
  Fifty size(1);
  for (const Fifty& x : b)
    if (x - x == 0 && abs(x) > size) size = abs(x);
  return double(largest_distance<Fifty>(a, b) / size);
}

std::vector<Fifty> draw(std::mt19937& random, Index n, double spread = 3) {
  std::normal_distribution<double> normal(0, spread);
  std::vector<Fifty> x(n);
  for (Fifty& y : x) y = Fifty(normal(random));
  return x;
}
Slow<const Fifty> slow(const std::vector<Fifty>& x) { return {tensor::x, x.data(), Index(x.size()), 1}; }

/// m, l and u of some keys, by their definition: m = max x, l = sum e^(x - m), u = sum e^(x - m) v.
struct Sums {
  Fifty m = minus_infinity, l = 0;
  std::vector<Fifty> u;
};
Sums sums(const std::vector<Fifty>& x, const std::vector<std::vector<Fifty>>& v = {}) {
  Sums s{minus_infinity, 0, std::vector<Fifty>(v.empty() ? 0 : v[0].size(), Fifty(0))};
  for (const Fifty& y : x) s.m = y > s.m ? y : s.m;
  for (std::size_t j = 0; j < x.size(); ++j) {
    const Fifty p = x[j] == minus_infinity ? Fifty(0) : Fifty(exp(x[j] - s.m));
    s.l += p;
    for (std::size_t e = 0; e < s.u.size(); ++e) s.u[e] += p * v[j][e];
  }
  return s;
}
/// (m, l, u) of 3.3.
Sums merge(const Sums& a, const Sums& b) {
  const step02::MaxSum<Fifty> both = step02::merge<Fifty>({a.m, a.l}, {b.m, b.l});
  Sums s{both.m, both.l, {}};
  for (std::size_t e = 0; e < a.u.size(); ++e) s.u.push_back(a.u[e] * exp_shifted(a.m, s.m) + b.u[e] * exp_shifted(b.m, s.m));
  return s;
}
double apart(const Sums& a, const Sums& b) { return worse(worse(apart(a.m, b.m), apart(a.l, b.l)), a.u.empty() ? 0. : apart(a.u, b.u)); }
Sums of(const step02::MaxSum<Fifty>& x) { return {x.m, x.l, {}}; }
step02::MaxSum<Fifty> pair_of(const Sums& s) { return {s.m, s.l}; }

/// Reduces items [begin, end) in a random order of merging: every way to set brackets can occur.
template <class X, class Merge> X random_tree(const std::vector<X>& items, std::size_t begin, std::size_t end, std::mt19937& random, Merge merge) {
  if (end - begin == 1) return items[begin];
  const std::size_t cut = std::uniform_int_distribution<std::size_t>(begin + 1, end - 1)(random);
  return merge(random_tree(items, begin, cut, random, merge), random_tree(items, cut, end, random, merge));
}

/// The scores of row i.
std::vector<Fifty> scores(const Case<Fifty>& x, Index i) {
  std::vector<Fifty> s(x.raw().keys(i), Fifty(0));
  for (std::size_t j = 0; j < s.size(); ++j) {
    for (Index e = 0; e < x.d; ++e) s[j] += x.q[i * x.d + e] * x.k[j * x.d + e];
    s[j] *= x.scale;
  }
  return s;
}
std::vector<std::vector<Fifty>> values(const Case<Fifty>& x) {
  std::vector<std::vector<Fifty>> v;
  for (Index j = 0; j < x.nk; ++j) v.emplace_back(x.v.begin() + j * x.dv, x.v.begin() + (j + 1) * x.dv);
  return v;
}
/// The first n elements.
template <class X> std::vector<X> first(const std::vector<X>& x, Index n) { return {x.begin(), x.begin() + std::min<Index>(n, Index(x.size()))}; }

/// How a step holds o while it runs: as it is (normalised), or l times as large.
enum class Held { normalised, times_l };
/// Watches every row of seeded problems: after every key or tile, m, l and o must be those of the keys seen so far. Returns the
/// largest error, and fails if a row was not watched to its end.
double invariant_error(void (*step)(const Head<Fifty>&, Memory&), Held held, bool causal, bool by_tiles) {
  double worst = 0;
  for (unsigned seed = 1; seed <= 12; ++seed) {
    CaseShape shape = random_shape(seed, 14, 4);
    shape.causal = causal;
    Case<Fifty> x(shape, seed % 4 == 0 ? Fifty(-2) : Fifty(0.7), seed);
    for (x.watched = 0; x.watched < x.nq; ++x.watched) {
      x.poison();
      Memory memory;
      step(x.head(), memory);
      const std::vector<Fifty> s = scores(x, x.watched);
      const auto v = values(x);
      Index seen = 0;
      for (const Moment<Fifty>& moment : x.moments) {
        const Index before = seen;
        seen = moment.keys;
        if (seen != (by_tiles ? std::min(before + x.bc, x.nk) : before + 1)) return std::numeric_limits<double>::quiet_NaN();
        Sums so_far = sums(first(s, seen), first(v, std::min<Index>(seen, Index(s.size()))));
        if (so_far.u.empty()) so_far.u.assign(x.dv, Fifty(0));
        if (held == Held::normalised && so_far.l != 0)
          for (Fifty& u : so_far.u) u /= so_far.l;
        worst = worse(apart(Sums{moment.m, moment.l, moment.o}, so_far), worst);
      }
      if (seen < Index(s.size())) return std::numeric_limits<double>::quiet_NaN();
    }
  }
  return worst;
}

/// Central differences of a function at a vector of numbers, one after another.
std::vector<Fifty> differences(std::vector<Fifty>& at, const std::function<Fifty()>& f) {
  const Fifty h("1e-16");  // the error of the difference is of the order of h^2 = 1e-32, and of 1e-50 / h = 1e-34
  std::vector<Fifty> slope;
  for (Fifty& x : at) {
    const Fifty middle = x;
    x = middle + h;
    const Fifty right = f();
    x = middle - h;
    const Fifty left = f();
    x = middle;
    slope.push_back((right - left) / (2 * h));
  }
  return slope;
}
constexpr double differences_agree = 1e-27;

/// The loss sum dO o O + sum dL L. A row that sees no key has L = -inf, and contributes nothing (E1).
Fifty loss(const Case<Fifty>& x) {
  Fifty sum = std::inner_product(x.o.begin(), x.o.end(), x.d_o.begin(), Fifty(0));
  if (x.with_d_lse)
    for (Index i = 0; i < x.nq; ++i)
      if (x.lse[i] != minus_infinity) sum += x.d_lse[i] * x.lse[i];
  return sum;
}
/// The error of a backward pass beside central differences of a forward pass, of dQ, dK and dV, with dL and without.
double gradient_error(const BackwardForm<Fifty>& backward, void (*forward)(const Head<Fifty>&, Memory&), bool causal) {
  double worst = 0;
  for (unsigned seed = 1; seed <= 10; ++seed) {
    CaseShape shape = random_shape(seed, 6, 3);
    shape.causal = causal;
    Case<Fifty> x(shape, seed % 3 == 0 ? Fifty(-1.5) : Fifty(0.6), seed);
    x.with_d_lse = seed % 2 == 0;
    Memory memory;
    forward(x.head(), memory);
    backward.run(x.head(), x.gradients(), memory);
    Case<Fifty> moved = x;
    const auto f = [&] {
      forward(moved.head(), memory);
      return loss(moved);
    };
    worst = worse(apart(x.dq, differences(moved.q, f)), worst);
    worst = worse(apart(x.dk, differences(moved.k, f)), worst);
    worst = worse(apart(x.dv_, differences(moved.v, f)), worst);
  }
  return worst;
}

}  // namespace

// ---- 1 Softmax -------------------------------------------------------------------------------------------------------

TEST_CASE("math 1-2 softmax and its safe form - a shift changes nothing - step01 step02") {
  std::mt19937 random(1);
  for (Index n : {1, 2, 7, 30}) {
    const std::vector<Fifty> x = draw(random, n);
    for (const auto softmax : {step01::softmax<Fifty>, step02::softmax<Fifty>}) {
      std::vector<Fifty> a(n, nan_of<Fifty>), b(n, nan_of<Fifty>), y = x, naive(n);
      Memory memory;
      softmax(slow(x), {tensor::a, a.data(), n, 1}, memory);
      for (Fifty& e : y) e += Fifty("17.25");
      softmax(slow(y), {tensor::a, b.data(), n, 1}, memory);
      CHECK(apart(a, b) <= exact);
      // The naive form, in numbers that do not overflow
      Fifty sum(0);
      for (const Fifty& e : x) sum += exp(e);
      for (Index i = 0; i < n; ++i) naive[i] = exp(x[i]) / sum;
      CHECK(apart(a, naive) <= exact);
      CHECK(apart(std::accumulate(a.begin(), a.end(), Fifty(0)), Fifty(1)) <= exact);
    }
  }
}
TEST_CASE("math 1-3 three passes - online softmax is softmax in three passes - step01 step02") {
  std::mt19937 random(2);
  for (Index n = 0; n <= 40; ++n) {
    std::vector<Fifty> x = draw(random, n, 10), three(n, nan_of<Fifty>), two = three;
    if (n % 3 == 1) x[n / 2] = minus_infinity;  // a key that is not there; for n = 1 an empty row
    Memory memory;
    step01::softmax<Fifty>(slow(x), {tensor::a, three.data(), n, 1}, memory);
    step02::softmax<Fifty>(slow(x), {tensor::a, two.data(), n, 1}, memory);
    CHECK(apart(two, three) <= exact);
    CHECK(apart(std::accumulate(three.begin(), three.end(), Fifty(0)), Fifty(n == 0 || n == 1 ? 0 : 1)) <= exact);
  }
}
// What each of the three sweeps of step 01 knows of a row: the maximum so far; the sum so far, shifted by the maximum of all keys; the
// part of o so far, with the weights of all keys.
TEST_CASE("math 1-3 three passes - what every sweep knows after every key - step01") {
  for (unsigned seed = 1; seed <= 6; ++seed) {
    Case<Fifty> x(random_shape(seed, 12, 4), Fifty(0.7), seed);
    x.causal = false, x.watched = x.nq / 2;
    Memory memory;
    step01::three_sweeps<Fifty>(x.head(), memory);
    const std::vector<Fifty> s = scores(x, x.watched);
    const auto v = values(x);
    const Sums all = sums(s);
    REQUIRE(Index(x.moments.size()) == 3 * x.nk);
    double worst = 0;
    Fifty l(0);
    std::vector<Fifty> o(x.dv, Fifty(0));
    for (Index t = 0; t < 3 * x.nk; ++t) {
      const Moment<Fifty>& moment = x.moments[t];
      const Index j = t % x.nk;
      if (t / x.nk == 1) l += exp(s[j] - all.m);
      if (t / x.nk == 2)
        for (Index e = 0; e < x.dv; ++e) o[e] += exp(s[j] - all.m) / all.l * v[j][e];
      const Fifty m = t < x.nk ? sums(first(s, j + 1)).m : all.m;
      CHECK(moment.sweep == t / x.nk + 1);
      CHECK(moment.keys == j + 1);
      worst = worse(apart(Sums{moment.m, moment.l, moment.o}, Sums{m, l, o}), worst);
    }
    CHECK(worst <= exact);
  }
}

// ---- 2 Online softmax ------------------------------------------------------------------------------------------------

TEST_CASE("math 2-1 recurrence - m and l after every key - step02") {
  for (unsigned seed = 1; seed <= 6; ++seed) {
    Case<Fifty> x(random_shape(seed, 14, 4), Fifty(0.7), seed);
    x.causal = false, x.watched = x.nq - 1;
    Memory memory;
    step02::two_sweeps<Fifty>(x.head(), memory);
    const std::vector<Fifty> s = scores(x, x.watched);
    double worst = 0;
    for (Index j = 0; j < x.nk; ++j) {
      const Moment<Fifty>& moment = x.moments.at(j);
      CHECK(moment.sweep == 1);
      CHECK(moment.keys == j + 1);
      worst = worse(apart(Sums{moment.m, moment.l, {}}, sums(first(s, j + 1))), worst);
    }
    CHECK(worst <= exact);
  }
}
// The laws on pairs of the monoid, the neutral element among them.
TEST_CASE("math 2-2 the m l monoid - associative and commutative with a neutral element - step02") {
  using Pair = step02::MaxSum<Fifty>;
  std::mt19937 random(3);
  std::vector<Pair> pairs{{}, {Fifty(0), Fifty(1)}, {Fifty(-1000), Fifty(3)}, {Fifty(1000), Fifty("1e-20")}};
  for (int n = 0; n < 5; ++n) pairs.push_back(pair_of(sums(draw(random, 1 + 3 * n))));
  double worst = 0;
  for (const Pair& a : pairs) {
    worst = worse(apart(of(step02::merge(a, Pair{})), of(a)), worst);
    worst = worse(apart(of(step02::merge(Pair{}, a)), of(a)), worst);
    for (const Pair& b : pairs) {
      worst = worse(apart(of(step02::merge(a, b)), of(step02::merge(b, a))), worst);
      for (const Pair& c : pairs)
        worst = worse(apart(of(step02::merge(step02::merge(a, b), c)), of(step02::merge(a, step02::merge(b, c)))), worst);
    }
  }
  CHECK(worst <= exact);
  const Pair nothing = step02::merge(Pair{}, Pair{});
  CHECK(nothing.m == minus_infinity);
  CHECK(nothing.l == 0);
}
// A vector is the merge of (x_i, 1): in every order, with every bracket.
TEST_CASE("math 2-2 the m l monoid - random trees - step02") {
  using Pair = step02::MaxSum<Fifty>;
  std::mt19937 random(4);
  double worst = 0;
  for (int n = 1; n <= 200; ++n) {
    std::vector<Fifty> x = draw(random, 1 + n % 40, 20);
    if (n % 7 == 0) x[0] = minus_infinity;
    const Sums all = sums(x);
    std::shuffle(x.begin(), x.end(), random);
    std::vector<Pair> leaves;
    for (const Fifty& y : x) leaves.push_back(y == minus_infinity ? Pair{} : Pair{y, Fifty(1)});
    worst = worse(apart(of(random_tree(leaves, 0, leaves.size(), random, step02::merge<Fifty>)), all), worst);
  }
  CHECK(worst <= exact);
}
TEST_CASE("math 2-2 the m l monoid - block form for every block size - step02") {
  std::mt19937 random(5);
  double worst = 0;
  for (const Index n : {0, 1, 2, 13, 24}) {
    std::vector<Fifty> x = draw(random, n, 10);
    if (n == 13) std::fill_n(x.begin(), 4, minus_infinity);  // blocks without a score
    for (Index block = 1; block <= n + 2; ++block) {
      Memory memory;
      worst = worse(apart(of(step02::max_sum<Fifty>(slow(x), block, memory)), sums(x)), worst);
    }
  }
  CHECK(worst <= exact);
}
TEST_CASE("math 2-3 two-pass attention - o after every key of the second sweep - step02") {
  for (unsigned seed = 1; seed <= 6; ++seed) {
    Case<Fifty> x(random_shape(seed, 14, 4), Fifty(0.7), seed);
    x.causal = false, x.watched = 0;
    Memory memory;
    step02::two_sweeps<Fifty>(x.head(), memory);
    const std::vector<Fifty> s = scores(x, 0);
    const auto v = values(x);
    const Sums all = sums(s);
    std::vector<Fifty> o(x.dv, Fifty(0));
    double worst = 0;
    REQUIRE(Index(x.moments.size()) == 2 * x.nk);
    for (Index j = 0; j < x.nk; ++j) {
      const Moment<Fifty>& moment = x.moments[x.nk + j];
      for (Index e = 0; e < x.dv; ++e) o[e] += exp(s[j] - all.m) / all.l * v[j][e];
      CHECK(moment.sweep == 2);
      worst = worse(apart(Sums{moment.m, moment.l, moment.o}, Sums{all.m, all.l, o}), worst);
    }
    CHECK(worst <= exact);
  }
}

// ---- 3 One pass ------------------------------------------------------------------------------------------------------

// The outputs determine x up to a constant: a_i / a_j = e^(x_i - x_j), so n - 1 numbers of state are unavoidable.
TEST_CASE("math 3-1 why softmax itself has no one-pass algorithm - step01 step03") {
  std::mt19937 random(6);
  const Index n = 20;
  const std::vector<Fifty> x = draw(random, n);
  std::vector<Fifty> a(n);
  Memory memory;
  step01::softmax<Fifty>(slow(x), {tensor::a, a.data(), n, 1}, memory);
  double worst = 0;
  for (Index i = 0; i < n; ++i)
    for (Index j = 0; j < n; ++j) worst = worse(apart(log(a[i] / a[j]), x[i] - x[j]), worst);
  CHECK(worst <= exact);
}
TEST_CASE("math 3-2 recurrence in normalised form - m l and o after every key - step03") {
  CHECK(invariant_error(step03::one_sweep_normalised<Fifty>, Held::normalised, false, false) <= exact);
}
TEST_CASE("math 3-3 recurrence in un-normalised form - m l and u after every key - step03") {
  CHECK(invariant_error(step03::one_sweep<Fifty>, Held::times_l, false, false) <= exact);
}
TEST_CASE("math 3-3 the m l u monoid - laws and random trees - step03 step04 step05") {
  std::mt19937 random(7);
  double worst = 0;
  const Sums neutral{minus_infinity, 0, std::vector<Fifty>(3, Fifty(0))};
  for (int n = 1; n <= 60; ++n) {
    std::vector<Fifty> x = draw(random, 1 + n % 20, 10);
    if (n % 5 == 0) x[0] = minus_infinity;
    std::vector<std::vector<Fifty>> v;
    std::vector<Sums> leaves;
    for (const Fifty& y : x) {
      v.push_back(draw(random, 3));
      leaves.push_back(sums({y}, {v.back()}));
    }
    const Sums all = sums(x, v);
    std::shuffle(leaves.begin(), leaves.end(), random);
    worst = worse(apart(random_tree(leaves, 0, leaves.size(), random, merge), all), worst);
    worst = worse(apart(merge(all, neutral), all), worst);
    worst = worse(apart(merge(neutral, all), all), worst);
    worst = worse(apart(merge(all, leaves[0]), merge(leaves[0], all)), worst);
  }
  CHECK(worst <= exact);
}
// Without m: pairs (L, o) of parts of the keys merge to those of all keys. So (O, L) is a complete result.
TEST_CASE("math 3-3 the monoid on pairs of L and o - parts of the keys merge - step05") {
  Case<Fifty> x({5, 12, 3, 4, 2, 3}, Fifty(0.7), 8);
  Memory memory;
  step05::forward<Fifty>(x.head(), memory);
  for (const Index cut : {1, 5, 11}) {
    std::vector<Case<Fifty>> parts(2, x);
    parts[0].nk = cut, parts[1].nk = x.nk - cut;
    parts[1].k.assign(x.k.begin() + cut * x.d, x.k.end()), parts[1].v.assign(x.v.begin() + cut * x.dv, x.v.end());
    for (Case<Fifty>& part : parts) step05::forward<Fifty>(part.head(), memory);
    double worst = 0;
    for (Index i = 0; i < x.nq; ++i) {
      const Fifty a = parts[0].lse[i], b = parts[1].lse[i], m = a > b ? a : b, lse = m + log(exp(a - m) + exp(b - m));
      worst = worse(apart(lse, x.lse[i]), worst);
      for (Index e = i * x.dv; e < (i + 1) * x.dv; ++e)
        worst = worse(apart(exp(a - lse) * parts[0].o[e] + exp(b - lse) * parts[1].o[e], x.o[e]), worst);
    }
    CHECK(worst <= exact);
  }
}

// ---- 4, 5 and 7 Tiles ------------------------------------------------------------------------------------------------

TEST_CASE("math 4-1 algorithm of FlashAttention-1 - m l and o after every column tile - step04") {
  CHECK(invariant_error(step04::forward<Fifty>, Held::normalised, false, true) <= exact);
}
TEST_CASE("math 5-1 algorithm of FlashAttention-2 - m l and u after every column tile - step05") {
  CHECK(invariant_error(step05::forward<Fifty>, Held::times_l, false, true) <= exact);
}
TEST_CASE("math 5-1 and 7-2 - m l and u after every visited tile under a causal mask - step07 step08") {
  CHECK(invariant_error(step07::forward<Fifty>, Held::times_l, true, true) <= exact);
  CHECK(invariant_error(step08::forward<Fifty>, Held::times_l, true, true) <= exact);
}
TEST_CASE("math 5-1 after the last tile - the weights from L are those from m and l - step05 step06") {
  for (unsigned seed = 1; seed <= 6; ++seed) {
    Case<Fifty> x(random_shape(seed, 12, 4), Fifty(0.7), seed);
    x.causal = false, x.watched = 0;
    Memory memory;
    step05::forward<Fifty>(x.head(), memory);
    const Moment<Fifty>& last = x.moments.back();
    Fifty sum(0);
    double worst = 0;
    for (const Fifty& s : scores(x, 0)) {
      const Fifty p = exp(s - x.lse[0]);
      worst = worse(apart(p, exp(s - last.m) / last.l), worst);
      sum += p;
    }
    CHECK(worst <= exact);
    CHECK(apart(sum, Fifty(1)) <= exact);  // rows of P sum to 1
  }
}
TEST_CASE("math 0-3 E9 scale and base - L is the natural logarithm of the sum of exp - step01 step02 step03 step04 step05 step07 step08") {
  for (const auto& [name, run, masks] : forward_forms<Fifty>()) {
    INFO(name);
    for (const double scale : {0., -1.25, 0.4}) {
      Case<Fifty> x({3, 6, 2, 2, 2, 4}, Fifty(scale), 9);
      Memory memory;
      run(x.head(), memory);
      for (Index i = 0; i < x.nq; ++i) {
        Fifty sum(0);
        for (const Fifty& s : scores(x, i)) sum += exp(s);
        CHECK(apart(exp(x.lse[i]), sum) <= exact);
        if (scale == 0) CHECK(apart(x.lse[i], log(Fifty(6))) <= exact);
      }
    }
  }
}
TEST_CASE("math 3-3 any order of the keys - keys moved together with their values change nothing - step01 step02 step03 step04 step05 step07 step08") {
  for (const auto& [name, run, masks] : forward_forms<Fifty>()) {
    INFO(name);
    for (unsigned seed = 1; seed <= 4; ++seed) {
      Case<Fifty> x({4, 11, 3, 2, 2, 3}, Fifty(0.7), seed), y = x;
      std::vector<Index> order(x.nk);
      std::iota(order.begin(), order.end(), 0);
      std::mt19937 random(seed);
      std::shuffle(order.begin(), order.end(), random);
      for (Index j = 0; j < x.nk; ++j) {
        std::copy_n(x.k.begin() + order[j] * x.d, x.d, y.k.begin() + j * x.d);
        std::copy_n(x.v.begin() + order[j] * x.dv, x.dv, y.v.begin() + j * x.dv);
      }
      Memory memory;
      run(x.head(), memory), run(y.head(), memory);
      CHECK(apart(y.o, x.o) <= exact);
      CHECK(apart(y.lse, x.lse) <= exact);
    }
  }
}

// ---- 6 Backward ------------------------------------------------------------------------------------------------------

TEST_CASE("math 6-1 derivation - D is the row sum of dO o O and of P dP and rows of dS sum to 0 - step06") {
  Case<Fifty> x({4, 7, 3, 2, 2, 3}, Fifty(0.7), 10);
  Memory memory;
  step05::forward<Fifty>(x.head(), memory);
  double worst = 0;
  for (Index i = 0; i < x.nq; ++i) {
    const std::vector<Fifty> s = scores(x, i);
    std::vector<Fifty> p, dp;
    for (Index j = 0; j < x.nk; ++j) {
      p.push_back(exp(s[j] - x.lse[i])), dp.push_back(Fifty(0));
      for (Index e = 0; e < x.dv; ++e) dp[j] += x.d_o[i * x.dv + e] * x.v[j * x.dv + e];
    }
    const Fifty delta = std::inner_product(p.begin(), p.end(), dp.begin(), Fifty(0));
    const Fifty row_sum = std::inner_product(x.o.begin() + i * x.dv, x.o.begin() + (i + 1) * x.dv, x.d_o.begin() + i * x.dv, Fifty(0));
    worst = worse(apart(row_sum, delta), worst);
    Fifty ds_sum(0);
    for (Index j = 0; j < x.nk; ++j) ds_sum += p[j] * (dp[j] - delta);
    worst = worse(apart(ds_sum, Fifty(0)), worst);
  }
  CHECK(worst <= exact);
}
TEST_CASE("math 6-1 derivation - gradients of the standard backward pass agree with central differences - step06") {
  CHECK(gradient_error(backward_forms<Fifty>().at(0), step05::forward<Fifty>, false) <= differences_agree);
}
TEST_CASE("math 6-5 column order - gradients agree with central differences of step05 - step06") {
  CHECK(gradient_error({"", step06::backward<Fifty>, false}, step05::forward<Fifty>, false) <= differences_agree);
}
TEST_CASE("math 6-6 row order - gradients agree with central differences of step05 - step06") {
  CHECK(gradient_error({"", step06::backward_row_order<Fifty>, false}, step05::forward<Fifty>, false) <= differences_agree);
}
TEST_CASE("math 6-5 and 7-2 causal - gradients agree with central differences of the causal forward pass - step07") {
  CHECK(gradient_error({"", step07::backward<Fifty>, true}, step05::forward<Fifty>, false) <= differences_agree);
  CHECK(gradient_error({"", step07::backward<Fifty>, true}, step07::forward<Fifty>, true) <= differences_agree);
}
// The loss is the sum over the query heads of a group; K and V stand there once.
TEST_CASE("math 8 grouped queries - gradients of shared K and V agree with central differences - step08") {
  double worst = 0;
  for (unsigned seed = 1; seed <= 8; ++seed) {
    CaseShape shape = random_shape(seed, 5, 3);
    const int g = 1 + int(seed % 3);
    std::vector<Case<Fifty>> heads;
    for (int h = 0; h < g; ++h) {
      heads.emplace_back(shape, Fifty(0.6), 100 * seed + h);
      heads.back().with_d_lse = seed % 2 == 0;
    }
    const auto group = [&] {
      std::vector<Head<Fifty>> result;
      for (Case<Fifty>& x : heads) {
        result.push_back(x.head());
        result.back().k = result.front().k, result.back().v = result.front().v;
      }
      return result;
    };
    Memory memory;
    const auto f = [&] {
      Fifty sum(0);
      const std::vector<Head<Fifty>> all = group();
      for (int h = 0; h < g; ++h) step08::forward<Fifty>(all[h], memory), sum += loss(heads[h]);
      return sum;
    };
    f();
    std::vector<Gradients<Fifty>> gradients;
    for (Case<Fifty>& x : heads) {
      gradients.push_back(x.gradients());
      gradients.back().dk = gradients.front().dk, gradients.back().dv = gradients.front().dv;
    }
    step08::backward<Fifty>(group(), gradients, memory);
    for (Case<Fifty>& x : heads) {
      const std::vector<Fifty> dq = x.dq;
      worst = worse(apart(dq, differences(x.q, f)), worst);
    }
    worst = worse(apart(heads[0].dk, differences(heads[0].k, f)), worst);
    worst = worse(apart(heads[0].dv_, differences(heads[0].v, f)), worst);
  }
  CHECK(worst <= differences_agree);
}
// The forward pass needs L alone: from it, what the backward pass recomputes is P, and rows that saw no key weigh nothing.
TEST_CASE("math 6-2 recomputation - P from L alone is the softmax of S - step06 step07") {
  Case<Fifty> x({6, 4, 3, 2, 2, 3, true}, Fifty(0.7), 11);
  Memory memory;
  step07::forward<Fifty>(x.head(), memory);
  const Tile<Fifty> lse = memory.load_lanes(Slow<const Fifty>{tensor::lse, x.lse.data(), x.nq, 1});
  Tile<Fifty> s = memory.tile(x.nk, x.nq, Fifty(0));  // keys by queries
  for (Index i = 0; i < x.nq; ++i) {
    const std::vector<Fifty> row = scores(x, i);
    for (std::size_t j = 0; j < row.size(); ++j) s(j, i) = row[j];
  }
  mask_causal_columns(s, {0, x.nq}, {0, x.nk}, x.diagonal());
  const Tile<Fifty> p = probabilities_columns(std::move(s), view(lse));
  double worst = 0;
  for (Index i = 0; i < x.nq; ++i) {
    const std::vector<Fifty> row = scores(x, i);
    const Sums all = sums(row);
    for (Index j = 0; j < x.nk; ++j)
      worst = worse(apart(p(j, i), j < Index(row.size()) ? Fifty(exp(row[j] - all.m) / all.l) : Fifty(0)), worst);
  }
  CHECK(x.lse[0] == minus_infinity);
  CHECK(worst <= exact);
}
