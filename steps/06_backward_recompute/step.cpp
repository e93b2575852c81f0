// What step 06 says of itself. Traffic: math 6.3, 6.5, 6.6. Footprint of the column order: math 6.5; the others are derived in the page.
#include "common/runner/step.hpp"
#include "steps/06_backward_recompute/backward.hpp"
#include "steps/06_backward_recompute/backward_row_order.hpp"
#include "steps/06_backward_recompute/backward_standard.hpp"
#include "steps/06_backward_recompute/kernels.hpp"
#include "steps/all.hpp"

namespace flashsteps::step06 {

template void backward(const Head<float>&, const Gradients<float>&, Memory&);
template void backward(const Head<double>&, const Gradients<double>&, Memory&);
template void backward_standard(const Head<float>&, const Slow<const float>&, const Gradients<float>&, Memory&);
template void backward_standard(const Head<double>&, const Slow<const double>&, const Gradients<double>&, Memory&);
template void store_probabilities(const Head<float>&, const Slow<float>&, Memory&);
template void store_probabilities(const Head<double>&, const Slow<double>&, Memory&);
template void backward_row_order(const Head<float>&, const Gradients<float>&, Memory&);
template void backward_row_order(const Head<double>&, const Gradients<double>&, Memory&);

namespace {

template <class T> using Group = std::span<const Head<T>>;
template <class T> using GroupGradients = std::span<const Gradients<T>>;

template <class T> void column_order(Group<T> group, GroupGradients<T> gradients, Memory& memory) { backward(group.front(), gradients.front(), memory); }
template <class T> void row_order(Group<T> group, GroupGradients<T> gradients, Memory& memory) { backward_row_order(group.front(), gradients.front(), memory); }
template <class T> void standard(Group<T> group, GroupGradients<T> gradients, Memory& memory) {
  const Workspace<T> p(tensor::p, group.front().q.rows(), group.front().k.rows());
  memory.before([&](Memory& elsewhere) { store_probabilities(group.front(), p, elsewhere); });
  backward_standard<T>(group.front(), p, gradients.front(), memory);
}

// 6.5
Counts column_traffic(const HeadSizes& x) {
  const Index tc = x.column_tiles();
  Counts c;
  c[tensor::o].reads = x.nq * x.dv;
  c[tensor::d_o].reads = x.nq * x.dv + tc * x.nq * x.dv;
  c[tensor::d_lse].reads = x.d_lse ? x.nq : 0;
  c[tensor::delta] = {tc * x.nq, x.nq};
  c[tensor::q].reads = tc * x.nq * x.d;
  c[tensor::lse].reads = tc * x.nq;
  c[tensor::k].reads = x.nk * x.d;
  c[tensor::v].reads = x.nk * x.dv;
  c[tensor::dq] = {0, x.nq * x.d, tc * x.nq * x.d};
  c[tensor::dk].writes = x.nk * x.d;
  c[tensor::dv].writes = x.nk * x.dv;
  return c;
}
Index column_on_chip(const HeadSizes& x) {
  const Index br = std::min(x.br, x.nq), bc = std::min(x.bc, x.nk);
  const Index before = std::max(2 * br * x.dv + br, x.d_lse ? 2 * br : 0);
  return std::max(before, bc == 0 ? 0 : bc * (3 * x.d + 2 * x.dv) + br * (2 * x.d + x.dv + 2) + 2 * br * bc);
}
// D: 2 dv a row, 1 more with dL; K_J and dK_J scaled: 2 d a key; a tile [c x r]: 4 r c for P and dS, c (d + dv) and r d to add
Flops column_flops(const HeadSizes& x) {
  Flops sum{0, x.nq * (2 * x.dv + (x.d_lse ? 1 : 0)) + 2 * x.nk * x.d};
  for_visited_tiles({.nq = x.nq, .nk = x.nk, .d = x.d, .dv = x.dv, .br = x.br, .bc = x.bc, .diagonal = x.nk}, [&](Range i, Range j) {
    const Index r = i.size(), c = j.size();
    sum += {2 * r * c * (3 * x.d + 2 * x.dv), 4 * r * c + c * (x.d + x.dv) + r * x.d};
  });
  return sum;
}

// 6.3
Counts standard_traffic(const HeadSizes& x) {
  Counts c;
  c[tensor::p].reads = 2 * x.nq * x.nk;
  c[tensor::dp] = {x.nq * x.nk, x.nq * x.nk};
  c[tensor::ds] = {2 * x.nq * x.nk, x.nq * x.nk};
  c[tensor::d_o].reads = 2 * x.nq * x.dv;
  c[tensor::d_lse].reads = x.d_lse ? x.nq : 0;
  c[tensor::q].reads = x.nq * x.d;
  c[tensor::k].reads = x.nk * x.d;
  c[tensor::v].reads = x.nk * x.dv;
  c[tensor::dq].writes = x.nq * x.d;
  c[tensor::dk].writes = x.nk * x.d;
  c[tensor::dv].writes = x.nk * x.dv;
  return c;
}
// Rows of P and dP, their product, D; with dL, dL beside D
Index standard_on_chip(const HeadSizes& x) { return x.nq == 0 ? 0 : std::max(3 * x.nk + 1, 2 * x.nk + (x.d_lse ? 2 : 1)); }
// A row: nk products and nk - 1 additions for D, 2 nk for dS; 1 more with dL
Flops standard_flops(const HeadSizes& x) {
  return {4 * x.nq * x.nk * (x.d + x.dv), x.nq * ((x.nk == 0 ? 0 : 4 * x.nk - 1) + (x.d_lse ? 1 : 0))};
}

// 6.6
Counts row_traffic(const HeadSizes& x) {
  const Index tr = x.row_tiles();
  Counts c;
  c[tensor::q].reads = x.nq * x.d;
  c[tensor::o].reads = x.nq * x.dv;
  c[tensor::d_o].reads = x.nq * x.dv;
  c[tensor::lse].reads = x.nq;
  c[tensor::d_lse].reads = x.d_lse ? x.nq : 0;
  c[tensor::k].reads = tr * x.nk * x.d;
  c[tensor::v].reads = tr * x.nk * x.dv;
  c[tensor::dq].writes = x.nq * x.d;
  c[tensor::dk] = {0, x.nk * x.d, tr * x.nk * x.d};
  c[tensor::dv] = {0, x.nk * x.dv, tr * x.nk * x.dv};
  return c;
}
// Q, Q^T, dO, dO^T, L, and O for D; then D and dQ, K, V, S, and first the tile added to dV, then dP and the tile added to dK
Index row_on_chip(const HeadSizes& x) {
  const Index br = std::min(x.br, x.nq), bc = std::min(x.bc, x.nk);
  if (br == 0) return 0;
  const Index rows = br * (2 * x.d + 2 * x.dv + 2);
  const Index before = std::max(rows + br * x.dv, x.d_lse ? rows + br : 0);
  return std::max(before, rows + br * x.d + bc * (x.d + x.dv) + br * bc + std::max(bc * x.dv, br * bc + bc * x.d));
}
// A row: 2 d to scale Q and dQ, 2 dv for D, 1 more with dL; a tile as in column order
Flops row_flops(const HeadSizes& x) {
  Flops sum{0, x.nq * (2 * x.d + 2 * x.dv + (x.d_lse ? 1 : 0))};
  for_visited_tiles({.nq = x.nq, .nk = x.nk, .d = x.d, .dv = x.dv, .br = x.br, .bc = x.bc, .diagonal = x.nk}, [&](Range i, Range j) {
    const Index r = i.size(), c = j.size();
    sum += {2 * r * c * (3 * x.d + 2 * x.dv), 4 * r * c + c * (x.d + x.dv) + r * x.d};
  });
  return sum;
}

// 6.6 b: row order for dQ, which computes D on the way, and column order for dK and dV
Counts two_kernels_traffic(const HeadSizes& x) {
  const Index tr = x.row_tiles(), tc = x.column_tiles();
  Counts c;
  c[tensor::q].reads = x.nq * x.d + tc * x.nq * x.d;
  c[tensor::k].reads = tr * x.nk * x.d + x.nk * x.d;
  c[tensor::v].reads = tr * x.nk * x.dv + x.nk * x.dv;
  c[tensor::o].reads = x.nq * x.dv;
  c[tensor::d_o].reads = x.nq * x.dv + tc * x.nq * x.dv;
  c[tensor::lse].reads = x.nq + tc * x.nq;
  c[tensor::delta] = {tc * x.nq, x.nq};
  c[tensor::dq].writes = x.nq * x.d;
  c[tensor::dk].writes = x.nk * x.d;
  c[tensor::dv].writes = x.nk * x.dv;
  return c;
}

}  // namespace

const Step& step() {
  static const std::string name = "06_backward_recompute";
  static const Step self{
      .number = 6,
      .name = name,
      .title = "The backward pass recomputes",
      .idea = "P is not kept but computed again from Q, K and L, tile by tile; column order adds to one tensor in slow memory, row order to two.",
      .claim = "Recomputed weights give the gradients that stored ones give.",
      .before = &step05::step(),
      .forms = {{.name = "column order", .home = name, .pieces = Pieces::groups, .tiled = true,
                 .in_float = {nullptr, column_order<float>}, .in_double = {nullptr, column_order<double>},
                 .traffic = column_traffic, .on_chip = column_on_chip, .flops = column_flops, .by_keys = true},
                {.name = "standard", .home = name, .pieces = Pieces::groups, .in_float = {nullptr, standard<float>}, .in_double = {nullptr, standard<double>},
                 .traffic = standard_traffic, .on_chip = standard_on_chip, .flops = standard_flops},
                {.name = "row order", .home = name, .pieces = Pieces::groups, .tiled = true,
                 .in_float = {nullptr, row_order<float>}, .in_double = {nullptr, row_order<double>},
                 .traffic = row_traffic, .on_chip = row_on_chip, .flops = row_flops},
                step05::step().main()},
      .kernels = {{.name = "fp32", .form = "column order", .compiled = backward_kernels(), .traffic = column_traffic, .backward = true, .atomics = true},
                  {.name = "fp32, two kernels", .form = "column order", .compiled = backward_two_kernels(), .traffic = two_kernels_traffic, .backward = true}}};
  return self;
}

}  // namespace flashsteps::step06
