// Known faults of other implementations, tried on every step: the numbers of softmax, its maximum, its sum, its scale, and the merge of
// partial results. Ids and values: shared/cases/attention-faults.md.
//   C06, C07     keys that are off have k = -inf and so a score of -inf
//   C26, C27     the steps merge (m, l), not (O, L): step02::merge is held to the cases; the merge of (O, L) (math 12.1) stands here and
//                is tried on what the steps give for parts of the keys
//   C28          "scale not given" is a matter of the command line; here the scale is given, 0 too
#include "tests/fault_case.hpp"

namespace flashsteps {
namespace {

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

TEMPLATE_TEST_CASE("C06 a masked first tile leaves no maximum behind - step01 step02 step03 step04 step05 step07 step08", "", float, double) {
  using T = TestType;
  for (const Index off : {0, 64}) {
    std::vector<double> scores(128), v(128);
    for (Index j = 0; j < 128; ++j) scores[j] = j >= off && j < off + 64 ? minus_infinity : -200.0 - double(j % 2), v[j] = double(j % 2);
    every_forward(one_row<T>(scores, v), {{1, 64}, {1, 32}, {1, 16}, {8, 13}, {1, 1}, {1, 128}}, [](const Case<T>& y) {
      CHECK(error(y.o, {0.26894142137}) <= tolerance<T>);
      CHECK(error(y.lse, {-196.22100241}) <= tolerance<T>);
    });
  }
}

TEMPLATE_TEST_CASE("C07 a long row with one finite score - step01 step02 step03 step04 step05 step07 step08", "", float, double) {
  using T = TestType;
  std::vector<double> scores(64, minus_infinity);
  every_softmax<T>(scores, [](const std::vector<T>& p, T lse) {
    CHECK(p.size() == 64);
    CHECK(all_are(p, 0));
    CHECK(lse == T(minus_infinity));
  });
  scores[50] = 10;
  every_softmax<T>(scores, [](const std::vector<T>& p, T lse) {
    CHECK(p[50] == T(1));
    CHECK(all_are(p, 0, 0, 50));
    CHECK(all_are(p, 0, 51, 64));
    CHECK(lse == T(10));
  });
  const Index n = 100000;
  scores.assign(n, minus_infinity), scores[50000] = 10;
  every_forward(one_row<T>(scores, counted(n)), {{1, 64}, {1, 1000}, {1, 4099}, {1, n}}, [](const Case<T>& y) {
    CHECK(y.o[0] == T(50000));
    CHECK(y.lse[0] == T(10));
  });
  const std::vector<T> x(scores.begin(), scores.end());
  for (const auto softmax : {step01::softmax<T>, step02::softmax<T>}) {
    std::vector<T> p(n, nan_of<T>);
    Memory memory;
    softmax({tensor::x, x.data(), n, 1}, {tensor::a, p.data(), n, 1}, memory);
    CHECK(p[50000] == T(1));
    CHECK(all_are(p, 0, 0, 50000));
    CHECK(all_are(p, 0, 50001, n));
  }
}

TEMPLATE_TEST_CASE("C08 the maximum does not start at zero - step01 step02 step03 step04 step05 step07 step08", "", float, double) {
  using T = TestType;
  every_softmax<T>({-10000, -10000}, [](const std::vector<T>& p, T lse) {
    CHECK(error(p, {0.5, 0.5}) <= tolerance<T>);
    CHECK(error(std::vector<T>{lse}, {-9999.30685282}) <= tolerance<T>);
  });
  every_softmax<T>({-1000, -1001, -1002}, [](const std::vector<T>& p, T lse) {
    CHECK(error(p, {0.665240955775, 0.244728471055, 0.0900305731704}) <= tolerance<T>);
    CHECK(error(std::vector<T>{lse}, {-999.592394036}) <= tolerance<T>);
  });
}

TEMPLATE_TEST_CASE("C09 sums of different maxima - step01 step02 step03 step04 step05 step07 step08", "", float, double) {
  using T = TestType;
  std::vector<double> scores = counted(64);
  for (const bool mirrored : {false, true}) {
    every_softmax<T>(scores, [&](std::vector<T> p, T lse) {
      if (mirrored) std::reverse(p.begin(), p.end());
      CHECK(error_at(p, 62, {0.232544157935, 0.632120558829}) <= tolerance<T>);
      CHECK(error(std::vector<T>{lse}, {63.4586751454}) <= tolerance<T>);
      double sum = 0;
      for (const T& y : p) sum += double(y);
      CHECK(std::abs(sum - 1) <= tolerance<T>);
    });
    std::reverse(scores.begin(), scores.end());
  }
  every_softmax<T>(std::vector<double>(64, -3.0), [&](const std::vector<T>& p, T lse) {
    CHECK(error(p, std::vector<double>(64, 0.015625)) <= tolerance<T>);
    CHECK(error(std::vector<T>{lse}, {1.15888308336}) <= tolerance<T>);
  });
  // Lane t owns t and t + 32: 32 pairs, merged as they come, and in a tree
  using Pair = step02::MaxSum<T>;
  std::vector<Pair> lane(32);
  Pair sum;
  for (Index t = 0; t < 32; ++t) lane[t] = step02::merge(Pair{T(t), T(1)}, Pair{T(t + 32), T(1)}), sum = step02::merge(sum, lane[t]);
  for (Index half = 16; half > 0; half /= 2)
    for (Index t = 0; t < half; ++t) lane[t] = step02::merge(lane[t], lane[t + half]);
  for (const Pair& pair : {sum, lane[0]}) {
    CHECK(pair.m == T(63));
    CHECK(error(std::vector<T>{pair.l}, {1.58197670687}) <= tolerance<T>);
  }
}

TEMPLATE_TEST_CASE("C25 L is a natural logarithm - step01 step02 step03 step04 step05 step07 step08", "", float, double) {
  using T = TestType;
  every_forward(one_row<T>(std::vector<double>(8, 0.0), counted(8)), {{1, 1}, {1, 3}, {1, 8}, {4, 16}}, [](const Case<T>& y) {
    CHECK(error(y.lse, {2.07944154168}) <= tolerance<T>);
  });
  Case<T> x = rule_o<T>({3, 3, 4, 4});
  x.scale = T(0.3);
  every_forward(x, all_pairs({1, 2, 3, 4}), [](const Case<T>& y) { CHECK(error(y.lse, {1.23549108839, 1.20842317803, 1.51051560021}) <= tolerance<T>); });
}

// ---- Merging what parts of the keys give (math 12.1) ----

template <class T> struct Part { T o, lse; };
/// L = log sum exp L_t, O = sum exp(L_t - L) O_t; (0, -inf) is neutral.
template <class T> Part<T> merge(const std::vector<Part<T>>& parts) {
  T top = -infinity<T>, z = 0, o = 0;
  bool empty = true;
  for (const Part<T>& part : parts) top = std::fmax(top, part.lse), empty = empty && part.lse == -infinity<T>;
  if (empty) return {0, -infinity<T>};
  for (const Part<T>& part : parts) z += std::exp(part.lse - top);
  for (const Part<T>& part : parts)
    if (part.lse != -infinity<T>) o += std::exp(part.lse - top) / z * part.o;
  return {o, top + std::log(z)};
}

TEMPLATE_TEST_CASE("C26 merging empty parts - step02", "", float, double) {
  using T = TestType;
  using Pair = step02::MaxSum<T>;
  const T nothing = -infinity<T>;
  const auto is = [](const Part<T>& x, double o, double lse) { return worse(error(std::vector<T>{x.o}, {o}), error(std::vector<T>{x.lse}, {lse})) <= tolerance<T>; };
  CHECK(is(merge<T>({{0, nothing}, {0, nothing}}), 0, minus_infinity));
  CHECK(is(merge<T>({{0, nothing}, {5, 2}}), 5, 2));
  CHECK(is(merge<T>({{5, 2}, {0, nothing}}), 5, 2));
  CHECK(is(merge<T>({{1, 0}, {0, nothing}, {3, 0}}), 2, 0.69314718056));
  CHECK(is(merge<T>({{0, nothing}, {nan_of<T>, nan_of<T>}}), spoiled, spoiled));

  const auto lse = [](const Pair& x) { return x.m + std::log(x.l); };
  const Pair empty = step02::merge(Pair{}, Pair{});
  CHECK(empty.m == nothing);
  CHECK(empty.l == T(0));
  for (const Pair& x : {step02::merge(Pair{}, Pair{T(2), T(1)}), step02::merge(Pair{T(2), T(1)}, Pair{})}) {
    CHECK(x.m == T(2));
    CHECK(x.l == T(1));
  }
  CHECK(error(std::vector<T>{lse(step02::merge(step02::merge(Pair{T(0), T(1)}, Pair{}), Pair{T(0), T(1)}))}, {0.69314718056}) <= tolerance<T>);
  for (const Pair& x : {step02::merge(Pair{}, Pair{nan_of<T>, nan_of<T>}), step02::merge(Pair{nan_of<T>, nan_of<T>}, Pair{}),
                        step02::merge(Pair{}, Pair{infinity<T>, nan_of<T>})})
    CHECK(lse(x) != lse(x));
}

TEMPLATE_TEST_CASE("C27 merging parts with a large L - step02", "", float, double) {
  using T = TestType;
  for (const double shift : {0., 2000.}) {
    const double right = shift == 0 ? 1001.3132616875 : -998.68673831248;
    const Part<T> part = merge<T>({{1, T(1000 - shift)}, {2, T(1001 - shift)}});
    CHECK(error(std::vector<T>{part.o}, {1.73105857863}) <= tolerance<T>);
    CHECK(error(std::vector<T>{part.lse}, {right}) <= tolerance<T>);
    const step02::MaxSum<T> pair = step02::merge<T>({T(1000 - shift), T(1)}, {T(1001 - shift), T(1)});
    CHECK(error(std::vector<T>{pair.m + std::log(pair.l)}, {right}) <= tolerance<T>);
  }
}

TEMPLATE_TEST_CASE("C26 C27 the parts of a row merge to the row - step01 step02 step03 step04 step05 step07 step08", "", float, double) {
  using T = TestType;
  for (const double size : {1., 300.}) {
    Case<T> x({4, 23, 5, 1}, T(size));
    for (const Index hidden : {5, 6, 7, 8, 22}) std::fill_n(&x.k[hidden * x.d], x.d, T(0)), x.k[hidden * x.d] = T(minus_infinity);  // keys 5 to 8: a part that is empty
    for (Index i = 0; i < x.nq; ++i) x.q[i * x.d] = std::abs(x.q[i * x.d]);
    for (const ForwardForm<T>& form : forward_forms<T>()) {
      INFO(form.name << ", scores of size " << size);
      x.poison();
      run(form, x);
      const std::vector<T> o = x.o, lse = x.lse;
      std::vector<std::vector<Part<T>>> parts(x.nq);
      const std::vector<Index> ends{0, 5, 9, 9, 14, 23};
      for (std::size_t n = 1; n < ends.size(); ++n) {
        Head<T> head = x.head();
        const Range keys{ends[n - 1], ends[n]};
        head.k = head.k[keys], head.v = head.v[keys], head.diagonal = keys.size();
        Memory memory;
        form.run(head, memory);
        for (Index i = 0; i < x.nq; ++i) parts[i].push_back({x.o[i], x.lse[i]});
        if (n == 2 || n == 3) CHECK((all_are(x.o, 0) && all_are(x.lse, minus_infinity)));
      }
      for (Index i = 0; i < x.nq; ++i) {
        const Part<T> whole = merge(parts[i]);
        CHECK(error(std::vector<T>{whole.o}, {double(o[i])}) <= size * tolerance<T>);
        CHECK(error(std::vector<T>{whole.lse}, {double(lse[i])}) <= tolerance<T>);
      }
    }
  }
}

TEMPLATE_TEST_CASE("C28 a scale of 0 is a scale - step01 step02 step03 step04 step05 step07 step08", "", float, double) {
  using T = TestType;
  Case<T> x = rule_o<T>({3, 3, 2, 2, 1, 1, true});
  every_forward(x, all_pairs({1, 2, 3, 4}), [](const Case<T>& y) {
    CHECK(error(y.o, {-1.125, -1, -0.548271154487, -1.21627331707, -0.455847258651, -1.00478236557}) <= tolerance<T>);
  });
  x.scale = 0;
  every_forward(x, all_pairs({1, 2, 3, 4}), [](const Case<T>& y) {
    CHECK(error(y.o, {-1.125, -1, -0.625, -1.1875, -0.541666666667, -0.791666666667}) <= tolerance<T>);
    CHECK(error(y.lse, {0, 0.69314718056, 1.09861228867}) <= tolerance<T>);
  });
}

TEMPLATE_TEST_CASE("C29 old terms shrink when the maximum grows - step01 step02 step03 step04 step05 step07 step08", "", float, double) {
  using T = TestType;
  const TileSizes sizes{{1, 1}, {1, 2}, {2, 1}};
  every_forward(one_row<T>({0, 1}, {1, 3}), sizes, [](const Case<T>& y) {
    CHECK(error(y.o, {2.46211715726}) <= tolerance<T>);
    CHECK(error(y.lse, {1.31326168752}) <= tolerance<T>);
  });
  every_forward(one_row<T>({1, 0}, {3, 1}), sizes, [](const Case<T>& y) { CHECK(error(y.o, {2.46211715726}) <= tolerance<T>); });
}

TEMPLATE_TEST_CASE("C36 one key with a score of 1e11 - step01 step02 step03 step04 step05 step07 step08", "", float, double) {
  using T = TestType;
  Case<T> x({1, 1, 64, 64}, T(0.125));
  for (std::vector<T>* tensor : {&x.q, &x.k, &x.v}) tensor->assign(64, T(133120));
  every_forward(x, {{1, 1}, {64, 64}, {2, 3}}, [](const Case<T>& y) {
    CHECK(all_are(y.o, 133120));
    CHECK(y.lse[0] == T(141767475200.));
  });
}

TEMPLATE_TEST_CASE("C44 scores of thousands - step01 step02 step03 step04 step05 step07 step08", "", float, double) {
  using T = TestType;
  for (const double sign : {1., -1.}) {
    Case<T> x({1, 2, 1, 1}, T(1));
    x.q = {40}, x.k = {T(sign * 50), T(sign * 49.75)}, x.v = {1, 0};
    every_forward(x, {{1, 1}, {1, 2}, {3, 3}}, [&](const Case<T>& y) {
      CHECK(error(y.o, {sign > 0 ? 0.999954602131 : 4.53978687024e-05}) <= tolerance<T>);
      CHECK(error(y.lse, {sign > 0 ? 2000.0000453989 : -1989.9999546011}) <= tolerance<T>);
    });
  }
}

}  // namespace
}  // namespace flashsteps
