// The chain in 50 digits: every step equals the one before it, and the definition, to 1e-45. No rounding hides a wrong derivation.
#include "tests/catch.hpp"
#include "tests/chain.hpp"
#include "tests/fifty.hpp"

using namespace flashsteps;

namespace {

const ForwardForm<Fifty> standard{"step01 standard", step01::standard<Fifty>, false};
const ForwardForm<Fifty> three_sweeps{"step01 three sweeps", step01::three_sweeps<Fifty>, false};
const ForwardForm<Fifty> two_sweeps{"step02", step02::two_sweeps<Fifty>, false};
const ForwardForm<Fifty> one_sweep{"step03", step03::one_sweep<Fifty>, false};
const ForwardForm<Fifty> normalised{"step03 normalised", step03::one_sweep_normalised<Fifty>, false};
const ForwardForm<Fifty> fa1{"step04", step04::forward<Fifty>, false};
const ForwardForm<Fifty> fa2{"step05", step05::forward<Fifty>, false};
const ForwardForm<Fifty> causal{"step07", step07::forward<Fifty>, true};
const ForwardForm<Fifty> gqa{"step08", step08::forward<Fifty>, true};

BackwardForm<Fifty> backward_form(std::string_view name) {
  for (const BackwardForm<Fifty>& form : backward_forms<Fifty>())
    if (form.name == name) return form;
  throw std::invalid_argument(std::string(name));
}

Fault over_forward(const ForwardForm<Fifty>& step, const ForwardForm<Fifty>& before) {
  return over_problems<Fifty>(false, [&](const Case<Fifty>& x) { return forward_fault(step, before, x); });
}
Fault over_backward(std::string_view step, std::string_view before) {
  return over_problems<Fifty>(false, [step = backward_form(step), before = backward_form(before)](const Case<Fifty>& x) {
    return backward_fault(fa2, step, before, x);
  });
}

}  // namespace

TEST_CASE("step01 three sweeps equal standard attention in 50 digits") { CHECK(over_forward(three_sweeps, standard) == ""); }
TEST_CASE("step02 equals step01 in 50 digits") { CHECK(over_forward(two_sweeps, three_sweeps) == ""); }
TEST_CASE("step03 equals step02 in 50 digits") { CHECK(over_forward(one_sweep, two_sweeps) == ""); }
TEST_CASE("step03 normalised equals step03 in 50 digits") { CHECK(over_forward(normalised, one_sweep) == ""); }
TEST_CASE("step04 equals step03 in 50 digits") { CHECK(over_forward(fa1, one_sweep) == ""); }
TEST_CASE("step05 equals step04 in 50 digits") { CHECK(over_forward(fa2, fa1) == ""); }
TEST_CASE("step06 column order equals the standard backward pass in 50 digits") {
  CHECK(over_backward("step06 column order", "step06 standard") == "");
}
TEST_CASE("step06 row order equals column order in 50 digits") { CHECK(over_backward("step06 row order", "step06 column order") == ""); }
TEST_CASE("step07 without a mask is step05 and step06 in 50 digits") {
  const auto step07 = backward_form("step07 causal"), step06 = backward_form("step06 column order");
  CHECK(over_problems<Fifty>(false, [](const Case<Fifty>& x) { return forward_bits_fault(causal, fa2, x); }) == "");
  CHECK(over_problems<Fifty>(false, [&](const Case<Fifty>& x) { return backward_bits_fault(fa2, step07, step06, x); }) == "");
}
TEST_CASE("step07 causal is row by row step05 and step06 on the keys that the row sees in 50 digits") {
  const auto step07 = backward_form("step07 causal"), step06 = backward_form("step06 column order");
  CHECK(over_problems<Fifty>(true, [](const Case<Fifty>& x) { return causal_rows_fault(causal, fa2, x); }) == "");
  CHECK(over_problems<Fifty>(true, [&](const Case<Fifty>& x) { return causal_gradients_fault(causal, step07, fa2, step06, x); }) == "");
}
TEST_CASE("step08 with groups of one is step07 in 50 digits") {
  const auto step08 = backward_form("step08 grouped"), step07 = backward_form("step07 causal");
  for (const bool mask : {false, true}) {
    CHECK(over_problems<Fifty>(mask, [](const Case<Fifty>& x) { return forward_bits_fault(gqa, causal, x); }) == "");
    CHECK(over_problems<Fifty>(mask, [&](const Case<Fifty>& x) { return backward_bits_fault(causal, step08, step07, x); }) == "");
  }
}
TEST_CASE("step08 equals step07 with K and V repeated and gradients summed over the group in 50 digits") {
  CHECK(over_groups(grouped<Fifty>()) == "");
}
