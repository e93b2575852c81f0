// The deterministic backward pass (math 6.6 b): no block adds to what another block wrote, so there are no atomics, and every bit repeats.
// One kernel in row order owns dQ, one in column order owns dK and dV. Both rebuild S and dP: 7 products of matrices instead of 5.
#include "common/cuda/buffer.hpp"
#include "common/cuda/kernel.hpp"
#include "steps/06_backward_recompute/kernels.hpp"

namespace flashsteps::step06 {
namespace {

constexpr int team = 4;  // neighbouring threads that share a query row, or a key

template <int Br, int Bc, int D> struct Storage {
  float q[Br][D + 1];    // + 1: rows start in different banks
  float d_o[Br][D + 1];
  float k[Bc][D + 1];
  float v[Bc][D + 1];
  float ds[Br][Bc + team];  // of row_kernel
  float p[Bc][Br + team];   // of column_kernel: P^T, then dS^T
  float lse[Br];
  float delta[Br];
};

// A block owns Br query rows: D and dQ
template <int Br, int Bc, int D> __global__ void __launch_bounds__(Br * team) row_kernel(const gpu::Problem x, const gpu::Tensor delta) {
  auto& sm = gpu::shared_storage<Storage<Br, Bc, D>>();
  const auto [tile, h, b] = gpu::place(gpu::tile_count(x.seq_q, Br), x.heads);
  const auto q = gpu::matrix<const float>(x.q, b, h), k = gpu::matrix<const float>(x.k, b, h), v = gpu::matrix<const float>(x.v, b, h);
  const auto o = gpu::matrix<const float>(x.o, b, h), d_o = gpu::matrix<const float>(x.d_o, b, h), lse = gpu::matrix<const float>(x.lse, b, h);
  const auto dq = gpu::matrix<float>(x.dq, b, h), d = gpu::matrix<float>(delta, b, h);
  const int t = int(threadIdx.x), r = t / team, c = t % team, i0 = tile * Br, rows = min(Br, x.seq_q - i0);

  // Load the row tile; dQ is born in registers
  gpu::load_tile(sm.q, q, i0, x.seq_q, x.head_dim, x.scale);  // tau Q_I                       [Br x d]
  gpu::load_tile(sm.d_o, d_o, i0, x.seq_q, x.value_dim);      // dO_I                          [Br x dv]
  if (t < Br) sm.lse[t] = t < rows ? lse(i0 + t, 0) : -INFINITY;  // L_I                       [Br]
  __syncthreads();
  for (int i = t / 32; i < rows; i += Br * team / 32) {       // D_I = rowsum(dO_I o O_I), a warp a row
    float sum = 0.0f;
    for (int e = t % 32; e < x.value_dim; e += 32) sum += sm.d_o[i][e] * o(i0 + i, e);
    sum = gpu::warp_sum(sum);
    if (t % 32 == 0) sm.delta[i] = sum;
  }
  __syncthreads();
  if (t < rows) d(i0 + t, 0) = sm.delta[t];
  float dq_i[D / team] = {};                                  // dQ_I / tau                    [Br x d]

  // Load the column tile
  for (int j0 = 0; j0 < x.seq_k; j0 += Bc) {
    __syncthreads();                                          // the tile before is no longer needed
    gpu::load_tile(sm.k, k, j0, x.seq_k, x.head_dim);         // K_J                           [Bc x d]
    gpu::load_tile(sm.v, v, j0, x.seq_k, x.value_dim);        // V_J                           [Bc x dv]
    __syncthreads();                                          // the tile is complete

    // Recompute the weights, and go back through softmax. An empty row is left out
    const int keys = sm.lse[r] == -INFINITY ? 0 : min(Bc, x.seq_k - j0);
#pragma unroll
    for (int n = 0; n < Bc / team; ++n) {
      const int j = c + team * n;
      if (j >= keys) continue;
      const float p = gpu::exp(gpu::dot<D>(sm.q[r], sm.k[j]) - sm.lse[r]);  // P = exp(S - L)  [Br x Bc]
      sm.ds[r][j] = p * (gpu::dot<D>(sm.d_o[r], sm.v[j]) - sm.delta[r]);    // dS = P o (dP - D), dP = dO_I V_J^T  [Br x Bc]
    }
    __syncwarp();                                             // the threads of a row see each other's dS

    // Back through S = tau Q K^T
    float sum[D / team] = {};
    for (int j = 0; j < keys; ++j) {
#pragma unroll
      for (int n = 0; n < D / team; ++n) sum[n] += sm.ds[r][j] * sm.k[j][c + team * n];
    }
#pragma unroll
    for (int n = 0; n < D / team; ++n) dq_i[n] += sum[n];     // dQ_I += tau dS K_J
  }

  // Store through the place of Q
  __syncthreads();
#pragma unroll
  for (int n = 0; n < D / team; ++n) sm.q[r][c + team * n] = x.scale * dq_i[n];
  __syncthreads();
  gpu::store_tile(sm.q, dq, i0, x.seq_q, x.head_dim);
}

// A block owns Bc keys: dK and dV. The column_kernel of backward.cu without dQ
template <int Br, int Bc, int D> __global__ void __launch_bounds__(Bc * team, 1) column_kernel(const gpu::Problem x, const gpu::Tensor delta) {
  auto& sm = gpu::shared_storage<Storage<Br, Bc, D>>();
  const auto [tile, h, b] = gpu::place(gpu::tile_count(x.seq_k, Bc), x.heads);
  const auto q = gpu::matrix<const float>(x.q, b, h), k = gpu::matrix<const float>(x.k, b, h), v = gpu::matrix<const float>(x.v, b, h);
  const auto d_o = gpu::matrix<const float>(x.d_o, b, h), lse = gpu::matrix<const float>(x.lse, b, h), d = gpu::matrix<const float>(delta, b, h);
  const auto dk = gpu::matrix<float>(x.dk, b, h), dv = gpu::matrix<float>(x.dv, b, h);
  const int t = int(threadIdx.x), j = t / team, c = t % team, j0 = tile * Bc;

  // Load the column tile; dK and dV are born in registers
  gpu::load_tile(sm.k, k, j0, x.seq_k, x.head_dim);           // K_J                           [Bc x d]
  gpu::load_tile(sm.v, v, j0, x.seq_k, x.value_dim);          // V_J                           [Bc x dv]
  float dk_j[D / team] = {};                                  // dK_J                          [Bc x d]
  float dv_j[D / team] = {};                                  // dV_J                          [Bc x dv]

  // Load the row tile
  for (int i0 = 0; i0 < x.seq_q; i0 += Br) {
    __syncthreads();                                          // the tile before is no longer needed
    gpu::load_tile(sm.q, q, i0, x.seq_q, x.head_dim, x.scale);  // tau Q_I                     [Br x d]
    gpu::load_tile(sm.d_o, d_o, i0, x.seq_q, x.value_dim);    // dO_I                          [Br x dv]
    for (int i = t; i < Br; i += Bc * team) {                 // L_I, D_I                      [Br]
      sm.lse[i] = i0 + i < x.seq_q ? lse(i0 + i, 0) : -INFINITY;  // a row that does not exist is as an empty one
      sm.delta[i] = i0 + i < x.seq_q ? d(i0 + i, 0) : 0.0f;
    }
    __syncthreads();                                          // the tile is complete

    // Recompute the weights: no maximum, no rescaling
    float p[Br / team];
#pragma unroll
    for (int n = 0; n < Br / team; ++n) {                     // P^T = exp(S - L)^T            [Bc x Br]
      const int i = c + team * n;
      p[n] = sm.lse[i] == -INFINITY ? 0.0f : gpu::exp(gpu::dot<D>(sm.q[i], sm.k[j]) - sm.lse[i]);
      sm.p[j][i] = p[n];
    }
    __syncwarp();                                             // the threads of a key see each other's P

    // Back through O = P V. Empty rows are left out, not multiplied by 0: whatever they hold, it stays there
    float sum[D / team] = {};
    for (int i = 0; i < Br; ++i) {
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
    __syncwarp();                                             // the threads of a key see each other's dS

    // Back through S = tau Q K^T
    for (int i = 0; i < Br; ++i) {
      if (sm.lse[i] == -INFINITY) continue;
#pragma unroll
      for (int n = 0; n < D / team; ++n) sum[n] += sm.p[j][i] * sm.q[i][c + team * n];
    }
#pragma unroll
    for (int n = 0; n < D / team; ++n) dk_j[n] += sum[n];     // dK_J += tau dS^T Q_I
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
  gpu::launch_tiles(row_kernel<Br, Bc, D>, x, gpu::tile_count(x.seq_q, Br), x.heads, Br * team, sizeof(Storage<Br, Bc, D>), x, delta);
  gpu::launch_tiles(column_kernel<Br, Bc, D>, x, gpu::tile_count(x.seq_k, Bc), x.heads, Bc * team, sizeof(Storage<Br, Bc, D>), x, delta);
}
template <int Br, int Bc, int D> constexpr gpu::Compiled compiled() {
  return {gpu::Element::float32, Br, Bc, D, (Br > Bc ? Br : Bc) * team, sizeof(Storage<Br, Bc, D>), 75, start<Br, Bc, D>};
}

}  // namespace

gpu::Kernels backward_two_kernels() {
  static constexpr gpu::Compiled all[] = {
      compiled<32, 32, 32>(), compiled<32, 32, 64>(), compiled<16, 32, 128>(), compiled<16, 16, 256>(),  // the default of each dimension first
      compiled<16, 64, 32>(), compiled<16, 64, 64>(), compiled<64, 16, 32>(), compiled<64, 16, 64>()};
  return all;
}

}  // namespace flashsteps::step06
