// What the tests of known faults do on the device itself.
#include "common/cuda/buffer.hpp"
#include "common/cuda/kernel.hpp"
#include "tests/kernel_faults.hpp"

namespace flashsteps {
namespace {

__global__ void add_kernel(float* x, float amount) {
  if (threadIdx.x == 0) *x += amount;
}
__global__ void unwrite_kernel(float* x) {
  if (threadIdx.x == 0) *reinterpret_cast<unsigned*>(x) = 0xffffffffu;
}
__global__ void offsets_kernel(const gpu::Tensor t, int b, int h, int i, int x, long long* out) {
  const auto m = gpu::matrix<float>(t, b, h);
  if (threadIdx.x != 0) return;
  out[0] = m.row(i) - static_cast<float*>(t.data);
  out[1] = &m(i, x) - static_cast<float*>(t.data);
}

}  // namespace

void change_result(const gpu::Problem& x, Change change, float amount) {
  static int runs = 0;
  float* o = static_cast<float*>(x.o.data) + 5;
  switch (change) {
    case Change::none:
    case Change::nothing_written: return;
    case Change::o_off: return gpu::launch(add_kernel, 1, 32, 0, o, amount);
    case Change::lse_off: return gpu::launch(add_kernel, 1, 32, 0, static_cast<float*>(x.lse.data) + 5, amount);
    case Change::o_unwritten: return gpu::launch(unwrite_kernel, 1, 32, 0, o);
    case Change::o_from_run_to_run: return gpu::launch(add_kernel, 1, 32, 0, o, float(++runs) * amount);
  }
}

Offsets offsets_on_device(const gpu::Tensor& t, int b, int h, int i, int x) {
  gpu::Buffer<long long> out(2, "offsets");
  gpu::launch(offsets_kernel, 1, 32, 0, t, b, h, i, x, out.data());
  gpu::synchronize();
  const std::vector<long long> offsets = out.download();
  return {offsets[0], offsets[1]};
}

}  // namespace flashsteps
