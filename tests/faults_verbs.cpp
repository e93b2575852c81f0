// Rules E1 and E2 (math 0.3) in the verbs themselves: the masks mark what is absent, and a product over a tile with absent elements and
// NaN beside them is, bit for bit, the product over what is there.
#include "tests/fault_case.hpp"

namespace flashsteps {
namespace {

template <class T> Tile<T> random_tile(OnChip& chip, Index rows, Index cols, std::mt19937& random) {
  std::normal_distribution<double> normal;
  Tile<T> x(chip, rows, cols, T(0));
  for (Index j = 0; j < cols; ++j)
    for (Index i = 0; i < rows; ++i) x(i, j) = T(normal(random));
  return x;
}

TEMPLATE_TEST_CASE("E2 the masks mark what is absent - step07 step08", "", float, double) {
  using T = TestType;
  std::mt19937 random(5);
  OnChip chip(100000);
  for (const Index rows : {1, 3, 8, 17})
    for (const Index cols : {1, 2, 9, 16})
      for (const Index first : {0, 4})
        for (Index diagonal = -rows - cols - 5; diagonal <= rows + cols + 5; ++diagonal) {
          const Range i{first, first + rows}, j{2 * first, 2 * first + cols};
          const Tile<T> before = random_tile<T>(chip, rows, cols, random), before_t = transposed(before);
          Tile<T> s = before, s_t = before_t;
          mask_causal(s, i, j, diagonal);
          mask_causal_columns(s_t, i, j, diagonal);
          bool marked = !s.present.all() && !s_t.present.all();
          Index seen = 0;
          for (Index r = 0; r < rows; ++r)
            for (Index c = 0; c < cols; ++c) {
              const bool there = j.begin + c <= i.begin + r + diagonal;
              seen += there;
              marked = marked && s.present.has(r, c) == there && s_t.present.has(c, r) == there;
              marked = marked && s(r, c) == (there ? before(r, c) : -infinity<T>) && s_t(c, r) == before(r, c);
            }
          CHECK(marked);
          CHECK(kind_of_tile(i, j, diagonal) == (seen == 0 ? skip : seen == rows * cols ? full : partial));
        }
}

/// The three products C = A B, C += A B, C = diag(x) C + A B.
template <class T> std::vector<Tile<T>> products(const Tile<T>& a, const View<T>& b, const Tile<T>& c, const Tile<T>& x) {
  std::vector<Tile<T>> results{multiply(a, b), c, c};
  add_product(results[1], a, b);
  rescale_add_product(results[2], x, a, b);
  return results;
}

TEMPLATE_TEST_CASE("E2 a product over what is there - step06 step07 step08", "", float, double) {
  using T = TestType;
  std::mt19937 random(6);
  OnChip chip(1000000);
  const auto pick = [&](Index low, Index high) { return std::uniform_int_distribution<Index>(low, high)(random); };
  for (int trial = 0; trial < 400; ++trial) {
    const Index rows = pick(1, 45), terms = pick(1, 20), cols = pick(1, 20), diagonal = pick(-5, terms + 5);
    Tile<T> a = random_tile<T>(chip, rows, terms, random), b = random_tile<T>(chip, terms, cols, random);
    const Tile<T> c = random_tile<T>(chip, rows, cols, random), x = random_tile<T>(chip, rows, 1, random);
    // Absent is a part of A, by rows (P V) or by columns (P^T dO, dS^T Q), or of B, by columns (K^T dS^T) or by rows
    const bool left = trial % 4 < 2, by_columns = trial % 2 == 1;
    Tile<T>&weights = left ? a : b, &numbers = left ? b : a;
    if (by_columns) mask_causal_columns(weights, {0, weights.cols()}, {0, weights.rows()}, diagonal);
    else mask_causal(weights, {0, weights.rows()}, {0, weights.cols()}, diagonal);
    clear_absent(weights);
    const auto clean = products(a, view(b), c, x);
    std::vector<bool> bad(terms);
    for (Index n = pick(0, 2); n >= 0; --n) {
      const Index k = pick(0, terms - 1);
      bad[k] = true;
      for (Index e = 0; e < (left ? cols : rows); ++e) (left ? numbers(k, e) : numbers(e, k)) = n == 0 ? nan_of<T> : n == 1 ? infinity<T> : -infinity<T>;
    }
    const auto spoiled = products(a, view(b), c, x);
    bool right = true;
    for (int form = 0; form < 3; ++form)
      for (Index i = 0; i < rows; ++i)
        for (Index j = 0; j < cols; ++j) {
          bool sees = false;
          for (Index k = 0; k < terms; ++k) sees = sees || (bad[k] && (left ? weights.present.has(i, k) : weights.present.has(k, j)));
          const T y = spoiled[form](i, j), z = clean[form](i, j);
          right = right && (sees ? y - y != T(0) : std::memcmp(&y, &z, sizeof(T)) == 0);
        }
    CHECK(right);
    // Without a mark the fast product gives the same on finite numbers
    Tile<T> unmarked = weights;
    unmarked.present = {};
    for (Index e = 0; e < terms; ++e)
      if (bad[e])
        for (Index f = 0; f < (left ? cols : rows); ++f) (left ? numbers(e, f) : numbers(f, e)) = T(0.7);
    const auto marked = products(a, view(b), c, x);
    const auto fast = left ? products(unmarked, view(b), c, x) : products(a, view(unmarked), c, x);
    for (int form = 0; form < 3; ++form) CHECK((marked[form].bare() == fast[form].bare()).all());
  }
}

TEMPLATE_TEST_CASE("E1 E2 weights and gradients of what is absent - step06 step07 step08", "", float, double) {
  using T = TestType;
  std::mt19937 random(7);
  OnChip chip(100000);
  const Index keys = 9, queries = 11;
  Tile<T> s = random_tile<T>(chip, queries, keys, random), dp = random_tile<T>(chip, queries, keys, random), lse(chip, queries, 1, T(1)), delta(chip, queries, 1, T(0.5));
  lse(3) = -infinity<T>, delta(3) = nan_of<T>;                                               // query 3 saw no key
  for (Index j = 0; j < keys; ++j) s(3, j) = dp(3, j) = nan_of<T>;
  for (Index i = 0; i < 5; ++i) s(i, 5) = infinity<T>, dp(i, 5) = nan_of<T>;                 // key 5 is hidden from queries 0 to 4
  Tile<T> s_t = transposed(s);
  mask_causal(s, {0, queries}, {0, keys}, 0), mask_causal_columns(s_t, {0, queries}, {0, keys}, 0);
  const Tile<T> p = probabilities(std::move(s), lse), p_t = probabilities_columns(std::move(s_t), view(lse));
  const Tile<T> ds = softmax_gradient(p, dp, delta), ds_t = softmax_gradient_columns(p_t, transposed(dp), view(delta));
  bool right = true;
  for (Index i = 0; i < queries; ++i)
    for (Index j = 0; j < keys; ++j) {
      const bool there = i != 3 && j <= i;
      for (const T& x : {p(i, j), p_t(j, i)}) right = right && (there ? x > T(0) && x - x == T(0) : x == T(0));
      for (const T& x : {ds(i, j), ds_t(j, i)}) right = right && (there ? x - x == T(0) : x == T(0));
      right = right && p.present.has(i, j) == there && ds_t.present.has(j, i) == there;
    }
  CHECK(right);
  Tile<T> columns(chip, keys, 3, T(1));
  for (Index j = 0; j < keys; ++j) columns(j, 1) = T(0);
  hide_empty_columns(columns);
  for (Index j = 0; j < keys; ++j) CHECK((columns.present.has(j, 0) && !columns.present.has(j, 1) && columns.present.has(j, 2)));
}

}  // namespace
}  // namespace flashsteps
