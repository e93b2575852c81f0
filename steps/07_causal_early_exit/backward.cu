// FlashAttention-2 with a causal mask, backward, on a GPU (math 6.5, 7.2).
// The same three kinds of tile, met in column order: for a column tile, the row tiles above the diagonal are skipped.
// A masked pair is left out of every sum, not multiplied by 0: NaN in q, k, v or do stays where it is not seen (math 0.3, E2).
#include "common/cuda/buffer.hpp"
#include "common/cuda/kernel.hpp"
#include "steps/07_causal_early_exit/kernels.hpp"

namespace flashsteps::step07 {
namespace {

constexpr int team = 4;         // neighbouring threads that share a key: thread c has the rows and columns c, c + 4, ...
constexpr int delta_rows = 8;   // of a warp of delta_kernel: their D fill a sector
constexpr int delta_warps = 4;  // of a block

// What softmax takes from every row, once: D = rowsum(dO o O). Sets dQ = 0 too
__global__ void __launch_bounds__(32 * delta_warps) delta_kernel(const gpu::Problem x, const gpu::Tensor delta) {
  const auto [tile, h, b] = gpu::place(gpu::tile_count(x.seq_q, delta_warps * delta_rows), x.heads);
  const auto o = gpu::matrix<const float>(x.o, b, h), d_o = gpu::matrix<const float>(x.d_o, b, h);
  const auto dq = gpu::matrix<float>(x.dq, b, h), d = gpu::matrix<float>(delta, b, h);
  const int lane = gpu::lane_id(), i0 = (tile * delta_warps + int(threadIdx.x) / 32) * delta_rows, rows = min(delta_rows, x.seq_q - i0);
  float d_i = 0.0f;                                           // lane r keeps that of row r
  for (int r = 0; r < rows; ++r) {
    float sum = 0.0f;
    for (int e = lane; e < x.value_dim; e += 32) sum += d_o(i0 + r, e) * o(i0 + r, e);
    sum = gpu::warp_sum(sum);
    if (lane == r) d_i = sum;
    for (int e = lane; e < x.head_dim; e += 32) dq(i0 + r, e) = 0.0f;
  }
  if (lane < rows) d(i0 + lane, 0) = d_i;
}

template <int Br, int Bc, int D> struct Storage {
  float k[Bc][D + 1];    // + 1: rows start in different banks
  float v[Bc][D + 1];
  float q[Br][D + 1];
  float d_o[Br][D + 1];
  float p[Bc][Br + team];  // P^T, then dS^T
  float lse[Br];
  float delta[Br];
};

// At least one block a multiprocessor: the compiler may take the registers of several rather than spill
template <int Br, int Bc, int D> __global__ void __launch_bounds__(Bc * team, 1) column_kernel(const gpu::Problem x, const gpu::Tensor delta) {
  // Find the column tile of this block, and the key of this thread
  auto& sm = gpu::shared_storage<Storage<Br, Bc, D>>();
  const auto [tile, h, b] = gpu::place(gpu::tile_count(x.seq_k, Bc), x.heads);
  const auto q = gpu::matrix<const float>(x.q, b, h), k = gpu::matrix<const float>(x.k, b, h), v = gpu::matrix<const float>(x.v, b, h);
  const auto d_o = gpu::matrix<const float>(x.d_o, b, h), lse = gpu::matrix<const float>(x.lse, b, h), d = gpu::matrix<const float>(delta, b, h);
  const auto dq = gpu::matrix<float>(x.dq, b, h), dk = gpu::matrix<float>(x.dk, b, h), dv = gpu::matrix<float>(x.dv, b, h);
  const int t = int(threadIdx.x), j = t / team, c = t % team, j0 = tile * Bc, keys = min(Bc, x.seq_k - j0);

  // Load the column tile; dK and dV are born in registers
  gpu::load_tile(sm.k, k, j0, x.seq_k, x.head_dim);           // K_J                           [Bc x d]
  gpu::load_tile(sm.v, v, j0, x.seq_k, x.value_dim);          // V_J                           [Bc x dv]
  float dk_j[D / team] = {};                                  // dK_J                          [Bc x d]
  float dv_j[D / team] = {};                                  // dV_J                          [Bc x dv]

  // Start with the row tile that sees the tile's first key
  for (int i0 = max(0, j0 - x.diagonal) / Br * Br; i0 < x.seq_q; i0 += Br) {
    const int rows = min(Br, x.seq_q - i0);
    __syncthreads();                                          // the tile before is no longer needed
    gpu::load_tile(sm.q, q, i0, x.seq_q, x.head_dim, x.scale);  // tau Q_I                     [Br x d]
    gpu::load_tile(sm.d_o, d_o, i0, x.seq_q, x.value_dim);    // dO_I                          [Br x dv]
    for (int i = t; i < Br; i += Bc * team) {                 // L_I, D_I                      [Br]
      sm.lse[i] = i < rows ? lse(i0 + i, 0) : -INFINITY;     // a row that does not exist is as an empty one
      sm.delta[i] = i < rows ? d(i0 + i, 0) : 0.0f;
    }
    __syncthreads();                                          // the tile is complete

    // Below the diagonal every row sees every key of the tile, on it key j is seen from one row on
    const bool partial = i0 + x.diagonal + 1 < j0 + keys;     // row 0 does not see every key
    const int first = partial ? max(0, j0 + j - x.diagonal - i0) : 0;  // that row

    // Recompute the weights: no maximum, no rescaling
    float p[Br / team];
#pragma unroll
    for (int n = 0; n < Br / team; ++n) {                     // P^T = exp(S - L)^T            [Bc x Br]
      const int i = c + team * n;
      p[n] = i < first || sm.lse[i] == -INFINITY ? 0.0f : gpu::exp(gpu::dot<D>(sm.q[i], sm.k[j]) - sm.lse[i]);
      sm.p[j][i] = p[n];
    }
    __syncwarp();                                             // the threads of a key see each other's P

    // Back through O = P V
    float sum[D / team] = {};
    for (int i = Br - 1; i >= first; --i) {                   // from the last row on, which all keys share
      if (sm.lse[i] == -INFINITY) continue;
#pragma unroll
      for (int n = 0; n < D / team; ++n) sum[n] += sm.p[j][i] * sm.d_o[i][c + team * n];
    }
#pragma unroll
    for (int n = 0; n < D / team; ++n) dv_j[n] += sum[n], sum[n] = 0.0f;  // dV_J += P^T dO_I
    __syncwarp();                                             // P is no longer needed

    // Back through softmax
#pragma unroll
    for (int n = 0; n < Br / team; ++n) {                     // dS = P o (dP - D), dP = dO_I V_J^T  [Br x Bc]
      const int i = c + team * n;
      sm.p[j][i] = p[n] * (gpu::dot<D>(sm.d_o[i], sm.v[j]) - sm.delta[i]);
    }
    __syncthreads();                                          // all threads see dS

    // Back through S = tau Q K^T
    for (int i = Br - 1; i >= first; --i) {
      if (sm.lse[i] == -INFINITY) continue;
#pragma unroll
      for (int n = 0; n < D / team; ++n) sum[n] += sm.p[j][i] * sm.q[i][c + team * n];
    }
#pragma unroll
    for (int n = 0; n < D / team; ++n) dk_j[n] += sum[n];     // dK_J += tau dS^T Q_I
    for (int i = t / 32; i < rows; i += Bc * team / 32) {     // a warp a row, so that the additions to it are neighbours
      float dq_i[D / 32] = {};
      const int seen = sm.lse[i] == -INFINITY ? 0 : partial ? min(i0 + i + x.diagonal + 1 - j0, keys) : keys;
      for (int y = 0; y < seen; ++y) {
#pragma unroll
        for (int n = 0; n < D / 32; ++n) dq_i[n] += sm.p[y][i] * sm.k[y][t % 32 + 32 * n];
      }
#pragma unroll
      for (int n = 0; n < D / 32; ++n) {                      // dQ_I += tau dS K_J
        const int e = t % 32 + 32 * n;
        if (e < x.head_dim) atomicAdd(&dq(i0 + i, e), x.scale * dq_i[n]);
      }
    }
  }

  // Store through the places of K and V
  __syncthreads();
#pragma unroll
  for (int n = 0; n < D / team; ++n) sm.k[j][c + team * n] = dk_j[n], sm.v[j][c + team * n] = dv_j[n];
  __syncthreads();
  gpu::store_tile(sm.k, dk, j0, x.seq_k, x.head_dim);
  gpu::store_tile(sm.v, dv, j0, x.seq_k, x.value_dim);
}

template <int Br, int Bc, int D> void start(const gpu::Problem& x) {
  gpu::Buffer<float> d(std::size_t(x.batch) * x.heads * x.seq_q, "D");  // in device memory      [Nq]
  const gpu::Tensor delta{d.data(), std::int64_t(x.heads) * x.seq_q, x.seq_q, 1};
  gpu::launch_tiles(delta_kernel, x, gpu::tile_count(x.seq_q, delta_warps * delta_rows), x.heads, 32 * delta_warps, 0, x, delta);
  gpu::launch_tiles(column_kernel<Br, Bc, D>, x, gpu::tile_count(x.seq_k, Bc), x.heads, Bc * team, sizeof(Storage<Br, Bc, D>), x, delta);
}
template <int Br, int Bc, int D> constexpr gpu::Compiled compiled() {
  return {gpu::Element::float32, Br, Bc, D, Bc * team, sizeof(Storage<Br, Bc, D>), 75, start<Br, Bc, D>};
}

}  // namespace

gpu::Kernels backward_kernels() {
  static constexpr gpu::Compiled all[] = {
      compiled<32, 32, 32>(), compiled<32, 32, 64>(), compiled<16, 32, 128>(), compiled<16, 16, 256>(),  // the default of each dimension first
      compiled<16, 64, 32>(), compiled<16, 64, 64>(), compiled<64, 16, 32>(), compiled<64, 16, 64>()};
  return all;
}

}  // namespace flashsteps::step07
