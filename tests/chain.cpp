// The chain: every step equals the one before it, in float and double within the error budget or bit for bit, on seeded problems and
// on shapes that are always among them. Each comparison also holds the step to the definition.
#include "tests/catch.hpp"
#include "tests/chain.hpp"

using namespace flashsteps;

namespace {

template <class T> const ForwardForm<T> standard{"step01 standard", step01::standard<T>, false};
template <class T> const ForwardForm<T> three_sweeps{"step01 three sweeps", step01::three_sweeps<T>, false};
template <class T> const ForwardForm<T> two_sweeps{"step02", step02::two_sweeps<T>, false};
template <class T> const ForwardForm<T> one_sweep{"step03", step03::one_sweep<T>, false};
template <class T> const ForwardForm<T> normalised{"step03 normalised", step03::one_sweep_normalised<T>, false};
template <class T> const ForwardForm<T> fa1{"step04", step04::forward<T>, false};
template <class T> const ForwardForm<T> fa2{"step05", step05::forward<T>, false};
template <class T> const ForwardForm<T> causal{"step07", step07::forward<T>, true};
template <class T> const ForwardForm<T> gqa{"step08", step08::forward<T>, true};

template <class T> BackwardForm<T> backward_form(std::string_view name) {
  for (const BackwardForm<T>& form : backward_forms<T>())
    if (form.name == name) return form;
  throw std::invalid_argument(std::string(name));
}

template <class T> Fault over_forward(const ForwardForm<T>& step, const ForwardForm<T>& before) {
  return over_problems<T>(false, [&](const Case<T>& x) { return forward_fault(step, before, x); });
}
template <class T> Fault over_backward(std::string_view step, std::string_view before) {
  return over_problems<T>(false, [step = backward_form<T>(step), before = backward_form<T>(before)](const Case<T>& x) {
    return backward_fault(fa2<T>, step, before, x);
  });
}

}  // namespace

TEMPLATE_TEST_CASE("step01 three sweeps equal standard attention within the budget", "", float, double) {
  CHECK(over_forward(three_sweeps<TestType>, standard<TestType>) == "");
}
TEMPLATE_TEST_CASE("step02 equals step01 within the budget", "", float, double) {
  CHECK(over_forward(two_sweeps<TestType>, standard<TestType>) == "");
  CHECK(over_forward(two_sweeps<TestType>, three_sweeps<TestType>) == "");
}
TEMPLATE_TEST_CASE("step03 equals step02 within the budget", "", float, double) {
  CHECK(over_forward(one_sweep<TestType>, two_sweeps<TestType>) == "");
}
TEMPLATE_TEST_CASE("step03 normalised equals step02 and step03 within the budget", "", float, double) {
  CHECK(over_forward(normalised<TestType>, two_sweeps<TestType>) == "");
  CHECK(over_forward(normalised<TestType>, one_sweep<TestType>) == "");
}
TEMPLATE_TEST_CASE("step04 equals step03 within the budget", "", float, double) {
  CHECK(over_forward(fa1<TestType>, one_sweep<TestType>) == "");
}
TEMPLATE_TEST_CASE("step05 equals step04 within the budget", "", float, double) {
  CHECK(over_forward(fa2<TestType>, fa1<TestType>) == "");
}
TEMPLATE_TEST_CASE("step06 column order equals the standard backward pass within the budget", "", float, double) {
  CHECK(over_backward<TestType>("step06 column order", "step06 standard") == "");
}
TEMPLATE_TEST_CASE("step06 row order equals the standard backward pass and column order within the budget", "", float, double) {
  CHECK(over_backward<TestType>("step06 row order", "step06 standard") == "");
  CHECK(over_backward<TestType>("step06 row order", "step06 column order") == "");
}
TEMPLATE_TEST_CASE("step07 without a mask is step05 bit for bit", "", float, double) {
  CHECK(over_problems<TestType>(false, [](const Case<TestType>& x) { return forward_bits_fault(causal<TestType>, fa2<TestType>, x); }) == "");
}
TEMPLATE_TEST_CASE("step07 backward without a mask is step06 bit for bit", "", float, double) {
  const auto step07 = backward_form<TestType>("step07 causal"), step06 = backward_form<TestType>("step06 column order");
  CHECK(over_problems<TestType>(false, [&](const Case<TestType>& x) { return backward_bits_fault(fa2<TestType>, step07, step06, x); }) == "");
}
TEMPLATE_TEST_CASE("step07 causal is row by row step05 on the keys that the row sees bit for bit", "", float, double) {
  CHECK(over_problems<TestType>(true, [](const Case<TestType>& x) { return causal_rows_fault(causal<TestType>, fa2<TestType>, x); }) == "");
}
TEMPLATE_TEST_CASE("step07 causal gradients are the sums over rows of step06 within the budget", "", float, double) {
  const auto step07 = backward_form<TestType>("step07 causal"), step06 = backward_form<TestType>("step06 column order");
  CHECK(over_problems<TestType>(true, [&](const Case<TestType>& x) {
          return causal_gradients_fault(causal<TestType>, step07, fa2<TestType>, step06, x);
        }) == "");
}
TEMPLATE_TEST_CASE("step08 with groups of one is step07 bit for bit", "", float, double) {
  const auto step08 = backward_form<TestType>("step08 grouped"), step07 = backward_form<TestType>("step07 causal");
  for (const bool mask : {false, true}) {
    CHECK(over_problems<TestType>(mask, [](const Case<TestType>& x) { return forward_bits_fault(gqa<TestType>, causal<TestType>, x); }) == "");
    CHECK(over_problems<TestType>(mask, [&](const Case<TestType>& x) { return backward_bits_fault(causal<TestType>, step08, step07, x); }) == "");
  }
}
TEMPLATE_TEST_CASE("step08 equals step07 with K and V repeated and gradients summed over the group", "", float, double) {
  CHECK(over_groups(grouped<TestType>()) == "");
}
TEST_CASE("step08 finds the head of K and V by its index") {
  for (Index kv_heads = 1; kv_heads <= 6; ++kv_heads)
    for (Index g = 1; g <= 5; ++g)
      for (Index shared = 0; shared < kv_heads; ++shared)
        for (Index copy = 0; copy < g; ++copy) CHECK(step08::kv_head(shared * g + copy, kv_heads * g, kv_heads) == shared);
}

