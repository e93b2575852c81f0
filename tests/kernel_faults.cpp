// Known faults of other implementations, tried on every CUDA kernel. Ids and values: shared/cases/attention-faults.md; the same cases on
// the CPU versions: faults.cpp, which says how a case is put where there is no mask but the causal one. A kernel without masks gets causal
// heads of up to 16 rows row by row. half and bfloat16 take part where the type holds the scores of the case, in their own tolerances.
//   C09          what lanes and warps merge is not seen from outside: P and L are
//   C11          the keys that a causal mask hides inside a tile hold numbers, NaN and infinity, in K and in V; in V not for tensor cores, whose
//                precondition it is that V is finite there
//   C18          a grid without blocks is not launched, and yet zeros are written
//   C26, C27     no kernel merges (O, L): what kernels give for parts of the keys is merged here
//   C28, C29     for the CPU alone; the kernels give the values all the same
// Elsewhere: C31, C32, C35 in kernel_faults_runs.cpp, the rules of math 0.3 in kernel_faults_edge.cpp; on the CPU layer only C19, C33, C34
// in kernel_faults_layer.cpp, on a GPU only C33 in kernel_faults_gpu.cpp.
#include "tests/fault_gradients.hpp"
#include "tests/fault_masks.hpp"
#include "tests/fault_shapes.hpp"
#include "tests/fault_softmax.hpp"
#include "tests/kernel_fault_case.hpp"

