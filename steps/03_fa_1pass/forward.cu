// Attention in one sweep over the keys, on a GPU (math 3.3).
// A warp owns one query row: its lanes have the columns of q and o between them. Warps never meet.
#include "common/cuda/kernel.hpp"
#include "steps/03_fa_1pass/kernels.hpp"

namespace flashsteps::step03 {
namespace {

constexpr int warps = 4;   // of a block
constexpr int chunk = 32;  // keys that a warp takes at once, so that its lanes meet once for all of them

struct Storage {
  float parts[warps][chunk][32 + 1];  // + 1: rows start in different banks
  float p[warps][chunk];
};

// 4 blocks a multiprocessor: a thread may have 128 registers, and nothing spills
template <int D> __global__ void __launch_bounds__(warps * 32, 4) forward_kernel(const gpu::Problem x) {
  // Find the query of this warp
  auto& sm = gpu::shared_storage<Storage>();
  const auto [tile, h, b] = gpu::place(gpu::tile_count(x.seq_q, warps), x.heads);
  const auto q = gpu::matrix<const float>(x.q, b, h), k = gpu::matrix<const float>(x.k, b, h), v = gpu::matrix<const float>(x.v, b, h);
  const auto o = gpu::matrix<float>(x.o, b, h), lse = gpu::matrix<float>(x.lse, b, h);
  const int warp = int(threadIdx.x) / 32, lane = int(threadIdx.x) % 32, i = tile * warps + warp;
  if (i >= x.seq_q) return;

  float q_i[D / 32];                                          // tau q_i                       [d]
#pragma unroll
  for (int n = 0; n < D / 32; ++n) q_i[n] = lane + 32 * n < x.head_dim ? q(i, lane + 32 * n) * x.scale : 0.0f;
  float u[D / 32] = {};                                       // l o_i                         [dv]
  float m = -INFINITY, l = 0.0f;                              // maximum of the keys so far, and their sum

  for (int j0 = 0; j0 < x.seq_k; j0 += chunk) {
    const int keys = min(chunk, x.seq_k - j0);

    // Each lane multiplies its columns; then each adds what all lanes have for one key
    for (int j = 0; j < keys; ++j) {
      float part = 0.0f;
#pragma unroll
      for (int n = 0; n < D / 32; ++n)
        if (lane + 32 * n < x.head_dim) part += q_i[n] * k(j0 + j, lane + 32 * n);
      sm.parts[warp][j][lane] = part;
    }
    __syncwarp();                                             // the parts are complete
    const float s = lane < keys ? gpu::sum<32>(sm.parts[warp][lane]) : -INFINITY;  // s = tau q_i . k_j  [Bc]

    // Weigh the keys against the new maximum
    const float m_new = fmaxf(m, gpu::warp_max(s));           // m_new = max(m, s)
    const float alpha = gpu::exp_shifted(m, m_new);           // alpha = E(m, m_new)
    const float p = gpu::exp_shifted(s, m_new);               // p = E(s, m_new)               [Bc]
    sm.p[warp][lane] = p;
    __syncwarp();                                             // the lanes see each other's p

    // Rescale what was summed so far, and add the keys
    m = m_new;
    l = alpha * l + p;                                        // l = alpha l + p; each lane its keys
    float pv[D / 32] = {};
    for (int j = 0; j < keys; ++j) {
#pragma unroll
      for (int n = 0; n < D / 32; ++n)
        if (lane + 32 * n < x.value_dim) pv[n] += sm.p[warp][j] * v(j0 + j, lane + 32 * n);
    }
#pragma unroll
    for (int n = 0; n < D / 32; ++n) u[n] = alpha * u[n] + pv[n];  // u = alpha u + p V_J
  }

  // Normalise once
  l = gpu::warp_sum(l);
#pragma unroll
  for (int n = 0; n < D / 32; ++n)
    if (lane + 32 * n < x.value_dim) o(i, lane + 32 * n) = l == 0.0f ? 0.0f : u[n] / l;  // o_i = u / l
  if (lane == 0) lse(i, 0) = l == 0.0f ? -INFINITY : m + gpu::log(l);                    // L_i = m + log(l)
}

template <int D> void start(const gpu::Problem& x) {
  gpu::launch_tiles(forward_kernel<D>, x, gpu::tile_count(x.seq_q, warps), x.heads, warps * 32, sizeof(Storage), x);
}
template <int D> constexpr gpu::Compiled compiled() {
  return {gpu::Element::float32, warps, chunk, D, warps * 32, sizeof(Storage), 75, start<D>};
}

}  // namespace

gpu::Kernels forward_kernels() {
  static constexpr gpu::Compiled all[] = {compiled<32>(), compiled<64>(), compiled<128>(), compiled<256>()};
  return all;
}

}  // namespace flashsteps::step03
