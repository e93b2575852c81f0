// What step 01 says of itself. The closed forms are those of math 1.1 and 1.3; the footprints are derived in the page.
#include "common/runner/step.hpp"
#include "steps/01_safe_softmax_3pass/forward.hpp"
#include "steps/01_safe_softmax_3pass/kernels.hpp"

namespace flashsteps::step01 {

template void softmax(const Slow<const float>&, const Slow<float>&, Memory&);
template void softmax(const Slow<const double>&, const Slow<double>&, Memory&);
template void standard(const Head<float>&, Memory&);
template void standard(const Head<double>&, Memory&);
template void three_sweeps(const Head<float>&, Memory&);
template void three_sweeps(const Head<double>&, Memory&);

namespace {

// 1.1, and L
Counts standard_traffic(const HeadSizes& x) {
  Counts c;
  c[tensor::q].reads = x.nq * x.d;
  c[tensor::k].reads = x.nk * x.d;
  c[tensor::v].reads = x.nk * x.dv;
  c[tensor::s] = {x.nq * x.nk, x.nq * x.nk};
  c[tensor::p] = {x.nq * x.nk, x.nq * x.nk};
  c[tensor::o].writes = x.nq * x.dv;
  c[tensor::lse].writes = x.nq;
  return c;
}
// The kernels multiply tiles: Q is read for each column tile, K and V for each row tile. Each pass over a row reads S, which no chip holds
// for rows of any length. L says which rows saw no key
Counts standard_kernel_traffic(const HeadSizes& x) {
  Counts c;
  c[tensor::q].reads = x.column_tiles() * x.nq * x.d;
  c[tensor::k].reads = x.row_tiles() * x.nk * x.d;
  c[tensor::v].reads = x.row_tiles() * x.nk * x.dv;
  c[tensor::s] = {3 * x.nq * x.nk, x.nq * x.nk};
  c[tensor::p] = {x.nq * x.nk, x.nq * x.nk};
  c[tensor::o].writes = x.nq * x.dv;
  c[tensor::lse] = {x.nq, x.nq};
  return c;
}
// A row of S, its maximum, its sum
Index standard_on_chip(const HeadSizes& x) { return x.nq == 0 ? 0 : x.nk + 2; }
// A row: nk - 1 maxima, 2 nk for E(s, m), nk - 1 additions, 1 + nk to divide, 2 for L
Flops standard_flops(const HeadSizes& x) { return {2 * x.nq * x.nk * (x.d + x.dv), x.nq * (x.nk == 0 ? 3 : 5 * x.nk + 1)}; }

// 1.3 with p = 3, one row at a time (Br = 1), and L
Counts sweeps_traffic(const HeadSizes& x) {
  Counts c;
  c[tensor::q].reads = x.nq * x.d;
  c[tensor::k].reads = x.nq * x.nk * 3 * x.d;
  c[tensor::v].reads = x.nq * x.nk * x.dv;
  c[tensor::o].writes = x.nq * x.dv;
  c[tensor::lse].writes = x.nq;
  return c;
}
// q, m, o and l with what rounding lost; in the third sweep k, v and the weight; at the end what o and l have come to
Index sweeps_on_chip(const HeadSizes& x) { return x.nq == 0 ? 0 : x.d + 3 * x.dv + 4 + (x.nk == 0 ? 0 : x.d); }
// A row: d to scale, dv + 1 for what o and l have come to, 2 for L; a key: 1 maximum; 2 + 4 for the sum; 2 + 2 for the weight, 3 dv for
// what rounding loses
Flops sweeps_flops(const HeadSizes& x) { return {x.nq * x.nk * (6 * x.d + 2 * x.dv), x.nq * (x.d + x.dv + 3 + x.nk * (11 + 3 * x.dv))}; }

}  // namespace

const Step& step() {
  static const Step self{
      .number = 1,
      .name = "01_safe_softmax_3pass",
      .title = "Safe softmax in three passes",
      .idea = "The maximum is subtracted before the exponential, so that nothing overflows; a row of scores is then passed over three times.",
      .claim = "Storing S and P, and computing S again in every pass, give the same attention.",
      .forms = {{.name = "standard", .home = "01_safe_softmax_3pass", .in_float = {standard<float>}, .in_double = {standard<double>},
                 .traffic = standard_traffic, .on_chip = standard_on_chip, .flops = standard_flops},
                {.name = "three sweeps", .home = "01_safe_softmax_3pass", .in_float = {three_sweeps<float>}, .in_double = {three_sweeps<double>},
                 .traffic = sweeps_traffic, .on_chip = sweeps_on_chip, .flops = sweeps_flops}},
      .kernels = {{.name = "standard", .form = "standard", .compiled = standard_kernels(), .traffic = standard_kernel_traffic},
                  {.name = "three sweeps", .form = "three sweeps", .compiled = forward_kernels(), .traffic = sweeps_traffic}},
      .reference = Reference::own_forms};
  return self;
}

}  // namespace flashsteps::step01
