// What step 05 says of itself. Traffic and footprint: math 5.2.
#include "common/runner/step.hpp"
#include "steps/05_fa2_loop_swap/forward.hpp"
#include "steps/05_fa2_loop_swap/kernels.hpp"
#include "steps/all.hpp"

namespace flashsteps::step05 {

template void forward(const Head<float>&, Memory&);
template void forward(const Head<double>&, Memory&);

namespace {

Counts traffic(const HeadSizes& x) {
  const Index tr = x.row_tiles();
  Counts c;
  c[tensor::q].reads = x.nq * x.d;
  c[tensor::k].reads = tr * x.nk * x.d;
  c[tensor::v].reads = tr * x.nk * x.dv;
  c[tensor::o].writes = x.nq * x.dv;
  c[tensor::lse].writes = x.nq;
  return c;
}
Index on_chip(const HeadSizes& x) {
  const Index br = std::min(x.br, x.nq), bc = std::min(x.bc, x.nk);
  if (br == 0) return 0;
  return bc == 0 ? br * (x.d + x.dv + 2) : br * (x.d + x.dv) + bc * (x.d + x.dv) + br * bc + 3 * br;
}
// A tile [r x c]: 4 r c for maximum, exponential and sum, 2 r dv and 4 r to rescale and add; a row: d to scale, dv + 1 to divide, 2 for L
Flops flops(const HeadSizes& x) {
  Flops sum{0, x.nq * (x.d + x.dv + 3)};
  for_visited_tiles({.nq = x.nq, .nk = x.nk, .d = x.d, .dv = x.dv, .br = x.br, .bc = x.bc, .diagonal = x.nk}, [&](Range i, Range j) {
    const Index r = i.size(), c = j.size();
    sum += {2 * r * c * (x.d + x.dv), r * (4 * c + 2 * x.dv + 4)};
  });
  return sum;
}

}  // namespace

const Step& step() {
  static const Step self{
      .number = 5,
      .name = "05_fa2_loop_swap",
      .title = "FlashAttention-2: the loops change places",
      .idea = "Row tiles go outside: O, m and l stay on chip, O is normalised once, only L is kept, and row tiles run in parallel.",
      .claim = "The other order of the loops gives the same attention.",
      .before = &step04::step(),
      .forms = {{.name = "row tiles outside", .home = "05_fa2_loop_swap", .pieces = Pieces::row_tiles, .tiled = true,
                 .in_float = {forward<float>}, .in_double = {forward<double>}, .traffic = traffic, .on_chip = on_chip, .flops = flops}},
      .kernels = {{.name = "fp32", .form = "row tiles outside", .compiled = forward_kernels(), .traffic = traffic},
                  {.name = "tensor cores", .form = "row tiles outside", .compiled = forward_tensor_core_kernels(), .traffic = traffic, .tensor_cores = true}}};
  return self;
}

}  // namespace flashsteps::step05
