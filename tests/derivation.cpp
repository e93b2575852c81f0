// Lemmas of the derivation that are about rounding, or about integers: the (m, l) monoid in float and double within bounds that are
// derived here, what holds exactly in floating point, and the three kinds of tile. The lemmas themselves: derivation_fifty.cpp.
#include "tests/catch.hpp"
#include "tests/case.hpp"
#include "tests/steps.hpp"
#include <numeric>

using namespace flashsteps;

namespace {

template <class T> constexpr T u = std::numeric_limits<T>::epsilon() / 2;  // unit roundoff

/// Relative error of packet_exp: near 0, and for every unit of |x| (see tests/derivation_loops.cpp).
template <class T> constexpr double exp_error = std::is_same_v<T, float> ? 2e-7 : 4e-16;
template <class T> constexpr double exp_slope = std::is_same_v<T, float> ? 1.4e-8 + double(u<T>) : 3 * double(u<T>);

template <class T> std::vector<T> draw(std::mt19937& random, Index n, double spread) {
  std::normal_distribution<double> normal(0, spread);
  std::vector<T> x(n);
  for (T& y : x) y = T(normal(random));
  return x;
}
template <class T> Slow<const T> slow(const std::vector<T>& x) { return {tensor::x, x.data(), Index(x.size()), 1}; }

/// m, and l in long double.
template <class T> step02::MaxSum<long double> exact_sum(const std::vector<T>& x) {
  step02::MaxSum<long double> s;
  for (const T y : x) s.m = std::max(s.m, (long double)y);
  for (const T y : x) s.l += y == -infinity<T> ? 0 : std::exp((long double)y - s.m);
  return s;
}
/// The largest distance of a finite number from the maximum.
template <class T> double range(const std::vector<T>& x) {
  const double top = double(exact_sum(x).m);
  double r = 0;
  for (const T y : x)
    if (y != -infinity<T>) r = std::max(r, top - double(y));
  return r;
}

/// A random tree over x[begin, end), and its height.
template <class T> std::pair<step02::MaxSum<T>, int> random_tree(const std::vector<T>& x, Index begin, Index end, std::mt19937& random) {
  if (end - begin == 1) return {x[begin] == -infinity<T> ? step02::MaxSum<T>{} : step02::MaxSum<T>{x[begin], T(1)}, 0};
  const Index cut = std::uniform_int_distribution<Index>(begin + 1, end - 1)(random);
  const auto [a, a_height] = random_tree(x, begin, cut, random);
  const auto [b, b_height] = random_tree(x, cut, end, random);
  return {step02::merge(a, b), 1 + std::max(a_height, b_height)};
}

}  // namespace

// ---- 2 Online softmax ------------------------------------------------------------------------------------------------

