// Cases of known faults that need the CPU layer: what a device could hold only just, and limits that a test can set.
//   C19   (a) entries that lie 2^31 elements apart, each a few elements of memory that is reserved and for the most part never touched;
//         (b) the offsets themselves
//   C33   so many blocks take the layer minutes. That a kernel's first grid is accepted shows in what is refused instead: stacks of 2^60 bytes
//   C34   a device of 48 KB refuses what asks for more, leaves the outputs alone, and goes on
#include <sys/mman.h>
#include "tests/cuda_layer_schedules.hpp"
#include "tests/kernel_fault_case.hpp"
#include "tests/kernel_faults.hpp"

namespace flashsteps {
namespace {

using cuda_layer::contains;
using cuda_layer::message_of;
using cuda_layer::Restore;

TEST_CASE("C19 kernels: offsets are 64 bits wide - step01 step02 step03 step04 step05 step06 step07 step08") {
  float begin = 0;
  const std::int64_t s = 128, d = 64, heads = 16;
  const auto offsets = [&](std::int64_t batch, std::int64_t head, std::int64_t row, int b, int h, int i, int x) {
    const Offsets found = offsets_on_device({&begin, batch, head, row}, b, h, i, x);
    CHECK(found.element - found.row == x);
    return found.row;
  };
  CHECK(offsets(heads * s * d, s * d, d, 16384, 0, 0, 3) == 2147483648);
  CHECK(offsets(heads * s * d, s * d, d, 16383, 15, 127, 63) == 2147483648 - d);
  CHECK(offsets(heads * s * d, s * d, d, 16399, 15, 127, 63) == 16400 * heads * s * d - d);
  CHECK(offsets(1, std::int64_t(1) << 31, 1, 0, 1, 0, 0) == 2147483648);
  CHECK(offsets(1, 1, 65536, 0, 0, 32768, 0) == 2147483648);
  CHECK(offsets(1, 1, std::int64_t(1) << 40, 0, 0, 3, 5) == 3 * (std::int64_t(1) << 40));
}

/// Address space of which only what is touched becomes memory.
struct Reserved {
  std::size_t bytes;
  void* data;
  explicit Reserved(std::size_t n) : bytes(n), data(mmap(nullptr, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {}
  ~Reserved() {
    if (data != MAP_FAILED) munmap(data, bytes);
  }
};

/// A tensor in such memory, whose entries, heads and rows are as far apart as somebody wants.
struct FarTensor {
  gpu::Tensor& place;
  gpu::Element element;

  template <class F> void each(const Tensor<float>& like, F f) const {
    std::size_t n = 0;
    for (std::int64_t b = 0; b < like.batch; ++b)
      for (std::int64_t h = 0; h < like.heads; ++h)
        for (std::int64_t i = 0; i < like.rows; ++i)
          for (std::int64_t e = 0; e < like.cols; ++e) f(b * place.batch + h * place.head + i * place.row + e, n++);
  }
  void write(const Tensor<float>& x) const {
    each(x, [&](std::int64_t at, std::size_t n) {
      if (element == gpu::Element::float32) static_cast<float*>(place.data)[at] = x.numbers[n];
      else static_cast<std::uint16_t*>(place.data)[at] = to_bits(element, x.numbers[n]);
    });
  }
  double distance_to(const Tensor<float>& x) const {
    std::vector<float> y(x.numbers.size());
    each(x, [&](std::int64_t at, std::size_t n) {
      y[n] = element == gpu::Element::float32 ? static_cast<float*>(place.data)[at] : from_bits(element, static_cast<std::uint16_t*>(place.data)[at]);
    });
    return largest_distance<double>(y, x.numbers);
  }
};

TEST_CASE("C19 kernels: entries 2^31 elements apart - step01 step02 step03 step04 step05 step06 step07 step08") {
  // [2, 2, 3 queries or 5 keys, 4]. Once batch entries and heads are far apart, once rows: 2^31 elements are behind b = 1, or i = 2
  struct Apart { std::int64_t batch, head, row; };
  const std::int64_t far = (std::int64_t(1) << 31) + 64;
  const Reserved region(5 * std::size_t(far / 2 + 64) * sizeof(float) + 9 * 8192);
  REQUIRE(region.data != MAP_FAILED);
  const KernelShape shape{.nq = 3, .nk = 5, .d = 4, .dv = 4, .batch = 2, .heads = 2, .kv_heads = 2};
  OnKernels on;
  on.exact = false, on.in_turn = true;
  for (const Apart& apart : {Apart{far + far / 2, far / 2 + 32, 4}, Apart{256, 128, far / 2 + 16}})
    for (const bool backward : {false, true})
      on.each_kernel({Case<float>({3, 5, 4, 4})}, backward, [&](const Step& step, const Kernel& kernel, const gpu::Compiled& compiled) {
        INFO("batch entries " << apart.batch << ", heads " << apart.head << ", rows " << apart.row << " elements apart");
        const Problem<float> p = kernel_problem(shape, compiled.element, backward);
        const Output<float> given = backward ? forward_on_cpu(step, p) : Output<float>(p);
        Output<float> right = given;
        run_kernel(kernel, compiled, p, right);

        gpu::Problem x = DeviceProblem(p, compiled.element).problem();  // the sizes
        char* next = static_cast<char*>(region.data);
        const auto lay = [&](gpu::Tensor& t, const Tensor<float>& numbers, gpu::Element element) {
          t = {next, apart.batch, apart.head, apart.row};
          next += 8192;  // what is not far lies within
          FarTensor{t, element}.write(numbers);
        };
        const gpu::Element float32 = gpu::Element::float32;
        lay(x.q, p.q, compiled.element), lay(x.k, p.k, compiled.element), lay(x.v, p.v, compiled.element);
        lay(x.o, given.o, compiled.element), lay(x.lse, given.lse, float32);
        if (backward) lay(x.d_o, p.d_o, float32), lay(x.dq, given.dq, float32), lay(x.dk, given.dk, float32), lay(x.dv, given.dv, float32);
        compiled.start(x);
        const double most = kernel.atomics ? 1e-5 : 0;
        if (backward) {
          CHECK(FarTensor{x.dq, float32}.distance_to(right.dq) <= most);
          CHECK(FarTensor{x.dk, float32}.distance_to(right.dk) <= most);
          CHECK(FarTensor{x.dv, float32}.distance_to(right.dv) <= most);
        } else {
          CHECK(FarTensor{x.o, compiled.element}.distance_to(right.o) <= most);
          CHECK(FarTensor{x.lse, float32}.distance_to(right.lse) <= most);
        }
      });
  CHECK(on.runs > 0);
}

TEST_CASE("C33 kernels: more than 65535 heads - step01 step02 step03 step04 step05 step06 step07 step08") {
  OnKernels on;
  on.exact = false, on.in_turn = true;
  for (const auto& [batch, heads] : TileSizes{{65536, 1}, {2, 40000}, {70000, 1}}) {
    INFO("batch " << batch << ", heads " << heads);
    Problem<float> p = one_key(batch, heads);
    for (const bool backward : {false, true}) {
      p.gradients = backward;
      on.each_kernel({Case<float>({1, 1, 16, 16})}, backward, [&](const Step&, const Kernel&, const gpu::Compiled& compiled) {
        const Restore restore;
        const DeviceProblem device(p, compiled.element);
        cuda_layer::settings().stack_bytes = std::size_t(1) << 60;
        CHECK(message_of([&] { compiled.start(device.problem()); }) == std::bad_alloc().what());
      });
    }
  }
  CHECK(on.runs > 0);
}

TEST_CASE("C34 kernels: more shared memory than there is - step01 step02 step03 step04 step05 step06 step07 step08") {
  OnKernels on;
  on.exact = false;
  int n = 0;
  for (const Index d : {64, 128, 256}) {
    Case<float> x({128, 128, d, d}, 0.125f);
    std::fill(x.q.begin(), x.q.end(), 0.f);
    for (Index e = 0; e < x.nk * d; ++e) x.k[e] = 1, x.v[e] = float(e % d);
    for (const bool backward : {false, true})
      // A head of one row, so that all tiles are asked for
      on.each_kernel({Case<float>({1, 1, d, d})}, backward, [&](const Step&, const Kernel& kernel, const gpu::Compiled& compiled) {
        const Problem<float> p = problem_of({x}, {}, backward);
        const auto right = [&] {
          Output<float> out(p);
          run_kernel(kernel, compiled, p, out);
          double most = 0;
          for (Index e = 0; e < 128 * d; ++e) most = worse(std::abs(double(out.o.numbers[e]) - double(e % d)), most);
          return most <= on.tolerance * double(d);
        };
        for (const std::size_t has : {std::size_t(48 * 1024), compiled.shared_bytes - 1}) {
          if (compiled.shared_bytes <= has) continue;
          DeviceProblem device(p, compiled.element);
          Output<float> before(p), after(p);
          before.o.numbers.assign(before.o.numbers.size(), 12345), before.lse.numbers.assign(128, 12345);
          if (compiled.element == gpu::Element::float32) device.upload_forward(before);
          const std::string refusal = message_of([&] {
            const Restore restore;
            cuda_layer::settings().shared_bytes = has;
            compiled.start(device.problem());
          });
          CHECK(contains(refusal, std::to_string(compiled.shared_bytes) + " bytes of shared memory a block; the device has " + std::to_string(has)));
          device.download_forward(after);
          if (compiled.element == gpu::Element::float32) CHECK(same_bits(after.o.numbers, before.o.numbers));
        }
        if (!backward && n++ % 3 == 0) CHECK(right());
      });
  }
  // Nothing is compiled for more than 256: a program says so
  for (const Step* step : all_steps())
    for (const Kernel& kernel : step->kernels)
      for (const Index d : {512, 1024}) CHECK(compiled_for(kernel, elements_of(kernel).front(), d, d).empty());
}

}  // namespace
}  // namespace flashsteps
