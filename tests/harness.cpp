// The harness itself: comparisons fail on what must fail, and every step that is wrong on purpose is caught by the functions that the
// chain tests use. A test that cannot fail proves nothing.
#include "tests/catch.hpp"
#include "tests/chain.hpp"
#include "tests/wrong_steps.hpp"

using namespace flashsteps;
using wrong::GradientMistake;
using wrong::Mistake;

namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
const double not_a_number = nan_of<double>;

template <class T> Case<T> solved(const CaseShape& shape, T scale = T(0.4), unsigned seed = 1) {
  Case<T> x(shape, scale, seed);
  x.with_d_lse = true;
  run(ForwardForm<T>{"step07", step07::forward<T>, true}, BackwardForm<T>{"step07", step07::backward<T>, true}, x);
  return x;
}
template <class T> std::vector<T>& output(Case<T>& x, Result r) { return const_cast<std::vector<T>&>(flashsteps::output(std::as_const(x), r)); }

template <class T> const ForwardForm<T> forward05{"step05", step05::forward<T>, false};
template <class T> const ForwardForm<T> forward07{"step07", step07::forward<T>, true};
template <class T> const ForwardForm<T> wrong_forward{"a wrong step", wrong::forward<T>, true};
template <class T> const BackwardForm<T> wrong_backward{"a wrong step", wrong::backward_of_one<T>, true};

// What the chain tests say of a step with this mistake: without a mask, with one, and of its gradients
template <class T> Fault forward_fault_of(Mistake mistake) {
  wrong::mistake = mistake;
  const ForwardForm<T> before{"step04", step04::forward<T>, false};
  return over_problems<T>(false, [&](const Case<T>& x) { return forward_fault(wrong_forward<T>, before, x); });
}
template <class T> Fault causal_fault_of(Mistake mistake) {
  wrong::mistake = mistake;
  return over_problems<T>(true, [&](const Case<T>& x) { return causal_rows_fault(wrong_forward<T>, forward05<T>, x); });
}
template <class T> Fault backward_fault_of(GradientMistake mistake) {
  wrong::gradient_mistake = mistake;
  const BackwardForm<T> before{"step06", step06::backward_row_order<T>, false};
  return over_problems<T>(false, [&](const Case<T>& x) { return backward_fault(forward05<T>, wrong_backward<T>, before, x); });
}
template <class T> Fault causal_backward_fault_of(GradientMistake mistake) {
  wrong::gradient_mistake = mistake;
  const BackwardForm<T> unmasked{"step06", step06::backward<T>, false};
  return over_problems<T>(true, [&](const Case<T>& x) {
    return causal_gradients_fault(forward07<T>, wrong_backward<T>, forward05<T>, unmasked, x);
  });
}
// Of groups
template <class T> Fault group_fault_of(Mistake mistake, GradientMistake gradient_mistake, Index (*kv_head)(Index, Index, Index) = step08::kv_head) {
  wrong::mistake = mistake, wrong::gradient_mistake = gradient_mistake;
  return over_groups<T>({wrong::forward<T>, wrong::backward<T>, kv_head});
}

}  // namespace

// ---- Comparisons -----------------------------------------------------------------------------------------------------