// The maximum is exact. The term of a leaf x_i is multiplied once in every merge on its way to the root, by E(m_a, m): the argument
// m_a - m = -D is rounded (relative error u: u D of the result), exp is within one unit in the last place (2u), and the product and the
// sum are rounded (u each). On the way the D sum up to at most R = max x - min x. So a tree of height h has the relative error
// u (4 h + R), to first order; 1.01 for the rest. All terms are positive: that is the error of l too.
TEMPLATE_TEST_CASE("math 2-2 the m l monoid - random trees within rounding bounds - step02", "", float, double) {
  using T = TestType;
  for (unsigned seed = 1; seed <= 400; ++seed) {
    std::mt19937 random(seed);
    std::vector<T> x = draw<T>(random, 1 + seed % 97, seed % 3 == 0 ? 20 : 2);
    if (seed % 4 == 0) x[0] = -infinity<T>;
    const auto exact = exact_sum(x);
    std::shuffle(x.begin(), x.end(), random);
    const auto [sum, height] = random_tree(x, 0, Index(x.size()), random);
    const double allowed = 1.01 * double(u<T>) * (4 * height + range(x));
    CAPTURE(seed, x.size(), height, sum.l, allowed);
    CHECK((long double)sum.m == exact.m);
    CHECK(std::abs((long double)sum.l - exact.l) <= allowed * exact.l);
  }
}
// A leaf is now a block of b numbers: exp within its own bound, and b - 1 additions. Merged one after another: height n / b.
TEMPLATE_TEST_CASE("math 2-2 the m l monoid - block form within rounding bounds - step02", "", float, double) {
  using T = TestType;
  for (const Index n : {1, 5, 64, 200}) {
    std::mt19937 random{unsigned(n)};
    std::vector<T> x = draw<T>(random, n, 4);
    if (n == 64) std::fill_n(x.begin(), 20, -infinity<T>);  // blocks without a score
    const auto exact = exact_sum(x);
    for (Index block = 1; block <= n + 1; ++block) {
      Memory memory;
      const step02::MaxSum<T> sum = step02::max_sum<T>(slow(x), block, memory);
      const double leaf = exp_error<T> + exp_slope<T> * range(x) + double(u<T>) * (double(block) + range(x));
      const double allowed = 1.01 * (leaf + double(u<T>) * (4 * double(tile_count(n, block)) + range(x)));
      CAPTURE(n, block, sum.l, exact.l, allowed);
      CHECK((long double)sum.m == exact.m);
      CHECK(std::abs((long double)sum.l - exact.l) <= allowed * exact.l);
    }
  }
}
TEST_CASE("math 2-2 the m l monoid - the neutral element leaves every bit alone - step02") {
  using Pair = step02::MaxSum<float>;
  std::mt19937 random(1);
  for (const float m : draw<float>(random, 100, 50)) {
    const Pair a{m, 1.3f};
    for (const Pair& sum : {step02::merge(a, Pair{}), step02::merge(Pair{}, a)}) {
      CHECK(sum.m == a.m);
      CHECK(sum.l == a.l);
    }
    const Pair b{m * 0.7f, 2.9f}, ab = step02::merge(a, b), ba = step02::merge(b, a);
    CHECK(ab.m == ba.m);
    CHECK(std::abs(ab.l - ba.l) <= 2 * u<float> * ab.l);  // one of the two products may be fused with the sum
  }
  CHECK(step02::merge(Pair{}, Pair{}).l == 0);
}
// An output is E(x_i, m) (1 / l): the error of one exponential with its argument, two roundings, and the error of l. For l that is, in
// three passes, one exponential and n additions. Online it is one exponential more for every new maximum - of the differences of the
// maxima, which sum up to at most R - and a product with each of the n additions.
TEMPLATE_TEST_CASE("math 1-3 three passes - online softmax is softmax in three passes within rounding bounds - step01 step02", "", float, double) {
  using T = TestType;
  for (unsigned seed = 1; seed <= 100; ++seed) {
    std::mt19937 random(seed);
    const Index n = 1 + Index(seed * 7 % 300);
    const std::vector<T> x = draw<T>(random, n, 5);
    std::vector<T> three(n, nan_of<T>), two = three;
    Memory memory;
    step01::softmax<T>(slow(x), {tensor::a, three.data(), n, 1}, memory);
    step02::softmax<T>(slow(x), {tensor::a, two.data(), n, 1}, memory);
    const auto exact = exact_sum(x);
    int maxima = 0;
    for (T m = -infinity<T>; const T y : x)
      if (y > m) m = y, ++maxima;
    const double r = range(x), shifted = exp_error<T> + (exp_slope<T> + double(u<T>)) * r;
    const double three_allowed = 1.01 * (2 * shifted + double(u<T>) * double(n + 2));
    const double two_allowed = three_allowed + 1.01 * (maxima * exp_error<T> + (exp_slope<T> + double(u<T>)) * r + double(u<T>) * double(n));
    long double worst_three = 0, worst_two = 0, three_sum = 0, two_sum = 0;
    for (Index i = 0; i < n; ++i) {
      const long double a = std::exp((long double)x[i] - exact.m) / exact.l;
      worst_three = worse(std::abs((long double)three[i] - a) / a, worst_three), worst_two = worse(std::abs((long double)two[i] - a) / a, worst_two);
      three_sum += three[i], two_sum += two[i];
    }
    CAPTURE(seed, n, maxima, r);
    CHECK(double(worst_three) <= three_allowed);
    CHECK(double(worst_two) <= two_allowed);
    CHECK(double(std::abs(three_sum - 1)) <= three_allowed);  // each is within that of its own part of 1
    CHECK(double(std::abs(two_sum - 1)) <= two_allowed);
  }
}
TEMPLATE_TEST_CASE("math 1-3 three passes - an empty row is 0 - step01 step02", "", float, double) {
  using T = TestType;
  const std::vector<T> x(5, -infinity<T>);
  for (const auto softmax : {step01::softmax<T>, step02::softmax<T>}) {
    std::vector<T> a(5, nan_of<T>);
    Memory memory;
    softmax(slow(x), {tensor::a, a.data(), 5, 1}, memory);
    CHECK(a == std::vector<T>(5, T(0)));
  }
}
TEST_CASE("math appendix A 1 three keys - step01 step02") {
  const std::vector<double> x{0, 1, 2}, right{0.09003057, 0.24472847, 0.66524096};
  for (const auto softmax : {step01::softmax<double>, step02::softmax<double>}) {
    std::vector<double> a(3, nan_of<double>);
    Memory memory;
    softmax(slow(x), {tensor::a, a.data(), 3, 1}, memory);
    for (int i = 0; i < 3; ++i) CHECK(std::abs(a[i] - right[i]) < 5e-9);
  }
}

