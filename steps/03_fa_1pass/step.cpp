// What step 03 says of itself. The traffic is math 1.3 with p = 1; the footprint is derived in the page.
#include "common/runner/step.hpp"
#include "steps/03_fa_1pass/forward.hpp"
#include "steps/03_fa_1pass/kernels.hpp"
#include "steps/all.hpp"

namespace flashsteps::step03 {

template void one_sweep(const Head<float>&, Memory&);
template void one_sweep(const Head<double>&, Memory&);
template void one_sweep_normalised(const Head<float>&, Memory&);
template void one_sweep_normalised(const Head<double>&, Memory&);

namespace {

Counts traffic(const HeadSizes& x) {
  Counts c;
  c[tensor::q].reads = x.nq * x.d;
  c[tensor::k].reads = x.nq * x.nk * x.d;
  c[tensor::v].reads = x.nq * x.nk * x.dv;
  c[tensor::o].writes = x.nq * x.dv;
  c[tensor::lse].writes = x.nq;
  return c;
}
// q, m, u (or o) and l with what rounding lost; k, v, the score and the new maximum; at the end what u and l have come to
Index on_chip(const HeadSizes& x) { return x.nq == 0 ? 0 : x.d + 3 * x.dv + 4 + (x.nk == 0 ? 0 : x.d + 1); }
// A row: d to scale, dv + 1 for what u and l have come to, 1 + dv to divide, 2 for L; a key: 1 + 2 + 2 + 6, 2 dv to rescale u and what it
// lost, 3 dv for what rounding loses
Flops flops(const HeadSizes& x) { return {2 * x.nq * x.nk * (x.d + x.dv), x.nq * (x.d + 2 * x.dv + 4 + x.nk * (11 + 5 * x.dv))}; }
// A key: 1 + 2 + 2 + 6 and 2 for the weight, dv for v - o, 3 dv for what rounding loses
Flops normalised_flops(const HeadSizes& x) { return {2 * x.nq * x.nk * (x.d + x.dv), x.nq * (x.d + x.dv + 3 + x.nk * (13 + 4 * x.dv))}; }

}  // namespace

const Step& step() {
  static const Step self{
      .number = 3,
      .name = "03_fa_1pass",
      .title = "Attention in one pass",
      .idea = "The output is rescaled like the sum, so that O, maximum and sum are found in one sweep over K and V.",
      .claim = "One sweep over K and V gives what two gave, normalised at every key or once at the end.",
      .before = &step02::step(),
      .forms = {{.name = "one sweep", .home = "03_fa_1pass", .in_float = {one_sweep<float>}, .in_double = {one_sweep<double>},
                 .traffic = traffic, .on_chip = on_chip, .flops = flops},
                {.name = "one sweep, normalised", .home = "03_fa_1pass", .in_float = {one_sweep_normalised<float>}, .in_double = {one_sweep_normalised<double>},
                 .traffic = traffic, .on_chip = on_chip, .flops = normalised_flops}},
      .kernels = {{.name = "fp32", .form = "one sweep", .compiled = forward_kernels(), .traffic = traffic}}};
  return self;
}

}  // namespace flashsteps::step03
