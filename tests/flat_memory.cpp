// The memory that a step takes besides its inputs and outputs does not grow with N, but for what it states: m and l of step 04, D of the
// backward passes. Every allocation of this program is counted.
#include "tests/case.hpp"
#include "tests/catch.hpp"
#include "tests/heap.hpp"
#include "tests/steps.hpp"

namespace flashsteps {
namespace {

CaseShape square(Index n, bool causal) { return {n, n, 32, 32, 64, 64, causal}; }
constexpr Index small_n = 256, large_n = 1024;
/// The allocator rounds sizes up, a little differently from size to size.
constexpr long slack = 512;

}  // namespace

TEST_CASE("extra memory is flat in N - step03 step04 step05 step07 step08 forward") {
  for (const ForwardForm<float>& form : forward_forms<float>()) {
    const std::string name = form.name;
    if (name.substr(0, 6) < "step03") continue;
    long extra[2];
    for (const bool large : {false, true}) {
      Case<float> c(square(large ? large_n : small_n, form.masks));
      extra[large] = extra_bytes([&] {
        Memory memory;
        form.run(c.head(), memory);
      });
    }
    const long stated = name.substr(0, 6) == "step04" ? 2 * (large_n - small_n) * long(sizeof(float)) : 0;  // m and l
    CAPTURE(name, extra[0], extra[1], stated);
    CHECK(extra[0] > 0);
    CHECK(extra[1] - extra[0] <= stated + slack);
  }
}

TEST_CASE("extra memory is flat in N - step06 step07 step08 backward") {
  for (const BackwardForm<float>& form : backward_forms<float>()) {
    const std::string name = form.name;
    long extra[2];
    for (const bool large : {false, true}) {
      Case<float> c(square(large ? large_n : small_n, form.masks));
      Memory forward;
      step07::forward(c.head(), forward);
      extra[large] = extra_bytes([&] {
        Memory memory;
        form.run(c.head(), c.gradients(), memory);
      });
    }
    CAPTURE(name, extra[0], extra[1]);
    if (name == "step06 standard") CHECK(extra[1] >= 3 * large_n * large_n * long(sizeof(float)));  // P, dP and dS: what the others do without
    else CHECK(extra[1] - extra[0] <= (large_n - small_n) * long(sizeof(float)) + slack);           // D
  }
}

}  // namespace flashsteps
