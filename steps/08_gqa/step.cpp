// What step 08 says of itself: the forms of step 07, forward for one query head, backward for one group of g query heads (math 8).
#include "common/runner/step.hpp"
#include "steps/08_gqa/backward.hpp"
#include "steps/08_gqa/forward.hpp"
#include "steps/08_gqa/kernels.hpp"
#include "steps/all.hpp"

namespace flashsteps::step08 {

template void forward(const Head<float>&, Memory&);
template void forward(const Head<double>&, Memory&);
template void backward(std::span<const Head<float>>, std::span<const Gradients<float>>, Memory&);
template void backward(std::span<const Head<double>>, std::span<const Gradients<double>>, Memory&);

namespace {

/// Keys in the column tiles that row tile i visits: min(nk, n_vis Bc).
Index visited_keys(const HeadSizes& x, Range i) {
  const Index seen = std::clamp<Index>(i.end + x.diagonal, 0, x.nk);   // of the last row
  return std::min(x.nk, tile_count(seen, x.bc) * x.bc);
}
/// Queries in the row tiles that column tile j visits: n_J = nq - Br I_min(J).
Index visited_queries(const HeadSizes& x, Range j) {
  if (x.nq == 0) return 0;
  const Index first = std::max<Index>(0, j.begin - x.diagonal);        // the first row that sees the tile's first key
  return x.nq - first / x.br * x.br;
}

Counts forward_traffic(const HeadSizes& x) {
  Counts c;
  c[tensor::q].reads = x.nq * x.d;
  for (const Range i : tiles(x.nq, x.br)) {
    c[tensor::k].reads += visited_keys(x, i) * x.d;
    c[tensor::v].reads += visited_keys(x, i) * x.dv;
  }
  c[tensor::o].writes = x.nq * x.dv;
  c[tensor::lse].writes = x.nq;
  return c;
}
// That of step 05 for every row tile that sees a key
Index forward_on_chip(const HeadSizes& x) {
  Index peak = 0;
  for (const Range i : tiles(x.nq, x.br)) {
    const Index br = i.size(), bc = std::min(x.bc, visited_keys(x, i));
    peak = std::max(peak, bc == 0 ? br * (x.d + x.dv + 2) : br * (x.d + x.dv) + bc * (x.d + x.dv) + br * bc + 3 * br);
  }
  return peak;
}
Flops forward_flops(const HeadSizes& x) {
  Flops sum{0, x.nq * (x.d + x.dv + 3)};
  for_visited_tiles(x, [&](Range i, Range j) {
    const Index r = i.size(), c = j.size();
    sum += {2 * r * c * (x.d + x.dv), r * (4 * c + 2 * x.dv + 4)};
  });
  return sum;
}

// The block that owns K_J and V_J reads them once and loops over the g heads of its group
Counts backward_traffic(const HeadSizes& x) {
  Index visited = 0;
  for (const Range j : tiles(x.nk, x.bc)) visited += x.group * visited_queries(x, j);
  const Index rows = x.group * x.nq;
  Counts c;
  c[tensor::o].reads = rows * x.dv;
  c[tensor::d_o].reads = rows * x.dv + visited * x.dv;
  c[tensor::d_lse].reads = x.d_lse ? rows : 0;
  c[tensor::delta] = {visited, rows};
  c[tensor::q].reads = visited * x.d;
  c[tensor::lse].reads = visited;
  c[tensor::k].reads = x.nk * x.d;
  c[tensor::v].reads = x.nk * x.dv;
  c[tensor::dq] = {0, rows * x.d, visited * x.d};
  c[tensor::dk].writes = x.nk * x.d;
  c[tensor::dv].writes = x.nk * x.dv;
  return c;
}
Index backward_on_chip(const HeadSizes& x) {
  const Index first = std::min(x.br, x.nq);
  Index peak = std::max(2 * first * x.dv + first, x.d_lse ? 2 * first : 0);
  for (const Range j : tiles(x.nk, x.bc)) {
    const Index br = std::min(x.br, visited_queries(x, j)), bc = j.size();
    peak = std::max(peak, bc * (3 * x.d + 2 * x.dv) + br * (2 * x.d + x.dv + 2) + 2 * br * bc);
  }
  return peak;
}
Flops backward_flops(const HeadSizes& x) {
  Flops sum{0, x.group * x.nq * (2 * x.dv + (x.d_lse ? 1 : 0)) + 2 * x.nk * x.d};
  for_visited_tiles(x, [&](Range i, Range j) {
    const Index r = i.size(), c = j.size();
    sum += {x.group * 2 * r * c * (3 * x.d + 2 * x.dv), x.group * (4 * r * c + c * (x.d + x.dv) + r * x.d)};
  });
  return sum;
}

}  // namespace

const Step& step() {
  static const std::string name = "08_gqa";
  static const Step self{
      .number = 8,
      .name = name,
      .title = "Grouped queries",
      .idea = "A group of query heads shares one head of K and V, found by index; dK and dV are summed over the group on chip.",
      .claim = "Indexing gives what copies of K and V would give; their gradients are the sums over the group.",
      .before = &step07::step(),
      .forms = {{.name = "forward", .home = name, .pieces = Pieces::row_tiles, .tiled = true, .in_float = {forward<float>}, .in_double = {forward<double>},
                 .traffic = forward_traffic, .on_chip = forward_on_chip, .flops = forward_flops},
                {.name = "backward", .home = name, .pieces = Pieces::groups, .tiled = true,
                 .in_float = {nullptr, backward<float>}, .in_double = {nullptr, backward<double>},
                 .traffic = backward_traffic, .on_chip = backward_on_chip, .flops = backward_flops, .by_keys = true}},
      .kernels = {{.name = "fp32", .form = "forward", .compiled = forward_kernels(), .traffic = forward_traffic},
                  {.name = "tensor cores", .form = "forward", .compiled = forward_tensor_core_kernels(), .traffic = forward_traffic, .tensor_cores = true},
                  {.name = "fp32, backward", .form = "backward", .compiled = backward_kernels(), .traffic = backward_traffic, .backward = true, .atomics = true}},
      .reference = Reference::repeated,
      .causal = true,
      .gqa = true,
      .kv_head = kv_head};
  return self;
}

}  // namespace flashsteps::step08