// ---- What holds exactly in floating point ----------------------------------------------------------------------------

// The key with the largest score weighs exp(0) = 1, the others at most 1, and rounding is monotone: so in floating point too
// 1 <= l <= number of keys seen, and l = 0 means that no key was seen (E7). The maximum never falls.
TEMPLATE_TEST_CASE("math 0-3 E7 empty test - l stays between 1 and the number of keys - step02 step03 step04 step05 step07 step08", "", float, double) {
  using T = TestType;
  for (const auto& [name, run, masks] : forward_forms<T>()) {
    const bool after_the_first = std::string_view(name).substr(0, 6) != "step01";  // whose first sweep leaves l at 0
    if (!after_the_first) continue;
    INFO(name);
    for (unsigned seed = 1; seed <= 60; ++seed) {
      CaseShape shape = random_shape(seed, 60, 20);
      shape.causal = masks && seed % 2 == 1;
      Case<T> x(shape, seed % 3 == 0 ? T(30) : T(0.5), seed);
      x.watched = Index(seed) % x.nq;
      Memory memory;
      run(x.head(), memory);
      const Index seen_at_all = x.raw().keys(x.watched);
      T m = -infinity<T>;
      bool holds = true;
      for (const Moment<T>& moment : x.moments) {
        const Index keys = std::min(moment.sweep == 1 ? moment.keys : seen_at_all, seen_at_all);
        holds = holds && (keys == 0 ? moment.l == 0 : moment.l >= 1 && moment.l <= T(keys)) && moment.m >= m;
        m = moment.m;
      }
      INFO("seed " << seed);
      CHECK(holds);
      CHECK((seen_at_all == 0 || !x.moments.empty()));
    }
  }
}
// With scale 0 every key weighs the same: L = log(n), exactly as the library rounds it, and o is the mean.
TEMPLATE_TEST_CASE("math 0-3 E9 scale 0 - L is the natural logarithm of the number of keys - step01 step02 step03 step04 step05 step07 step08", "", float, double) {
  using T = TestType;
  for (const auto& [name, run, masks] : forward_forms<T>()) {
    INFO(name);
    for (const Index n : {1, 2, 10, 100}) {
      Case<T> x({3, n, 4, 2, 2, 7}, T(0));
      Memory memory;
      run(x.head(), memory);
      for (const T lse : x.lse) CHECK(std::abs(lse - std::log(T(n))) <= 4 * u<T> * std::log(T(n)));
      for (Index i = 0; i < x.nq; ++i)
        for (Index e = 0; e < x.dv; ++e) CHECK(x.o[i * x.dv + e] == x.o[e]);
    }
  }
}

// ---- 7 Causal --------------------------------------------------------------------------------------------------------

