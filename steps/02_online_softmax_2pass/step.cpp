// What step 02 says of itself. The traffic is math 1.3 with p = 2 (2.3); the footprint is derived in the page.
#include "common/runner/step.hpp"
#include "steps/02_online_softmax_2pass/forward.hpp"
#include "steps/02_online_softmax_2pass/kernels.hpp"
#include "steps/all.hpp"

namespace flashsteps::step02 {

template void softmax(const Slow<const float>&, const Slow<float>&, Memory&);
template void softmax(const Slow<const double>&, const Slow<double>&, Memory&);
template MaxSum<float> max_sum(const Slow<const float>&, Index, Memory&);
template MaxSum<double> max_sum(const Slow<const double>&, Index, Memory&);
template void two_sweeps(const Head<float>&, Memory&);
template void two_sweeps(const Head<double>&, Memory&);

namespace {

Counts traffic(const HeadSizes& x) {
  Counts c;
  c[tensor::q].reads = x.nq * x.d;
  c[tensor::k].reads = x.nq * x.nk * 2 * x.d;
  c[tensor::v].reads = x.nq * x.nk * x.dv;
  c[tensor::o].writes = x.nq * x.dv;
  c[tensor::lse].writes = x.nq;
  return c;
}
// q, m, o and l with what rounding lost; in the first sweep k, the score and the new maximum, in the second k, v and the weight; at the
// end what o and l have come to
Index on_chip(const HeadSizes& x) { return x.nq == 0 ? 0 : x.d + 2 * x.dv + 3 + (x.nk == 0 ? x.dv + 1 : x.d + std::max<Index>(2, x.dv + 1)); }
// A row: d to scale, dv + 1 for what o and l have come to, 2 for L; a key: 1 + 2 + 2 + 6 in the first sweep, 2 + 2 in the second and 3 dv
// for what rounding loses
Flops flops(const HeadSizes& x) { return {x.nq * x.nk * (4 * x.d + 2 * x.dv), x.nq * (x.d + x.dv + 3 + x.nk * (15 + 3 * x.dv))}; }

}  // namespace

const Step& step() {
  static const Step self{
      .number = 2,
      .name = "02_online_softmax_2pass",
      .title = "Online softmax in two passes",
      .idea = "When the maximum grows, the sum so far is rescaled by E(m, m_new): maximum and sum are found in one pass.",
      .claim = "Two sweeps over K give what three gave.",
      .before = &step01::step(),
      .forms = {{.name = "two sweeps", .home = "02_online_softmax_2pass", .in_float = {two_sweeps<float>}, .in_double = {two_sweeps<double>},
                 .traffic = traffic, .on_chip = on_chip, .flops = flops}},
      .kernels = {{.name = "fp32", .form = "two sweeps", .compiled = forward_kernels(), .traffic = traffic}},
      .beside = 1};
  return self;
}

}  // namespace flashsteps::step02
