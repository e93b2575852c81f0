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

TEST_CASE("step01 kernels in every order and landing") { all_schedules(1); }
TEST_CASE("step02 kernels in every order and landing") { all_schedules(2); }
TEST_CASE("step03 kernels in every order and landing") { all_schedules(3); }
TEST_CASE("step04 kernels in every order and landing") { all_schedules(4); }
TEST_CASE("step05 kernels in every order and landing") { all_schedules(5); }
TEST_CASE("step06 kernels in every order and landing") { all_schedules(6); }
TEST_CASE("step07 kernels in every order and landing") { all_schedules(7); }
TEST_CASE("step08 kernels in every order and landing") { all_schedules(8); }

}  // namespace flashsteps