TEST_CASE("a comparison fails on NaN and on infinity beside a finite number") {
  for (const Spoiled spoiled : {Spoiled::same, Spoiled::either}) {
    for (const double x : {not_a_number, inf, -inf})
      for (const double y : {0., 1., -1e300}) {
        CHECK_FALSE(Comparison{distance(x, y, spoiled), 1e308}.equal());
        CHECK_FALSE(Comparison{distance(y, x, spoiled), 1e308}.equal());
      }
    CHECK(distance(inf, inf, spoiled) == 0);
    CHECK(distance(-inf, -inf, spoiled) == 0);
    CHECK(distance(not_a_number, not_a_number, spoiled) == 0);
    CHECK(distance(1., 1.5, spoiled) == 0.5);
  }
  CHECK_FALSE(Comparison{distance(inf, -inf), inf}.equal());
  CHECK_FALSE(Comparison{distance(inf, not_a_number), inf}.equal());
  CHECK_FALSE(Comparison{distance(not_a_number, -inf), inf}.equal());
  CHECK(Comparison{distance(inf, not_a_number, Spoiled::either), 0}.equal());  // E5: of values that are not finite, which is not said
  CHECK(Comparison{distance(inf, -inf, Spoiled::either), 0}.equal());
}
TEST_CASE("a comparison is equal up to its budget and not beyond") {
  CHECK(Comparison{1, 1}.equal());
  CHECK(Comparison{0, 0}.equal());
  CHECK_FALSE(Comparison{1 + 1e-15, 1}.equal());
  CHECK_FALSE(Comparison{1e-300, 0}.equal());
  CHECK_FALSE(Comparison{not_a_number, 1}.equal());
  CHECK_FALSE(Comparison{0, not_a_number}.equal());
  CHECK(Comparison{1, 2}.share() == 0.5);
  CHECK(Comparison{0, 0}.share() == 0);
}
TEST_CASE("the largest distance is NaN wherever NaN stands and whatever comes after it") {
  std::vector<double> zeros(9, 0.), x = zeros;
  for (std::size_t i = 0; i < x.size(); ++i) {
    x = zeros;
    x[i] = not_a_number;
    CHECK(std::isnan(largest_distance<double>(x, zeros)));
    CHECK(std::isnan(largest_distance<double>(zeros, x)));
    x[(i + 1) % x.size()] = 1e30;
    CHECK(std::isnan(largest_distance<double>(x, zeros)));
    x[i] = -inf;
    CHECK(std::isnan(largest_distance<double>(x, zeros)));
  }
  CHECK(std::isnan(worse(not_a_number, 1.)));
  CHECK(std::isnan(worse(1., not_a_number)));
  CHECK(worse(1., 2.) == 2.);
}
TEST_CASE("the largest distance is NaN for another size") {
  const std::vector<double> x(6, 1.), y(5, 1.), none;
  CHECK(std::isnan(largest_distance<double>(x, y)));
  CHECK(std::isnan(largest_distance<double>(y, x)));
  CHECK(std::isnan(largest_distance<double>(x, none)));
  CHECK(largest_distance<double>(none, none) == 0);
  CHECK_FALSE(same_bits(x, y));
}
TEST_CASE("bits that differ in the sign of zero or in the last place are not the same") {
  const std::vector<double> x{1, 0};
  CHECK(same_bits(x, {1, 0}));
  CHECK_FALSE(same_bits(x, {1, -0.}));
  CHECK_FALSE(same_bits(x, {std::nextafter(1, 2), 0}));
}

// ---- The error budget ------------------------------------------------------------------------------------------------

