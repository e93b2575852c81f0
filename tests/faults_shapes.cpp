// Known faults of other implementations, tried on every step: lengths and widths that do not divide, empty tensors, heads, capacity,
// and what the tests themselves let pass. Ids and values: shared/cases/attention-faults.md.
//   C33   limits of a grid do not exist on the CPU; one key per head is tried on the heads that the case names
//   C34   the CPU has a capacity instead of a shared memory: what exceeds it throws, and says so
//   C35   feeds this folder's comparisons, error() and the error budget, with results that are wrong
//   C42   step 07 counts the tiles that it visits: with tiles of 1 by 1 that is the exact count of pairs
#include "tests/fault_shapes.hpp"

namespace flashsteps {
namespace {

TEMPLATE_TEST_CASE("C14 a length that no tile divides - step01 step02 step03 step04 step05 step07 step08", "", float, double) { on_cpu<TestType>(c14); }

TEMPLATE_TEST_CASE("C14 lengths around every tile - step01 step02 step03 step04 step05 step07 step08", "", float, double) { on_cpu<TestType>(c14_lengths); }

TEMPLATE_TEST_CASE("C15 a head dimension of 63 - step01 step02 step03 step04 step05 step07 step08", "", float, double) { on_cpu<TestType>(c15); }

TEMPLATE_TEST_CASE("C16 the padding of the last tile is no key - step01 step02 step03 step04 step05 step07 step08", "", float, double) {
  on_cpu<TestType>(c16);
}

TEMPLATE_TEST_CASE("C18 empty sequences - step01 step02 step03 step04 step05 step07 step08", "", float, double) { on_cpu<TestType>(c18); }

TEMPLATE_TEST_CASE("C21 query heads and the head of K and V that they read - step01 step02 step03 step04 step05 step07 step08", "", float, double) {
  using T = TestType;
  on_cpu<T>(c21);
  // Every head of K and V is read by as many query heads, which stand side by side
  for (const auto& [q_heads, kv_heads] : TileSizes{{6, 2}, {64, 8}, {8, 8}, {8, 1}, {32, 4}, {12, 3}})
    for (Index h = 0; h < q_heads; ++h) {
      const Index kv = step08::kv_head(h, q_heads, kv_heads), g = q_heads / kv_heads;
      CHECK((kv * g <= h && h < (kv + 1) * g));
    }
}

TEMPLATE_TEST_CASE("C33 one key gives V bit for bit - step01 step02 step03 step04 step05 step07 step08", "", float, double) { on_cpu<TestType>(c33); }

TEST_CASE("C34 what does not fit is refused - step01 step02 step03 step04 step05 step06 step07 step08", "") {
  for (const Index d : {64, 128, 256, 512, 1024}) {
    Case<float> x({128, 128, d, d}, 0.125f);
    std::fill(x.q.begin(), x.q.end(), 0.f);
    for (Index n = 0; n < x.nk * d; ++n) x.v[n] = float(n % d);
    every_forward(x, {{64, 64}, {128, 128}}, [&](const Case<float>& y) {
      double worst = 0;
      for (Index n = 0; n < y.nq * d; ++n) worst = worse(std::abs(double(y.o[n]) - double(n % d)), worst);
      CHECK(worst <= tolerance<float> * double(d));
    });
    x.br = x.bc = 64;
    for (const ForwardForm<float>& form : forward_forms<float>()) {
      INFO(form.name << ", d = " << d);
      Memory endless;
      form.run(x.head(), endless);
      Memory enough(endless.peak()), scarce(endless.peak() - 1);
      CHECK_NOTHROW(form.run(x.head(), enough));
      std::string refusal;
      try {
        form.run(x.head(), scarce);
      } catch (const DoesNotFit& e) {
        refusal = e.what();
      }
      CHECK(refusal.find("room for " + std::to_string(endless.peak() - 1)) != std::string::npos);
      CHECK_NOTHROW(form.run(x.head(), enough));
    }
  }
  Case<float> x({40, 40, 16, 16, 8, 8});
  for (const BackwardForm<float>& form : backward_forms<float>()) {
    INFO(form.name);
    Memory endless;
    step07::forward(x.head(), endless);
    Memory backward;
    form.run(x.head(), x.gradients(), backward);
    Memory scarce(backward.peak() - 1);
    CHECK_THROWS_AS(form.run(x.head(), x.gradients(), scarce), DoesNotFit);
  }
}

TEMPLATE_TEST_CASE("C35 a comparison that can fail - step05", "", float, double) {
  using T = TestType;
  Case<T> x = rule_o<T>({8, 8, 4, 4, 4, 4});
  for (T& v : x.v) v = T(0.75) + v / 16;
  Memory memory;
  step05::forward(x.head(), memory);
  const std::vector<T> right = x.o;
  const auto [reference, lse] = x.template define<double>();
  CHECK(error_at(right, 0, {0.740832288788, 0.748122398611, 0.745801961365, 0.722562733967}) <= tolerance<T>);
  CHECK(error_at(right, 20, {0.726027178181, 0.754852687791, 0.730068528993, 0.752982184728}) <= tolerance<T>);
  CHECK(std::abs(*std::min_element(right.begin(), right.end()) - T(0.707773284747)) <= tolerance<T>);
  CHECK(std::abs(*std::max_element(right.begin(), right.end()) - T(0.763350096624)) <= tolerance<T>);

  const auto accepted = [&, &reference = reference](const std::vector<T>& o) {
    x.o = o;
    const bool by_error = error(o, reference) <= tolerance<T>, by_budget = in_budget(x);
    CHECK(by_error == by_budget);
    return by_error;
  };
  CHECK(accepted(right));
  CHECK_FALSE(accepted(std::vector<T>(32, T(0.75))));
  std::vector<T> wrong = right;
  std::swap_ranges(wrong.begin() + 8, wrong.begin() + 12, wrong.begin() + 20);
  CHECK_FALSE(accepted(wrong));
  for (const double bad : {0., spoiled, minus_infinity}) {
    wrong = right, wrong[17] = T(bad);
    CHECK_FALSE(accepted(wrong));
  }
  wrong = right;
  for (T& o : wrong) o *= T(1.001);
  CHECK_FALSE(accepted(wrong));
  CHECK_FALSE(error(std::vector<T>(right.begin(), right.end() - 1), reference) <= tolerance<T>);
}

TEST_CASE("C42 operations of what is visited - step05 step07 step08", "") {
  const Index n = 1024, d = 64, square = 268435456, pairs = 134348800;
  const auto products = [&](const Step& step, Index tile, Index diagonal) { return step.forward().flops({n, n, d, d, tile, tile, diagonal}).matmul; };
  CHECK(products(step05::step(), 64, n) == square);
  for (const Step* step : {&step07::step(), &step08::step()}) {
    CHECK(products(*step, 64, n) == square);
    CHECK(products(*step, 1, 0) == pairs);
    // 16 tiles in a row of tiles: 16 * 17 / 2 of them are visited, and counted whole
    CHECK(products(*step, 64, 0) == 136 * 64 * 64 * 4 * d);
  }
}

}  // namespace
}  // namespace flashsteps
