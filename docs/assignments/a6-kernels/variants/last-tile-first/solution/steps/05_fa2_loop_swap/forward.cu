// FlashAttention-2, forward, on a GPU (math 5.1; FlashAttention-2, Algorithm 1).
// A block owns Br query rows: O, m and l stay in its registers. Warps split the tile over queries, so they exchange nothing (5.4).
#include "common/cuda/kernel.hpp"
#include "steps/05_fa2_loop_swap/kernels.hpp"

namespace flashsteps::step05 {
namespace {

constexpr int team = 4;  // neighbouring threads that share a query row: thread c has the keys and columns c, c + 4, ...

template <int Br, int Bc, int D> struct Storage {
  float q[Br][D + 1];    // + 1: rows start in different banks
  float k[Bc][D + 1];
  float v[Bc][D + 1];
  float p[Br][Bc + team];
};

template <int Br, int Bc, int D> __global__ void __launch_bounds__(Br * team, 1) forward_kernel(const gpu::Problem x) {
  // Find the row tile of this block, and the row of this thread
  auto& sm = gpu::shared_storage<Storage<Br, Bc, D>>();
  const auto [tile, h, b] = gpu::place(gpu::tile_count(x.seq_q, Br), x.heads);
  const auto q = gpu::matrix<const float>(x.q, b, h), k = gpu::matrix<const float>(x.k, b, h), v = gpu::matrix<const float>(x.v, b, h);
  const auto o = gpu::matrix<float>(x.o, b, h), lse = gpu::matrix<float>(x.lse, b, h);
  const int r = int(threadIdx.x) / team, c = int(threadIdx.x) % team, i0 = tile * Br;

  // Load the row tile; O, m and l are born in registers
  gpu::load_tile(sm.q, q, i0, x.seq_q, x.head_dim, x.scale);  // tau Q_I                       [Br x d]
  float o_i[D / team] = {};                                   // O_I, not normalised           [Br x dv]
  float m = -INFINITY, l = 0.0f;                              // maximum of the keys so far, and their sum

  // Load the column tile
  for (int j0 = (gpu::tile_count(x.seq_k, Bc) - 1) * Bc; j0 >= 0; j0 -= Bc) {  // the last one first
    __syncthreads();                                          // the tile before is no longer needed
    gpu::load_tile(sm.k, k, j0, x.seq_k, x.head_dim);         // K_J                           [Bc x d]
    gpu::load_tile(sm.v, v, j0, x.seq_k, x.value_dim);        // V_J                           [Bc x dv]
    __syncthreads();                                          // the tile is complete

    // Weigh the tile against the new maximum
    float s[Bc / team], top = -INFINITY;
#pragma unroll
    for (int n = 0; n < Bc / team; ++n) {                     // S = tau Q_I K_J^T             [Br x Bc]
      const int j = c + team * n;
      s[n] = j0 + j < x.seq_k ? gpu::dot<D>(sm.q[r], sm.k[j]) : -INFINITY;
      top = fmaxf(top, s[n]);
    }
    const float m_new = fmaxf(m, gpu::warp_max<team>(top));   // m_new = max(m, rowmax(S))     [Br]
    const float alpha = gpu::exp_shifted(m, m_new);           // alpha = E(m, m_new)           [Br]
    float sum = 0.0f;
#pragma unroll
    for (int n = 0; n < Bc / team; ++n) {                     // P = E(S, m_new)               [Br x Bc]
      const float p = gpu::exp_shifted(s[n], m_new);
      sum += p;
      sm.p[r][c + team * n] = p;
    }
    __syncwarp();                                             // the threads of a row see each other's P

    // Rescale what was summed so far, and add the tile
    m = m_new;
    l = alpha * l + sum;                                      // l = alpha l + rowsum(P); each thread its keys
    const int keys = min(Bc, x.seq_k - j0);
    float pv[D / team] = {};
    for (int j = 0; j < keys; ++j) {
#pragma unroll
      for (int n = 0; n < D / team; ++n) pv[n] += sm.p[r][j] * sm.v[j][c + team * n];
    }
#pragma unroll
    for (int n = 0; n < D / team; ++n) o_i[n] = alpha * o_i[n] + pv[n];  // O_I = diag(alpha) O_I + P V_J
  }

  // Normalise once, and store through the place of Q
  l = gpu::warp_sum<team>(l);
  __syncthreads();
#pragma unroll
  for (int n = 0; n < D / team; ++n) sm.q[r][c + team * n] = l == 0.0f ? 0.0f : o_i[n] / l;  // O_I = diag(l)^-1 O_I
  __syncthreads();
  gpu::store_tile(sm.q, o, i0, x.seq_q, x.value_dim);
  if (c == 0 && i0 + r < x.seq_q) lse(i0 + r, 0) = l == 0.0f ? -INFINITY : m + gpu::log(l);  // L_I = m + log(l)
}

template <int Br, int Bc, int D> void start(const gpu::Problem& x) {
  gpu::launch_tiles(forward_kernel<Br, Bc, D>, x, gpu::tile_count(x.seq_q, Br), x.heads, Br * team, sizeof(Storage<Br, Bc, D>), x);
}
template <int Br, int Bc, int D> constexpr gpu::Compiled compiled() {
  return {gpu::Element::float32, Br, Bc, D, Br * team, sizeof(Storage<Br, Bc, D>), 75, start<Br, Bc, D>};
}

}  // namespace

gpu::Kernels forward_kernels() {
  static constexpr gpu::Compiled all[] = {
      compiled<32, 32, 32>(), compiled<32, 32, 64>(), compiled<32, 32, 128>(), compiled<32, 16, 256>(),  // the default of each dimension first
      compiled<16, 64, 32>(), compiled<16, 64, 64>(), compiled<64, 16, 32>(), compiled<64, 16, 64>(), compiled<16, 16, 128>(), compiled<16, 16, 256>()};
  return all;
}

}  // namespace flashsteps::step05
