// What step 04 says of itself. Traffic: math 4.3, with the pass that joins m and l to L. Footprint: math 4.2.
#include "common/runner/step.hpp"
#include "steps/04_fa1_tiled/forward.hpp"
#include "steps/04_fa1_tiled/kernels.hpp"
#include "steps/all.hpp"

namespace flashsteps::step04 {

template void forward(const Head<float>&, Memory&);
template void forward(const Head<double>&, Memory&);

namespace {

Counts traffic(const HeadSizes& x) {
  const Index tc = x.column_tiles();
  Counts c;
  c[tensor::k].reads = x.nk * x.d;
  c[tensor::v].reads = x.nk * x.dv;
  c[tensor::q].reads = tc * x.nq * x.d;
  c[tensor::o] = {tc * x.nq * x.dv, x.nq * x.dv + tc * x.nq * x.dv};
  c[tensor::m] = {tc * x.nq + x.nq, x.nq + tc * x.nq};
  c[tensor::l] = {tc * x.nq + x.nq, x.nq + tc * x.nq};
  c[tensor::lse].writes = x.nq;
  return c;
}
// The kernels do not start for heads without queries
Counts traffic_fp32(const HeadSizes& x) { return x.nq == 0 ? Counts{} : traffic(x); }
// O of 16 bits is written once, in the pass that makes L. What comes and goes is a float
Counts traffic_tensor_cores(const HeadSizes& x) {
  Counts c = traffic_fp32(x);
  c[tensor::o_float] = c[tensor::o];
  c[tensor::o_float].reads += x.nq * x.dv;
  c[tensor::o] = {0, x.nq * x.dv};
  return c;
}
Index on_chip(const HeadSizes& x) {
  const Index br = std::min(x.br, x.nq), bc = std::min(x.bc, x.nk);
  return x.nk == 0 ? 2 * br : bc * (x.d + x.dv) + br * (x.d + x.dv) + br * bc + 6 * br;
}
// A tile [r x c]: r d to scale Q, 5 r c for maximum, exponential, sum and rescaling of P, 3 r dv and 8 r for the merge; 2 a row for L
Flops flops(const HeadSizes& x) {
  Flops sum{0, 2 * x.nq};
  for_visited_tiles({.nq = x.nq, .nk = x.nk, .d = x.d, .dv = x.dv, .br = x.br, .bc = x.bc, .diagonal = x.nk}, [&](Range i, Range j) {
    const Index r = i.size(), c = j.size();
    sum += {2 * r * c * (x.d + x.dv), r * (x.d + 5 * c + 3 * x.dv + 8)};
  });
  return sum;
}

}  // namespace

const Step& step() {
  static const Step self{
      .number = 4,
      .name = "04_fa1_tiled",
      .title = "FlashAttention-1: tiles",
      .idea = "Keys and queries are taken in tiles that fit on chip: K and V are read once, O, m and l go back and forth.",
      .claim = "Tiles of any shape give what single rows gave.",
      .before = &step03::step(),
      .forms = {{.name = "column tiles outside", .home = "04_fa1_tiled", .tiled = true, .in_float = {forward<float>}, .in_double = {forward<double>},
                 .traffic = traffic, .on_chip = on_chip, .flops = flops}},
      .kernels = {{.name = "fp32", .form = "column tiles outside", .compiled = forward_kernels(), .traffic = traffic_fp32},
                  {.name = "tensor cores", .form = "column tiles outside", .compiled = forward_tensor_core_kernels(), .traffic = traffic_tensor_cores,
                   .tensor_cores = true}},
      .paper_tiles = true};
  return self;
}

}  // namespace flashsteps::step04
