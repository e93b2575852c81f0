// Cases of known faults that take the CPU layer too long.
//   C33   grids of more than 65535 blocks, run
#include "tests/kernel_fault_case.hpp"

namespace flashsteps {
namespace {

TEST_CASE("C33 kernels: more than 65535 heads run - step01 step02 step03 step04 step05 step07 step08") {
  OnKernels on;
  for (const auto& [batch, heads] : TileSizes{{65536, 1}, {2, 40000}, {70000, 1}}) {
    INFO("batch " << batch << ", heads " << heads);
    const Problem<float> p = one_key(batch, heads);
    std::vector<double> lse;
    for (Index h = 0; h < batch * heads; ++h) {
      double s = 0;
      for (Index e = 0; e < 16; ++e) s += double(p.q.numbers[h * 16 + e]) * double(p.k.numbers[h * 16 + e]) / 4;
      lse.push_back(s);
    }
    on.each_kernel({rule_o<float>({1, 1, 16, 16})}, false, [&, batch = batch](const Step&, const Kernel& kernel, const gpu::Compiled& compiled) {
      Output<float> out(p);
      run_kernel(kernel, compiled, p, out);
      CHECK(same_bits(out.o.numbers, p.v.numbers));
      CHECK(error(out.lse.numbers, lse) <= on.tolerance);
      if (batch == 65536) CHECK(error_at(out.o.numbers, 65535 * 16, {-1.75, 1.25, -0.625, 0.625}) == 0);
    });
  }
  CHECK(on.runs > 0);
}

}  // namespace
}  // namespace flashsteps
