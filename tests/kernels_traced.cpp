// The kernels with every access watched: no race, no read of what nobody wrote, nothing out of bounds; and the bytes that they move are the
// closed forms.
#include "common/cuda_on_cpu/counters.hpp"
#include "common/runner/outcome.hpp"
#include "tests/kernel_case.hpp"
#include <fstream>

namespace flashsteps {
namespace {

const Step& step_of(int number) { return *all_steps()[std::size_t(number) - 1]; }

/// Runs a kernel once, watched. A mistake is thrown.
gpu::Counters traced(const Step& step, const Kernel& kernel, const gpu::Compiled& compiled, const KernelShape& shape) {
  const Problem<float> p = kernel_problem(shape, compiled.element, kernel.backward);
  Output<float> out = kernel.backward ? forward_on_cpu(step, p) : Output<float>(p);
  gpu::begin_trace();
  try {
    run_kernel(kernel, compiled, p, out, shape.offset);
  } catch (...) {
    gpu::end_trace();
    throw;
  }
  const gpu::Counters counters = gpu::end_trace();
  hold(budget_complaints(judge(p, out, kernel.backward, all_rows(p), rounding(compiled.element)), kernel.backward));
  return counters;
}

/// Bytes read and written of each tensor are the closed form times the size of an element.
void check_traffic(const Kernel& kernel, const gpu::Compiled& compiled, const KernelShape& shape, const gpu::Counters& counters) {
  const Problem<float> p = kernel_problem(shape, compiled.element, false);
  const Pieces pieces = kernel.backward ? Pieces::groups : Pieces::heads;
  HeadSizes sizes = p.sizes(pieces);
  sizes.br = compiled.br, sizes.bc = compiled.bc;
  const Counts formula = times(kernel.traffic(sizes), p.count(pieces));
  const KernelOutcome bytes{.name = "", .form = "", .bytes_of_element = compiled.element == gpu::Element::float32 ? 4 : 2};
  for (int n = 0; n < name_count; ++n) {
    const gpu::Counters::Array seen = counters.of(tensor::text[n]);
    const Traffic& t = formula.of[n];
    INFO("tensor " << tensor::text[n]);
    CHECK(seen.read_bytes == std::uint64_t(bytes.bytes_of(Name{n}) * t.reads));
    CHECK(seen.written_bytes == std::uint64_t(bytes.bytes_of(Name{n}) * (t.writes + t.atomics)));
  }
}

void no_findings(int number) {
  const Step& step = step_of(number);
  std::vector<KernelShape> shapes = few_kernel_shapes(step);
  shapes.push_back({.nq = 128, .nk = 128, .d = 64, .dv = 64, .causal = step.causal});
  for (const Kernel& kernel : step.kernels)
    for (const gpu::Element element : elements_of(kernel)) {
      std::size_t n = 0;
      for (const KernelShape& shape : shapes) {
        const std::vector<const gpu::Compiled*> all = compiled_for(kernel, element, shape.d, shape.dv);
        const gpu::Compiled& compiled = *all[n++ % all.size()];
        INFO(step.name << ", " << kernel.name << ", tile " << compiled.br << " x " << compiled.bc << ", dim " << compiled.dim << ", element " << int(element) << ": " << shape);
        const gpu::Counters counters = traced(step, kernel, compiled, shape);
        check_traffic(kernel, compiled, shape, counters);
        if (kernel.tensor_cores) CHECK(counters.passes == counters.ideal_passes);  // no bank conflict at all
      }
    }
}

/// Distinct elements of 4 bytes, by warp request, in shared memory on the lines of a kernel that end in this comment.
std::uint64_t exchanged(const std::string& file, const std::string& comment) {
  std::uint64_t bytes = 0;
  int lines = 0;
  std::ifstream source(std::string(FLASHSTEPS_SOURCE_DIR "/steps/04_fa1_tiled/") + file);
  std::string line;
  for (int number = 1; std::getline(source, line); ++number) {
    const std::size_t at = line.find("// " + comment);
    if (at == std::string::npos || (line.size() > at + 3 + comment.size() && line[at + 3 + comment.size()] != ' ')) continue;
    if (line.compare(at + 3 + comment.size(), 3, " dv") == 0) continue;  // "written: W Br" is not "written: W Br dv"
    ++lines;
    for (const cuda_on_cpu::LineCounters& l : cuda_on_cpu::line_counters())
      if (l.shared && l.place == file + ":" + std::to_string(number)) bytes += l.distinct_bytes;
  }
  INFO(file << ": " << comment);
  CHECK(lines > 0);
  return bytes / 4;
}

/// What split-K exchanges in one full tile is what math 5.4 says: written W Br (dv + 2), read W Br (dv + W + 1).
void check_exchange(const Kernel& kernel, const std::string& file) {
  std::size_t tried = 0;
  for (const gpu::Compiled& compiled : kernel.compiled) {
    const KernelShape shape{.nq = compiled.br, .nk = compiled.bc, .d = compiled.dim, .dv = compiled.dim};
    INFO("tile " << compiled.br << " x " << compiled.bc << ", dim " << compiled.dim << ", " << compiled.threads / 32 << " warps");
    traced(step_of(4), kernel, compiled, shape);
    const auto w = std::uint64_t(compiled.threads) / 32, br = std::uint64_t(compiled.br), dv = std::uint64_t(compiled.dim);
    CHECK(exchanged(file, "written: W Br") == 2 * w * br);
    CHECK(exchanged(file, "written: W Br dv") == w * br * dv);
    CHECK(exchanged(file, "read: W W Br") == w * w * br);
    CHECK(exchanged(file, "read: W Br") == w * br);
    CHECK(exchanged(file, "read: W Br dv") == w * br * dv);
    ++tried;
  }
  CHECK(tried >= 2);
}

}  // namespace

TEST_CASE("step01 kernels make no mistake that the tracer finds, and move the bytes of the closed forms") { no_findings(1); }
TEST_CASE("step02 kernels make no mistake that the tracer finds, and move the bytes of the closed forms") { no_findings(2); }
TEST_CASE("step03 kernels make no mistake that the tracer finds, and move the bytes of the closed forms") { no_findings(3); }
TEST_CASE("step04 kernels make no mistake that the tracer finds, and move the bytes of the literal closed form (math 4.3)") { no_findings(4); }
TEST_CASE("step05 kernels make no mistake that the tracer finds, and move the bytes of the closed form (math 5.2)") { no_findings(5); }
TEST_CASE("step06 kernels make no mistake that the tracer finds, and move the bytes of the closed forms") { no_findings(6); }
TEST_CASE("step07 kernels make no mistake that the tracer finds, and move the bytes of the closed form (math 7.3)") { no_findings(7); }
TEST_CASE("step08 kernels make no mistake that the tracer finds, and move the bytes of the closed form (math 8)") { no_findings(8); }

TEST_CASE("step04 split-K exchanges the elements of math 5.4") {
  check_exchange(step_of(4).kernels.at(0), "forward.cu");
  check_exchange(step_of(4).kernels.at(1), "forward_tensor_core.cu");
}

TEST_CASE("step05 split-Q exchanges nothing between warps") {
  // What is stored to shared memory is Q, K and V of two row and two column tiles, O at the end, and, in float, P, which the threads of one
  // row write and read inside a warp. Nothing is left that one warp could tell another
  for (const Kernel& kernel : step_of(5).kernels)
    for (const gpu::Compiled& compiled : kernel.compiled) {
      traced(step_of(5), kernel, compiled, {.nq = 2 * compiled.br, .nk = 2 * compiled.bc, .d = compiled.dim, .dv = compiled.dim});
      std::uint64_t written = 0;
      for (const cuda_on_cpu::LineCounters& l : cuda_on_cpu::line_counters())
        if (l.shared && l.write) written += l.bytes;
      const auto rows = std::uint64_t(2 * compiled.br), br = std::uint64_t(compiled.br), bc = std::uint64_t(compiled.bc), d = std::uint64_t(compiled.dim);
      const std::uint64_t q = rows * d, kv = 4 * 2 * bc * d, p = 4 * br * bc, o = rows * d;
      INFO(kernel.name << ", tile " << compiled.br << " x " << compiled.bc << ", dim " << compiled.dim);
      CHECK(written == (kernel.tensor_cores ? 2 * (q + kv + o) : 4 * (q + kv + p + o)));
    }
}

}  // namespace flashsteps
