// Known faults of other implementations, tried on every step: the numbers of softmax, its maximum, its sum, its scale, and the merge of
// partial results. Ids and values: shared/cases/attention-faults.md.
//   C06, C07     keys that are off have k = -inf and so a score of -inf
//   C26, C27     the steps merge (m, l), not (O, L): step02::merge is held to the cases; the merge of (O, L) (math 12.1) stands in
//                fault_softmax.hpp and is tried on what the steps give for parts of the keys
//   C28          "scale not given" is a matter of the command line; here the scale is given, 0 too
#include "tests/fault_softmax.hpp"

namespace flashsteps {
namespace {

TEMPLATE_TEST_CASE("C06 a masked first tile leaves no maximum behind - step01 step02 step03 step04 step05 step07 step08", "", float, double) {
  on_cpu<TestType>(c06);
}

TEMPLATE_TEST_CASE("C07 a long row with one finite score - step01 step02 step03 step04 step05 step07 step08", "", float, double) {
  using T = TestType;
  on_cpu<T>(c07);
  const Index n = 100000;
  std::vector<T> x(n, T(minus_infinity));
  x[50000] = T(10);
  for (const auto softmax : {step01::softmax<T>, step02::softmax<T>}) {
    std::vector<T> p(n, nan_of<T>);
    Memory memory;
    softmax({tensor::x, x.data(), n, 1}, {tensor::a, p.data(), n, 1}, memory);
    CHECK(p[50000] == T(1));
    CHECK(all_are(p, 0, 0, 50000));
    CHECK(all_are(p, 0, 50001, n));
  }
}

TEMPLATE_TEST_CASE("C08 the maximum does not start at zero - step01 step02 step03 step04 step05 step07 step08", "", float, double) { on_cpu<TestType>(c08); }

TEMPLATE_TEST_CASE("C09 sums of different maxima - step01 step02 step03 step04 step05 step07 step08", "", float, double) {
  using T = TestType;
  on_cpu<T>(c09);
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

TEMPLATE_TEST_CASE("C25 L is a natural logarithm - step01 step02 step03 step04 step05 step07 step08", "", float, double) { on_cpu<TestType>(c25); }

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
  on_cpu<TestType>(c26_parts);
}

TEMPLATE_TEST_CASE("C28 a scale of 0 is a scale - step01 step02 step03 step04 step05 step07 step08", "", float, double) { on_cpu<TestType>(c28); }

TEMPLATE_TEST_CASE("C29 old terms shrink when the maximum grows - step01 step02 step03 step04 step05 step07 step08", "", float, double) {
  on_cpu<TestType>(c29);
}

TEMPLATE_TEST_CASE("C36 one key with a score of 1e11 - step01 step02 step03 step04 step05 step07 step08", "", float, double) { on_cpu<TestType>(c36); }

TEMPLATE_TEST_CASE("C44 scores of thousands - step01 step02 step03 step04 step05 step07 step08", "", float, double) { on_cpu<TestType>(c44); }

}  // namespace
}  // namespace flashsteps