// Rows are independent: row tiles that are computed one by one, by any thread, give the bits of the whole. Standard attention leaves
// the grouping of its sums to the library, whose bits may depend on how many rows there are.
TEMPLATE_TEST_CASE("step01 step02 step03 step04 step05 step07 step08 compute rows independently", "", float, double) {
  for (const ForwardForm<TestType>& form : forward_forms<TestType>())
    for (const bool mask : {false, true})
      if (form.masks || !mask) {
        const bool library = form.run == step01::standard<TestType>;
        INFO(form.name);
        CHECK(over_problems<TestType>(mask, [&](const Case<TestType>& x) {
                const Fault fault = pieces_fault(form, x, x.br, !library);
                return fault.empty() ? pieces_fault(form, x, 1 + x.seed % 7, !library) : fault;
              }) == "");
      }
}
// Tiles of other heights and the bits stay: Br cuts the rows, and rows are independent.
TEMPLATE_TEST_CASE("step04 step05 step07 step08 give the same bits for every tile height", "", float, double) {
  for (const ForwardForm<TestType>& form : {fa1<TestType>, fa2<TestType>, causal<TestType>, gqa<TestType>})
    for (const bool mask : {false, true})
      if (form.masks || !mask) {
        INFO(form.name);
        CHECK(over_problems<TestType>(mask, [&](Case<TestType> x) {
                Case<TestType> y = x;
                y.br = 1 + x.seed % 19;
                run(form, x), run(form, y);
                return identity_fault("br " + std::to_string(y.br), x, y, forward_results);
              }) == "");
      }
}
TEMPLATE_TEST_CASE("step01 step02 step03 step04 step05 step07 step08 read and write through strides", "", float, double) {
  for (const ForwardForm<TestType>& form : forward_forms<TestType>())
    for (const bool mask : {false, true})
      if (form.masks || !mask) {
        INFO(form.name);
        CHECK(over_problems<TestType>(mask, [&](const Case<TestType>& x) {
                return strided_fault<TestType>(form, nullptr, x, form.run != step01::standard<TestType>);
              }) == "");
      }
}
TEMPLATE_TEST_CASE("step06 step07 step08 backward passes read and write through strides", "", float, double) {
  const auto forms = backward_forms<TestType>();
  for (const BackwardForm<TestType>& form : forms)
    for (const bool mask : {false, true})
      if (form.masks || !mask) {
        INFO(form.name);
        CHECK(over_problems<TestType>(mask, [&](const Case<TestType>& x) {
                return strided_fault<TestType>(causal<TestType>, &form, x, form.name != std::string_view("step06 standard"));
              }) == "");
      }
}
