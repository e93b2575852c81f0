// Cases of known faults on every CUDA kernel that are about repeated runs (C31, C32) and about the tests themselves (C35).
//   C31   of atomics only dQ may depend on the schedule
//   C32   values and bits in many schedules; the tracer looks for hazards in kernels_traced.cpp
//   C35   a kernel with a mistake in its results is given to the tests of kernels.cpp, which must fail: those tests pass if they do
#include "tests/kernel_fault_case.hpp"
#include "tests/kernel_faults.hpp"

namespace flashsteps {
namespace {

/// Every schedule, again and again.
void in_twenty_schedules(const std::function<void()>& run) {
  int runs = 0;
  while (runs < 20)
    in_schedules(runs < 12 ? Schedules::all : Schedules::few, [&] {
      ++runs;
      run();
    });
}

TEST_CASE("C31 kernels: twenty runs are one and the same - step01 step02 step03 step04 step05 step06 step07 step08") {
  // The case has 512 rows of 64; 50 have several tiles, too, and 20 runs of them take no minute
  std::vector<Case<float>> heads = rule_o_heads<float>({50, 50, 20, 20}, 2, 2);
  OnKernels on;
  for (const bool backward : {false, true})
    on.each_kernel(heads, backward, [&](const Step&, const Kernel& kernel, const gpu::Compiled& compiled) {
      for (Case<float>& x : heads) {
        x.poison();
        Memory memory;
        if (backward) step07::forward(x.head(), memory);
      }
      std::vector<Case<float>> first;
      in_twenty_schedules([&] {
        run_heads(kernel, compiled, heads, {});
        if (first.empty()) first = heads;
        for (int h = 0; h < 2; ++h) {
          for (const auto tensor : {&Case<float>::o, &Case<float>::lse, &Case<float>::dk, &Case<float>::dv_})
            CHECK(same_bits(heads[h].*tensor, first[h].*tensor));
          if (!kernel.atomics) CHECK(same_bits(heads[h].dq, first[h].dq));
          double most = 0;
          for (const float x : first[h].dq) most = worse(double(std::abs(x)), most);
          if (kernel.atomics) CHECK(largest_distance<double>(heads[h].dq, first[h].dq) <= 1e-5 * most);
        }
      });
      CHECK(on.in_budget(first[1], backward));
    });
  CHECK(on.runs > 0);
}

TEST_CASE("C32 kernels: shared memory is refilled after its last use - step01 step02 step03 step04 step05 step06 step07 step08") {
  unsigned n = 0;
  const TileSizes lengths{{33, 32}, {65, 64}, {130, 32}}, lengths_causal{{33, 64}, {65, 32}, {130, 64}};  // and dimensions
  for (const Step* step : all_steps())
    for (const Kernel& kernel : step->kernels)
      for (const gpu::Element element : elements_of(kernel))
        for (const bool causal : {false, true})
          for (const auto& [s, d] : causal ? lengths_causal : lengths) {
            if (causal && !step->causal) continue;
            const std::vector<const gpu::Compiled*> tiles = tiles_for(kernel, element, d, d, n++);
            if (tiles.empty()) continue;
            const gpu::Compiled& compiled = *tiles.front();
            INFO(name_of(*step, kernel, compiled) << ", length " << s << ", dim " << d << (causal ? ", causal" : ""));
            const KernelShape shape{.nq = s, .nk = s, .d = d, .dv = d, .heads = 2, .kv_heads = step->gqa ? 1 : 2, .causal = causal};
            const Problem<float> p = kernel_problem(shape, element, kernel.backward);
            const Output<float> forward = kernel.backward ? forward_on_cpu(*step, p) : Output<float>(p);
            std::optional<Output<float>> first;
            in_schedules(s == 33 ? Schedules::all : Schedules::few, [&] {
              Output<float> out = forward;
              run_kernel(kernel, compiled, p, out);
              if (!first || kernel.atomics) hold(budget_complaints(judge(p, out, kernel.backward, all_rows(p), rounding(element)), kernel.backward));
              if (first && !kernel.atomics) CHECK(same_bits(out, *first, kernel.backward));
              if (!first) first = std::move(out);
            });
          }
}

TEST_CASE("C35 kernels: a comparison that can fail - step05") {
  Case<float> x = rule_o<float>({8, 8, 4, 4});
  for (float& v : x.v) v = 0.75f + v / 16;
  for (const gpu::Element element : {gpu::Element::float32, gpu::Element::half, gpu::Element::bfloat16}) {
    INFO("element " << int(element));
    REQUIRE(holds(element, {x}));
    const Problem<float> p = problem_of({x}, {}, false);
    const auto [o, lse] = x.define<double>();
    Output<float> right(p);
    for (std::size_t n = 0; n < o.size(); ++n) right.o.numbers[n] = rounded(element, float(o[n]));
    right.lse.numbers.assign(lse.begin(), lse.end());
    const auto accepted = [&](const Output<float>& out) {
      const Judgement<float> judgement = judge(p, out, false, all_rows(p), rounding(element));
      return judgement.of(Result::o).equal() && judgement.of(Result::lse).equal();
    };
    CHECK(accepted(right));
    CHECK_FALSE(accepted(Output<float>(p)));
    const auto refused = [&](auto change) {
      Output<float> wrong = right;
      change(wrong.o.numbers);
      return !accepted(wrong);
    };
    using Numbers = std::vector<float>;
    CHECK(refused([](Numbers& y) { y.assign(32, 0.75f); }));
    CHECK(refused([](Numbers& y) { std::swap_ranges(y.begin() + 8, y.begin() + 12, y.begin() + 20); }));
    for (const double bad : {0., spoiled, minus_infinity}) CHECK(refused([&](Numbers& y) { y[17] = float(bad); }));
    if (element == gpu::Element::float32)
      CHECK(refused([](Numbers& y) {
        for (float& z : y) z *= 1.001f;
      }));
    Output<float> wrong = right;
    wrong.lse.numbers[3] += element == gpu::Element::float32 ? 1e-4f : 0.1f;
    CHECK_FALSE(accepted(wrong));
  }
}

/// Step 05's kernel, whose results are changed afterwards.
Change change;
float amount;
const gpu::Compiled& honest() { return *find_compiled(step05::step().kernels.front().compiled, gpu::Element::float32, 20, 24); }
void start_changed(const gpu::Problem& x) {
  if (change != Change::nothing_written) honest().start(x);
  change_result(x, change, amount);
}
/// What kernel_complaints says of it.
Complaints complaints_of(Change how, float by = 0) {
  change = how, amount = by;
  gpu::Compiled compiled = honest();
  compiled.start = start_changed;
  return kernel_complaints(step05::step(), step05::step().kernels.front(), compiled, {.nq = 40, .nk = 50, .d = 20, .dv = 24, .heads = 2, .kv_heads = 2}, Schedules::few);
}

TEST_CASE("C35 kernels: what is right passes - step05") {
  hold(complaints_of(Change::none));
  hold(complaints_of(Change::o_off, 1e-8f));
}
TEST_CASE("C35 kernels: outputs that nobody wrote are found - step05") { CHECK_FALSE(complaints_of(Change::nothing_written).empty()); }
TEST_CASE("C35 kernels: one NaN in O is found - step05") { CHECK_FALSE(complaints_of(Change::o_off, nan_of<float>).empty()); }
TEST_CASE("C35 kernels: one NaN in L is found - step05") { CHECK_FALSE(complaints_of(Change::lse_off, nan_of<float>).empty()); }
TEST_CASE("C35 kernels: infinity in L is found - step05") { CHECK_FALSE(complaints_of(Change::lse_off, -infinity<float>).empty()); }
TEST_CASE("C35 kernels: one element of O off by 1e-4 is found - step05") { CHECK_FALSE(complaints_of(Change::o_off, 1e-4f).empty()); }
TEST_CASE("C35 kernels: one element of L off by 1e-4 is found - step05") { CHECK_FALSE(complaints_of(Change::lse_off, 1e-4f).empty()); }
TEST_CASE("C35 kernels: an element of O that is not written is found - step05") { CHECK_FALSE(complaints_of(Change::o_unwritten).empty()); }
TEST_CASE("C35 kernels: bits that change from run to run are found - step05") { CHECK_FALSE(complaints_of(Change::o_from_run_to_run, 1e-7f).empty()); }
TEST_CASE("C35 kernels: another shape is found - step05") {
  const Problem<float> p = kernel_problem({.nq = 5, .nk = 7, .d = 3, .dv = 2}, gpu::Element::float32, false);
  const Output<float> out = forward_on_cpu(step05::step(), p);
  Output<float> wrong = out;
  wrong.o = {1, 1, 2, 5, Layout::bhsd, 0.0f};
  wrong.o.numbers = out.o.numbers;
  CHECK_FALSE(distance_complaints("another shape", wrong, out, judge(p, out, false, all_rows(p)), false).empty());
}

}  // namespace
}  // namespace flashsteps