TEMPLATE_TEST_CASE("outputs that nobody wrote are not equal", "", float, double) {
  Case<TestType> x({7, 5, 3, 2, 2, 2});
  for (const Result r : all_results) CHECK_FALSE(judge(x, true)[int(r)].equal());
  const Case<TestType> right = solved<TestType>({7, 5, 3, 2, 2, 2});
  CHECK(definition_fault("right", right, true) == "");
  for (const Result r : all_results)
    for (std::size_t e = 0; e < output(right, r).size(); ++e)
      for (const TestType spoiled : {nan_of<TestType>, infinity<TestType>, -infinity<TestType>}) {
        Case<TestType> y = right;
        output(y, r)[e] = spoiled;
        CHECK(definition_fault("spoiled", y, true) != "");
      }
}
TEMPLATE_TEST_CASE("an empty row must be 0 and its L minus infinity", "", float, double) {
  const Case<TestType> right = solved<TestType>({7, 5, 3, 2, 2, 2, true});  // rows 0 and 1 see no key
  CHECK(definition_fault("right", right, true) == "");
  CHECK(right.lse[0] == -infinity<TestType>);
  for (const TestType wrong : {infinity<TestType>, nan_of<TestType>, TestType(0), std::numeric_limits<TestType>::lowest()}) {
    Case<TestType> y = right;
    y.lse[1] = wrong;
    CHECK(definition_fault("wrong L", y, true) != "");
  }
  for (const TestType wrong : {nan_of<TestType>, TestType(1e-3), infinity<TestType>}) {
    Case<TestType> y = right;
    y.o[2] = wrong;
    CHECK(definition_fault("wrong O", y, true) != "");
  }
}
// An error of 1 part in 100 in the largest element of any one tensor, a constant, or two rows swapped: caught on every problem of
// useful size alone, not only on some.
TEMPLATE_TEST_CASE("the budget is small beside the results of every problem", "", float, double) {
  for (unsigned seed = 1; seed <= 100; ++seed) {
    CaseShape shape = random_shape(seed);
    shape.nq += 5, shape.nk += 5;
    const Case<TestType> right = solved<TestType>(shape, TestType(1) / std::sqrt(TestType(shape.d)), seed);
    INFO(describe(right));
    const Judged judged = judge(right, true);
    for (const Result r : all_results) {
      TestType largest(0);
      for (const TestType e : output(right, r))
        if (std::isfinite(e)) largest = std::max(largest, std::abs(e));
      CAPTURE(result_text[int(r)], judged[int(r)].budget, largest);
      CHECK(judged[int(r)].equal());
      CHECK(judged[int(r)].budget <= 0.005 * double(largest));
    }
    Case<TestType> constant = right;
    constant.o.assign(constant.o.size(), TestType(0));
    CHECK_FALSE(judge(constant, false)[int(Result::o)].equal());
    Case<TestType> swapped = right;
    std::swap_ranges(swapped.o.begin() + (shape.nq - 1) * shape.dv, swapped.o.end(), swapped.o.begin() + (shape.nq - 2) * shape.dv);
    CHECK_FALSE(judge(swapped, false)[int(Result::o)].equal());
  }
}

// Known fault C35 (Xilinx/mlir-air 1427): with V in [0.5, 1] and a tolerance of 0.5, a constant and random noise passed.
TEMPLATE_TEST_CASE("C35 a constant does not pass where all of V is alike", "", float, double) {
  using T = TestType;
  Case<T> x({8, 8, 4, 4, 4, 4}, T(0.5));
  const auto cube = [](long n, long add, long modulus, long shift) { return T((n * n * n + add) % modulus - shift) / 8; };
  for (long n = 0; n < 32; ++n) x.q[n] = cube(n, 2, 17, 8), x.k[n] = cube(n, 7, 23, 11), x.v[n] = T(0.75) + cube(n, 5, 29, 14) / 16;
  run(forward05<T>, x);
  const T row0[]{T(0.740832288788), T(0.748122398611), T(0.745801961365), T(0.722562733967)};
  const T row5[]{T(0.726027178181), T(0.754852687791), T(0.730068528993), T(0.752982184728)};
  for (int e = 0; e < 4; ++e) {
    CHECK(std::abs(x.o[e] - row0[e]) <= T(1e-6));
    CHECK(std::abs(x.o[20 + e] - row5[e]) <= T(1e-6));
  }
  const auto accepted = [&](auto change) {
    Case<T> y = x;
    change(y.o);
    return judge(y, false)[int(Result::o)].equal();
  };
  CHECK(accepted([](std::vector<T>&) {}));
  CHECK_FALSE(accepted([](std::vector<T>& o) { o.assign(32, T(0.75)); }));
  CHECK_FALSE(accepted([](std::vector<T>& o) { std::swap_ranges(o.begin() + 8, o.begin() + 12, o.begin() + 20); }));
  CHECK_FALSE(accepted([](std::vector<T>& o) { o[13] = T(0); }));
  CHECK_FALSE(accepted([](std::vector<T>& o) {
    for (T& e : o) e *= T(1.001);
  }));
  CHECK_FALSE(accepted([](std::vector<T>& o) {
    std::mt19937 random(1);
    for (T& e : o) e = T(std::uniform_real_distribution<double>(0.5, 1)(random));
  }));
}

// ---- Wrong steps -----------------------------------------------------------------------------------------------------

