// Known faults of other implementations, tried on every step: lengths and widths that do not divide, empty tensors, heads, capacity,
// and what the tests themselves let pass. Ids and values: shared/cases/attention-faults.md.
//   C33   limits of a grid do not exist on the CPU; one key per head is tried on the heads that the case names
//   C34   the CPU has a capacity instead of a shared memory: what exceeds it throws, and says so
//   C35   feeds this folder's comparisons, error() and the error budget, with results that are wrong
//   C42   step 07 counts the tiles that it visits: with tiles of 1 by 1 that is the exact count of pairs
#include "tests/fault_case.hpp"

namespace flashsteps {
namespace {

const TileSizes small = all_pairs({1, 2, 3, 5, 8});

TEMPLATE_TEST_CASE("C14 a length that no tile divides - step01 step02 step03 step04 step05 step07 step08", "", float, double) {
  using T = TestType;
  const TileSizes sizes{{128, 128}, {128, 64}, {64, 128}, {48, 80}, {50, 7}, {256, 256}, {200, 191}};
  std::vector<Case<T>> heads = rule_o_heads<T>({192, 192, 16, 16}, 2, 2);
  every_forward(heads, sizes, [](const std::vector<Case<T>>& each) {
    CHECK(error_at(each[0].o, 0, {0.0603988348033, -0.00502344071795, 0.0977980058412}) <= tolerance<T>);
    CHECK(error_at(each[1].o, 191 * 16, {0.0306777415569, -0.0221349192688, -0.0558063721774}) <= tolerance<T>);
    CHECK(error_at(each[1].lse, 191, {5.39318170415}) <= tolerance<T>);
    CHECK(checksum_error(joined(each, &Case<T>::o), -0.433804441452, -4.13006018371) <= tolerance<T>);
  });
  for (Case<T>& x : heads) x.causal = true;
  every_forward(heads, sizes, [](const std::vector<Case<T>>& each) {
    CHECK(error_at(each[1].o, 100 * 16, {0.0229419682234, 0.0864569102668, 0.0715323305873}) <= tolerance<T>);
    CHECK(error_at(each[1].lse, 100, {4.71089572443}) <= tolerance<T>);
    CHECK(checksum_error(joined(each, &Case<T>::o), -27.0449937433, -178.404050091) <= tolerance<T>);
  });
}

TEMPLATE_TEST_CASE("C14 lengths around every tile - step01 step02 step03 step04 step05 step07 step08", "", float, double) {
  using T = TestType;
  for (const bool causal : {false, true})
    for (const Index t : {2, 8, 16, 33, 64})
      for (const Index s : {Index(1), t - 1, t, t + 1, 2 * t - 1}) {
        INFO("length " << s << ", tile " << t);
        every_forward(rule_o<T>({s, s, 16, 16, 1, 1, causal}), {{t, t}, {t, t / 2}, {t / 2, t}}, [](const Case<T>& y) { CHECK(in_budget(y)); });
      }
}

TEMPLATE_TEST_CASE("C15 a head dimension of 63 - step01 step02 step03 step04 step05 step07 step08", "", float, double) {
  using T = TestType;
  const TileSizes sizes{{16, 16}, {40, 40}, {64, 64}, {7, 13}};
  every_forward(rule_o<T>({40, 40, 63, 63}), sizes, [](const Case<T>& y) {
    CHECK(error_at(y.o, 0, {-0.0951926709105, -0.0769528350747, 0.144413832112}) <= tolerance<T>);
    CHECK(error_at(y.o, 39 * 63 + 60, {0.0101348844526, 0.125648011433, 0.0490729436847}) <= tolerance<T>);
    CHECK(error_at(y.lse, 0, {3.77540964723}) <= tolerance<T>);
    CHECK(error_at(y.lse, 39, {3.74428103982}) <= tolerance<T>);
    CHECK(checksum_error(y.o, 0.589049100991, 9.86621779408) <= tolerance<T>);
  });
  for (const Index d : {1, 3, 20, 33, 63, 65, 96, 127}) every_forward(rule_o<T>({40, 40, d, d}), sizes, [](const Case<T>& y) { CHECK(in_budget(y)); });
}

TEMPLATE_TEST_CASE("C16 the padding of the last tile is no key - step01 step02 step03 step04 step05 step07 step08", "", float, double) {
  using T = TestType;
  for (const int sign : {0, -1}) {
    Case<T> x({1, 65, 1, 1}, T(sign == 0 ? 1 : -1));
    x.q = {1}, x.k.assign(65, T(sign == 0 ? 0 : 1)), x.v.assign(65, T(1));
    every_forward(x, {{1, 64}, {64, 64}, {1, 16}, {8, 128}}, [&](const Case<T>& y) {
      CHECK(error(y.o, {1}) <= tolerance<T>);
      CHECK(error(y.lse, {sign == 0 ? 4.1743872699 : 3.1743872699}) <= tolerance<T>);
    });
  }
}

TEMPLATE_TEST_CASE("C18 empty sequences - step01 step02 step03 step04 step05 step07 step08", "", float, double) {
  using T = TestType;
  for (const bool causal : {false, true}) {
    every_forward(std::vector<Case<T>>(6, Case<T>({0, 0, 7, 7, 1, 1, causal})), small, [](const std::vector<Case<T>>& each) {
      CHECK(joined(each, &Case<T>::o).size() + joined(each, &Case<T>::lse).size() == 0);
    });
    every_forward(std::vector<Case<T>>(6, Case<T>({3, 0, 7, 7, 1, 1, causal})), small, [](const std::vector<Case<T>>& each) {
      const std::vector<T> o = joined(each, &Case<T>::o), lse = joined(each, &Case<T>::lse);
      CHECK(o.size() == 126);
      CHECK(all_are(o, 0));
      CHECK(lse.size() == 18);
      CHECK(all_are(lse, minus_infinity));
    });
    every_forward(Case<T>({0, 3, 7, 7, 1, 1, causal}), small, [](const Case<T>& y) { CHECK(y.o.size() + y.lse.size() == 0); });
  }
}

TEMPLATE_TEST_CASE("C21 query heads and the head of K and V that they read - step01 step02 step03 step04 step05 step07 step08", "", float, double) {
  using T = TestType;
  const TileSizes sizes = all_pairs({1, 2, 3});
  std::vector<Case<T>> heads;
  for (Index h = 0; h < 6; ++h) {
    heads.push_back(Case<T>({1, 1, 1, 1}));
    heads[h].v = {T(step08::kv_head(h, 6, 2) + 1)};
  }
  every_forward(heads, sizes, [](const std::vector<Case<T>>& each) { CHECK(error(joined(each, &Case<T>::o), {1, 1, 1, 2, 2, 2}) <= tolerance<T>); });
  every_forward(rule_o_heads<T>({2, 2, 2, 2}, 6, 2), sizes, [](const std::vector<Case<T>>& each) {
    CHECK(error_at(each[2].o, 0, {-0.774927020207, -1.13127736742}) <= tolerance<T>);
    CHECK(error_at(each[3].o, 0, {0.27125107505, -1.2925021501}) <= tolerance<T>);
    CHECK(error_at(each[5].o, 2, {-0.102883769023, -0.544232461954}) <= tolerance<T>);
  });
  // Every head of K and V is read by as many query heads, which stand side by side
  for (const auto& [q_heads, kv_heads] : TileSizes{{6, 2}, {64, 8}, {8, 8}, {8, 1}, {32, 4}, {12, 3}})
    for (Index h = 0; h < q_heads; ++h) {
      const Index kv = step08::kv_head(h, q_heads, kv_heads), g = q_heads / kv_heads;
      CHECK((kv * g <= h && h < (kv + 1) * g));
    }
}

TEMPLATE_TEST_CASE("C33 one key gives V bit for bit - step01 step02 step03 step04 step05 step07 step08", "", float, double) {
  using T = TestType;
  for (const Index h : {0, 1, 39999, 65534, 65535, 69999}) {
    const Case<T> x = rule_o<T>({1, 1, 16, 16}, h, h);
    double s = 0;
    for (Index e = 0; e < 16; ++e) s += double(x.q[e]) * double(x.k[e]) / 4;
    every_forward(x, {{1, 1}, {64, 64}}, [&](const Case<T>& y) {
      CHECK(same_bits(y.o, y.v));
      CHECK(error(y.lse, {s}) <= tolerance<T>);
      if (h == 65535) CHECK(error_at(y.o, 0, {-1.75, 1.25, -0.625, 0.625}) == 0);
    });
  }
}

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