TEST_CASE("math 7-1 bottom-right alignment - how many keys a row sees - step07") {
  for (Index nq = 0; nq <= 9; ++nq)
    for (Index nk = 0; nk <= 9; ++nk) {
      const Case<double> x({nq, nk, 1, 1, 1, 1, true});
      Index total = 0;
      for (Index i = 0; i < nq; ++i) {
        Index seen = 0;
        for (Index j = 0; j < nk; ++j) seen += j <= i + (nk - nq);
        CHECK(x.raw().keys(i) == seen);
        CHECK(seen == std::min(nk, std::max<Index>(0, i + x.diagonal() + 1)));
        if (nk > 0) CHECK((seen == 0) == (i < nq - nk));  // the first Nq - Nk rows are empty
        total += seen;
      }
      CHECK(total == (nq <= nk ? nq * nk - nq * (nq - 1) / 2 : nk * (nk + 1) / 2));
      if (nq > 0 && nk > 0) CHECK(x.raw().keys(nq - 1) == nk);  // the last row sees all keys
    }
}
TEST_CASE("math 7-2 three kinds of tile - both tests are exact - step07") {
  const auto floor_of = [](Index a, Index b) { return a / b - (a % b < 0); };
  const auto ceil_of = [&](Index a, Index b) { return -floor_of(-a, b); };
  bool exact = true, counted = true, columns = true, few = true, monotone = true;
  for (Index nq = 1; nq <= 11; ++nq)
    for (Index nk = 1; nk <= 11; ++nk)
      for (Index br = 1; br <= 6; ++br)
        for (Index bc = 1; bc <= 6; ++bc) {
          const Index diagonal = nk - nq, tc = tile_count(nk, bc);
          for (const Range i : tiles(nq, br)) {
            Index visited = 0, whole = 0, column = 0;
            TileKind before = full;
            for (const Range j : tiles(nk, bc)) {
              Index admitted = 0;
              for (Index r = i.begin; r < i.end; ++r)
                for (Index c = j.begin; c < j.end; ++c) admitted += c <= r + diagonal;
              const TileKind kind = kind_of_tile(i, j, diagonal);
              exact = exact && kind == (admitted == 0 ? skip : admitted == i.size() * j.size() ? full : partial);
              visited += kind != skip, whole += kind == full;
              monotone = monotone && !(before == skip && kind != skip) && !(before == partial && kind == full);  // full, partial, skipped
              const Index first = std::max<Index>(0, floor_of(column * bc - diagonal, br));                    // I_min(J)
              columns = columns && (kind != skip) == (i.begin / br >= first);
              before = kind, ++column;
            }
            counted = counted && visited == std::clamp<Index>(ceil_of(i.end + diagonal, bc), 0, tc);
            counted = counted && whole == (i.begin + diagonal + 1 >= nk ? tc : std::clamp<Index>(floor_of(i.begin + diagonal + 1, bc), 0, tc));
            few = few && visited - whole <= (br + bc - 2) / bc + 1 && visited - whole <= tile_count(br, bc) + 1;
          }
        }
  CHECK(exact);
  CHECK(counted);
  CHECK(columns);
  CHECK(few);
  CHECK(monotone);
}
TEST_CASE("math 7-2 three kinds of tile - totals - step07") {
  struct Row { Index nq, nk, br, bc, skipped, whole, part; };
  const auto count = [](const Row& x) {
    std::array<Index, 3> kinds{};
    for (const Range i : tiles(x.nq, x.br))
      for (const Range j : tiles(x.nk, x.bc)) ++kinds[kind_of_tile(i, j, x.nk - x.nq)];
    return kinds == std::array<Index, 3>{x.skipped, x.whole, x.part};
  };
  static_assert(skip == 0 && full == 1 && partial == 2);
  // Appendix A 4, and the examples of 7.2
  for (const Row& x : {Row{1024, 1024, 128, 128, 28, 28, 8}, Row{2, 5, 2, 2, 0, 2, 1}, Row{5, 2, 2, 2, 1, 1, 1}, Row{5, 2, 2, 1, 3, 2, 1}, Row{9, 9, 3, 3, 3, 3, 3}})
    CHECK(count(x));
  // The closed forms: T = N / Bc tiles a side; Br = a Bc; Bc = a Br
  for (Index t = 1; t <= 6; ++t)
    for (Index a = 1; a <= 4; ++a) {
      CHECK(count({12 * t, 12 * t, 12, 12, t * (t - 1) / 2, t * (t - 1) / 2, t}));
      CHECK(count({3 * a * t, 3 * a * t, 3 * a, 3, a * t * (t - 1) / 2, a * t * (t - 1) / 2, a * t}));
      CHECK(count({3 * a * t, 3 * a * t, 3, 3 * a, a * t * (t - 1) / 2, a * t * (t - 1) / 2, a * t}));
    }
}