namespace flashsteps {
namespace {

TEST_CASE("C01 kernels: rows that allow no key - step01 step02 step03 step04 step05 step07 step08") { on_kernels(c01); }
TEST_CASE("C02 kernels: an empty row is not the mean of V - step01 step02 step03 step04 step05 step07 step08") { on_kernels(c02); }
TEST_CASE("C03 kernels: causal with more queries than keys - step01 step02 step03 step04 step05 step07 step08") { on_kernels(c03); }
TEST_CASE("C04 kernels: leading rows without a key have no gradient - step06 step07 step08") { on_kernels(c04); }
TEST_CASE("C05 kernels: first key tile masked - step01 step02 step03 step04 step05 step07 step08") { on_kernels(c05); }
TEST_CASE("C06 kernels: a masked first tile leaves no maximum behind - step01 step02 step03 step04 step05 step07 step08") { on_kernels(c06); }
TEST_CASE("C07 kernels: a long row with one finite score - step01 step02 step03 step04 step05 step07 step08") { on_kernels(c07); }
TEST_CASE("C08 kernels: the maximum does not start at zero - step01 step02 step03 step04 step05 step07 step08") { on_kernels(c08); }
TEST_CASE("C09 kernels: sums of different maxima - step01 step02 step03 step04 step05 step07 step08") { on_kernels(c09); }
TEST_CASE("C10 kernels: NaN comes out where NaN is seen - step01 step02 step03 step04 step05 step07 step08") { on_kernels(c10); }
TEST_CASE("C11 kernels: whatever a masked key holds - step01 step02 step03 step04 step05 step07 step08") { on_kernels(c11, true); }
TEST_CASE("C12 kernels: causal is aligned to the bottom right - step01 step02 step03 step04 step05 step07 step08") { on_kernels(c12); }
TEST_CASE("C13 kernels: the last row of a query tile sees the most keys - step01 step02 step03 step04 step05 step07 step08") { on_kernels(c13); }
TEST_CASE("C14 kernels: a length that no tile divides - step01 step02 step03 step04 step05 step07 step08") { on_kernels(c14); }
TEST_CASE("C14 kernels: lengths around every tile - step01 step02 step03 step04 step05 step07 step08") { on_kernels(c14_lengths, true); }
TEST_CASE("C15 kernels: a head dimension of 63 - step01 step02 step03 step04 step05 step07 step08") { on_kernels(c15); }
TEST_CASE("C16 kernels: the padding of the last tile is no key - step01 step02 step03 step04 step05 step07 step08") { on_kernels(c16); }
TEST_CASE("C17 kernels: nothing is read beyond the last row - step06 step07 step08") { on_kernels(c17); }
TEST_CASE("C18 kernels: empty sequences - step01 step02 step03 step04 step05 step07 step08") { on_kernels(c18); }
TEST_CASE("C18 kernels: gradients of empty sequences - step06 step07 step08") { on_kernels(c18_gradients); }
TEST_CASE("C21 kernels: query heads and the head of K and V that they read - step01 step02 step03 step04 step05 step07 step08") { on_kernels(c21, true); }
TEST_CASE("C22 kernels: dK and dV are sums over the group - step06 step07 step08") { on_kernels(c22); }
TEST_CASE("C24 kernels: LSE of an empty row - step01 step02 step03 step04 step05 step07 step08") { on_kernels(c24); }
TEST_CASE("C25 kernels: L is a natural logarithm - step01 step02 step03 step04 step05 step07 step08") { on_kernels(c25); }
TEST_CASE("C26 C27 kernels: the parts of a row merge to the row - step01 step02 step03 step04 step05 step07 step08") { on_kernels(c26_parts, true); }
TEST_CASE("C28 kernels: a scale of 0 is a scale - step01 step02 step03 step04 step05 step07 step08") { on_kernels(c28); }
TEST_CASE("C29 kernels: old terms shrink when the maximum grows - step01 step02 step03 step04 step05 step07 step08") { on_kernels(c29); }
TEST_CASE("C30 kernels: no mask where none was asked for - step06 step07 step08") { on_kernels(c30); }
TEST_CASE("C33 kernels: one key gives V bit for bit - step01 step02 step03 step04 step05 step07 step08") { on_kernels(c33); }
TEST_CASE("C36 kernels: one key with a score of 1e11 - step01 step02 step03 step04 step05 step07 step08") { on_kernels(c36); }
TEST_CASE("C37 kernels: a partial query block without a key block - step01 step02 step03 step04 step05 step07 step08") { on_kernels(c37); }
TEST_CASE("C38 kernels: the keys of a window - step01 step02 step03 step04 step05 step07 step08") { on_kernels(c38, true); }
TEST_CASE("C44 kernels: scores of thousands - step01 step02 step03 step04 step05 step07 step08") { on_kernels(c44); }

TEST_CASE("C20 kernels: the output gradient as a strided view - step06 step07 step08") {
  on_kernels(c20);
  std::vector<Case<float>> heads = rule_o_heads<float>({3, 3, 2, 2}, 2, 2);
  OnKernels on;
  for (Case<float>& x : heads) {
    Memory memory;
    step07::forward(x.head(), memory);
  }
  on.each_kernel(heads, true, [&](const Step&, const Kernel& kernel, const gpu::Compiled& compiled) {
    Problem<float> p = problem_of(heads, {}, true);
    Output<float> out(p);
    for (Index h = 0; h < 2; ++h) put(out.o, 0, h, heads[h].o), put(out.lse, 0, h, heads[h].lse);
    // (a) dO lies as [B, S, H, D], all else as [B, H, S, D]
    p.d_o = {1, 2, 3, 2, Layout::bshd, 0.0f};
    for (Index h = 0; h < 2; ++h) put(p.d_o, 0, h, heads[h].d_o);
    run_kernel(kernel, compiled, p, out);
    CHECK(error(out.dq.numbers, c20_dq) <= on.tolerance);
    CHECK(error(out.dk.numbers, c20_dk) <= on.tolerance);
    CHECK(error(out.dv.numbers, c20_dv) <= on.tolerance);
    // (c) dO is one row of ones: all strides are 0. What lies behind it is not read
    p.d_o = {1, 2, 3, 2, Layout::bhsd, nan_of<float>};
    p.d_o.numbers[0] = p.d_o.numbers[1] = 1;
    DeviceProblem device(p, compiled.element);
    device.upload_forward(out);
    gpu::Problem expanded = device.problem();
    expanded.d_o.batch = expanded.d_o.head = expanded.d_o.row = 0;
    compiled.start(expanded);
    gpu::synchronize();
    out.poison(true);
    device.download_backward(out);
    CHECK(error(out.dq.numbers, c20_ones_dq) <= on.tolerance);
    const std::vector<float>& dv = out.dv.numbers;
    for (const std::size_t n : {0, 1, 6, 7}) CHECK(std::abs(double(dv[n] + dv[n + 2] + dv[n + 4]) - 3) <= 3 * on.tolerance);
  });
  CHECK(on.runs > 0);
}

}  // namespace
}  // namespace flashsteps
