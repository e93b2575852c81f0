// Every CUDA kernel equals the definition, its CPU version, and the kernel of the step before.
#include "tests/kernel_case.hpp"

namespace flashsteps {
namespace {

const Step& step_of(int number) { return *all_steps()[std::size_t(number) - 1]; }

/// Calls f(kernel, compiled, shape, seed): each shape with one of the compiled tiles in turn.
template <class F> void for_each_kernel(int number, const std::vector<KernelShape>& shapes, F f) {
  REQUIRE_FALSE(step_of(number).kernels.empty());
  for (const Kernel& kernel : step_of(number).kernels)
    for (const gpu::Element element : elements_of(kernel)) {
      unsigned n = 0;
      for (const KernelShape& shape : shapes) {
        const std::vector<const gpu::Compiled*> compiled = compiled_for(kernel, element, shape.d, shape.dv);
        INFO(step_of(number).name << ", " << kernel.name << ": no tile for " << shape);
        if (compiled.empty() && gpu::is_for_gpu()) {
          WARN("this card cannot run it: " << step_of(number).name << ", " << kernel.name << ", " << shape);
          continue;
        }
        REQUIRE_FALSE(compiled.empty());
        f(kernel, *compiled[n % compiled.size()], shape, n + 1);
        ++n;
      }
    }
}
void many_shapes(int number) {
  const std::vector<KernelShape> shapes = kernel_shapes(step_of(number));
  REQUIRE(shapes.size() >= 64);
  for_each_kernel(number, shapes, [&](const Kernel& kernel, const gpu::Compiled& compiled, const KernelShape& shape, unsigned seed) {
    check_kernel(step_of(number), kernel, compiled, shape, Schedules::few, seed);
  });
}
void all_schedules(int number) {
  for_each_kernel(number, few_kernel_shapes(step_of(number)), [&](const Kernel& kernel, const gpu::Compiled& compiled, const KernelShape& shape, unsigned seed) {
    check_kernel(step_of(number), kernel, compiled, shape, Schedules::all, seed);
  });
}

}  // namespace

TEST_CASE("step01 kernels equal the definition and the CPU version") { many_shapes(1); }
TEST_CASE("step02 kernels equal the definition, the CPU version and the kernel of step 01") { many_shapes(2); }
TEST_CASE("step03 kernels equal the definition, the CPU version and the kernel of step 02") { many_shapes(3); }
TEST_CASE("step04 kernels equal the definition, the CPU version and the kernel of step 03") { many_shapes(4); }
TEST_CASE("step05 kernels equal the definition, the CPU version and the kernel of step 04") { many_shapes(5); }
TEST_CASE("step06 kernels equal the definition and the CPU version") { many_shapes(6); }
TEST_CASE("step07 kernels equal the definition, the CPU version and the kernels of steps 05 and 06") { many_shapes(7); }
TEST_CASE("step08 kernels equal the definition, the CPU version and the kernels of step 07") { many_shapes(8); }

TEST_CASE("step01 step02 step03 step04 step05 step06 step07 step08 kernels are there for every dimension, and fit on chip") {
  for (const Step* step : all_steps()) {
    CHECK(std::any_of(step->kernels.begin(), step->kernels.end(), [](const Kernel& k) { return k.tensor_cores; }) ==
          (step->number == 4 || step->number == 5 || step->number >= 7));
    CHECK(std::any_of(step->kernels.begin(), step->kernels.end(), [](const Kernel& k) { return k.backward; }) == (step->number >= 6));
    for (const Kernel& kernel : step->kernels)
      for (const gpu::Element element : elements_of(kernel)) {
        INFO(step->name << ", " << kernel.name << ", element " << int(element));
        for (const Index dim : {1, 32, 33, 64, 65, 128, 129, 256}) {
          const gpu::Compiled* chosen = find_compiled(kernel.compiled, element, dim, 1);
          REQUIRE(chosen != nullptr);
          CHECK(chosen == find_compiled(kernel.compiled, element, 1, dim));
          if (!kernel.tensor_cores && dim <= 128) CHECK(chosen->shared_bytes <= 64 * 1024);  // a T4 has that much a block
        }
        CHECK(find_compiled(kernel.compiled, element, 257, 1) == nullptr);
        for (const gpu::Compiled& c : kernel.compiled) {
          CHECK(c.shared_bytes <= 99 * 1024);  // GeForce 30 and newer
          CHECK((c.threads % 32 == 0 && c.threads <= 1024));
          CHECK(c.capability == (kernel.tensor_cores ? 80 : 75));
        }
      }
  }
}

TEST_CASE("step01 kernels in every order and landing") { all_schedules(1); }
TEST_CASE("step02 kernels in every order and landing") { all_schedules(2); }
TEST_CASE("step03 kernels in every order and landing") { all_schedules(3); }
TEST_CASE("step04 kernels in every order and landing") { all_schedules(4); }
TEST_CASE("step05 kernels in every order and landing") { all_schedules(5); }
TEST_CASE("step06 kernels in every order and landing") { all_schedules(6); }
TEST_CASE("step07 kernels in every order and landing") { all_schedules(7); }
TEST_CASE("step08 kernels in every order and landing") { all_schedules(8); }

}  // namespace flashsteps