TEMPLATE_TEST_CASE("the wrong steps are right without their mistake", "", float, double) {
  CHECK(forward_fault_of<TestType>(Mistake::none) == "");
  CHECK(causal_fault_of<TestType>(Mistake::none) == "");
  CHECK(backward_fault_of<TestType>(GradientMistake::none) == "");
  CHECK(causal_backward_fault_of<TestType>(GradientMistake::none) == "");
  CHECK(group_fault_of<TestType>(Mistake::none, GradientMistake::none) == "");
}
TEMPLATE_TEST_CASE("a forward step with one mistake is caught", "", float, double) {
  CHECK(forward_fault_of<TestType>(Mistake::no_rescale) != "");
  CHECK(forward_fault_of<TestType>(Mistake::sum_not_rescaled) != "");
  CHECK(forward_fault_of<TestType>(Mistake::rescale_inverse) != "");
  CHECK(forward_fault_of<TestType>(Mistake::max_not_subtracted) != "");
  CHECK(forward_fault_of<TestType>(Mistake::max_of_tile) != "");
  CHECK(forward_fault_of<TestType>(Mistake::last_tile) != "");
  CHECK(forward_fault_of<TestType>(Mistake::no_scale) != "");
  CHECK(forward_fault_of<TestType>(Mistake::not_normalised) != "");
  CHECK(forward_fault_of<TestType>(Mistake::lse_without_max) != "");
  CHECK(forward_fault_of<TestType>(Mistake::rows_swapped) != "");
  CHECK(forward_fault_of<TestType>(Mistake::last_row) != "");
}
TEMPLATE_TEST_CASE("a causal step with one mistake is caught", "", float, double) {
  CHECK(causal_fault_of<TestType>(Mistake::top_left) != "");
  CHECK(causal_fault_of<TestType>(Mistake::one_key_more) != "");
  CHECK(causal_fault_of<TestType>(Mistake::last_tile) != "");
  CHECK(causal_fault_of<TestType>(Mistake::no_rescale) != "");
  CHECK(causal_fault_of<TestType>(Mistake::last_row) != "");
}
TEMPLATE_TEST_CASE("a backward step with one mistake is caught", "", float, double) {
  CHECK(backward_fault_of<TestType>(GradientMistake::no_delta) != "");
  CHECK(backward_fault_of<TestType>(GradientMistake::delta_of_dlse) != "");
  CHECK(backward_fault_of<TestType>(GradientMistake::no_scale) != "");
  CHECK(backward_fault_of<TestType>(GradientMistake::scale_twice) != "");
  CHECK(backward_fault_of<TestType>(GradientMistake::overwritten) != "");
  CHECK(backward_fault_of<TestType>(GradientMistake::dv_of_weights) != "");
  CHECK(backward_fault_of<TestType>(GradientMistake::row_tile_missing) != "");
  CHECK(causal_backward_fault_of<TestType>(GradientMistake::top_left) != "");
}
TEMPLATE_TEST_CASE("a grouped step with one mistake is caught", "", float, double) {
  CHECK(group_fault_of<TestType>(Mistake::none, GradientMistake::none, wrong::kv_head_modulo) != "");
  CHECK(group_fault_of<TestType>(Mistake::none, GradientMistake::none, wrong::kv_head_first) != "");
  CHECK(group_fault_of<TestType>(Mistake::none, GradientMistake::one_kv_head) != "");
  CHECK(group_fault_of<TestType>(Mistake::none, GradientMistake::top_left) != "");
  CHECK(group_fault_of<TestType>(Mistake::top_left, GradientMistake::none) != "");
}
TEMPLATE_TEST_CASE("steps that mistake where their rows lie are caught", "", float, double) {
  const auto pieces = [](const Case<TestType>& x) { return pieces_fault(wrong_forward<TestType>, x, x.br, true); };
  const auto strides = [](const Case<TestType>& x) { return strided_fault<TestType>(wrong_forward<TestType>, nullptr, x, true); };
  wrong::mistake = Mistake::none;
  CHECK(over_problems<TestType>(true, pieces) == "");
  CHECK(over_problems<TestType>(true, strides) == "");
  wrong::mistake = Mistake::last_row;
  CHECK(over_problems<TestType>(true, pieces) != "");
  wrong::mistake = Mistake::top_left;
  CHECK(over_problems<TestType>(true, pieces) != "");
  wrong::mistake = Mistake::rows_swapped;
  CHECK(over_problems<TestType>(true, strides) != "");
}
