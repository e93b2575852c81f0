// Standard attention on a GPU: S and P stand in global memory, whole (math 1.1; FlashAttention, Algorithm 0).
// Three kernels: two matrix products by tiles, and between them the softmax, which passes three times over a row of S.
#include "common/cuda/buffer.hpp"
#include "common/cuda/kernel.hpp"
#include "steps/01_safe_softmax_3pass/block_reduction.hpp"
#include "steps/01_safe_softmax_3pass/kernels.hpp"
#include <algorithm>

namespace flashsteps::step01 {
namespace {

constexpr int threads = 128, warps = threads / 32;
constexpr int tile = 32;            // rows and columns of S that a block computes
constexpr int rows = tile / warps;  // of the tile that a thread has: warp w has the rows w, w + 4, ...

template <int D> struct ScoresStorage {
  float q[tile][D + 1];             // + 1: rows start in different banks
  float k[tile][D + 1];
};
struct SoftmaxStorage {
  float maxima[warps], sums[warps];
};
template <int D> struct OutputStorage {
  float p[tile][tile + 1];
  float v[tile][D + 1];
  float lse[tile];
};

/// S = tau Q K^T: a block a tile of S, a lane a key.
template <int D> __global__ void __launch_bounds__(threads) scores_kernel(const gpu::Problem x, const gpu::Tensor scores) {
  auto& sm = gpu::shared_storage<ScoresStorage<D>>();
  const int column_tiles = gpu::tile_count(x.seq_k, tile);
  const auto [place, h, b] = gpu::place(gpu::tile_count(x.seq_q, tile) * column_tiles, x.heads);
  const auto q = gpu::matrix<const float>(x.q, b, h), k = gpu::matrix<const float>(x.k, b, h);
  const auto s = gpu::matrix<float>(scores, b, h);
  const int warp = int(threadIdx.x) / 32, lane = int(threadIdx.x) % 32;
  const int i0 = place / column_tiles * tile, j0 = place % column_tiles * tile;

  // Score 32 queries with 32 keys
  gpu::load_tile(sm.q, q, i0, x.seq_q, x.head_dim, x.scale);  // tau Q_I                       [Br x d]
  gpu::load_tile(sm.k, k, j0, x.seq_k, x.head_dim);           // K_J                           [Bc x d]
  __syncthreads();                                            // both tiles are complete
  for (int r = warp; r < tile; r += warps)                    // S_IJ = tau Q_I K_J^T          [Br x Bc]
    if (i0 + r < x.seq_q && j0 + lane < x.seq_k) s(i0 + r, j0 + lane) = gpu::dot<D>(sm.q[r], sm.k[lane]);
}

/// P = softmax(S), and L: a block a row.
__global__ void __launch_bounds__(threads) softmax_kernel(const gpu::Problem x, const gpu::Tensor scores, const gpu::Tensor weights) {
  auto& sm = gpu::shared_storage<SoftmaxStorage>();
  const auto [i, h, b] = gpu::place(x.seq_q, x.heads);
  const auto s = gpu::matrix<const float>(scores, b, h);
  const auto p = gpu::matrix<float>(weights, b, h), lse = gpu::matrix<float>(x.lse, b, h);
  const int t = int(threadIdx.x);

  // Pass over a row of S three times
  float m = -INFINITY, l = 0.0f;
  for (int j = t; j < x.seq_k; j += threads) m = fmaxf(m, s(i, j));                // pass 1: m = max s
  m = block_max(sm.maxima, m);
  for (int j = t; j < x.seq_k; j += threads) l += gpu::exp_shifted(s(i, j), m);    // pass 2: l = sum E(s, m)
  l = block_sum(sm.sums, l);
  for (int j = t; j < x.seq_k; j += threads) p(i, j) = l == 0.0f ? 0.0f : gpu::exp_shifted(s(i, j), m) / l;  // pass 3: p = E(s, m) / l
  if (t == 0) lse(i, 0) = l == 0.0f ? -INFINITY : m + gpu::log(l);                 // L_i = m + log(l)
}

/// O = P V: a block a tile of rows, a lane the columns lane, lane + 32, ...
template <int D> __global__ void __launch_bounds__(threads) output_kernel(const gpu::Problem x, const gpu::Tensor weights) {
  auto& sm = gpu::shared_storage<OutputStorage<D>>();
  const auto [row_tile, h, b] = gpu::place(gpu::tile_count(x.seq_q, tile), x.heads);
  const auto p = gpu::matrix<const float>(weights, b, h), v = gpu::matrix<const float>(x.v, b, h);
  const auto o = gpu::matrix<float>(x.o, b, h);
  const auto lse = gpu::matrix<const float>(x.lse, b, h);
  const int warp = int(threadIdx.x) / 32, lane = int(threadIdx.x) % 32, i0 = row_tile * tile;

  float o_i[rows][D / 32] = {};                               // O_I                           [Br x dv]
  for (int j0 = 0; j0 < x.seq_k; j0 += tile) {
    __syncthreads();                                          // the tiles before are no longer needed
    const gpu::Matrix<const float> p_j{p.data + j0, p.stride};
    gpu::load_tile(sm.p, p_j, i0, x.seq_q, x.seq_k - j0);     // P_IJ                          [Br x Bc]
    gpu::load_tile(sm.v, v, j0, x.seq_k, x.value_dim);        // V_J                           [Bc x dv]
    __syncthreads();                                          // both tiles are complete
    const int keys = min(tile, x.seq_k - j0);
#pragma unroll
    for (int r = 0; r < rows; ++r) {
      float pv[D / 32] = {};
      for (int j = 0; j < keys; ++j) {
#pragma unroll
        for (int n = 0; n < D / 32; ++n) pv[n] += sm.p[warp + warps * r][j] * sm.v[j][lane + 32 * n];
      }
#pragma unroll
      for (int n = 0; n < D / 32; ++n) o_i[r][n] += pv[n];    // O_I = O_I + P_IJ V_J
    }
  }

  // A row that saw no key is 0, whatever V holds (E1)
  if (warp == 0 && i0 + lane < x.seq_q) sm.lse[lane] = lse(i0 + lane, 0);
  __syncthreads();                                            // L_I is complete
#pragma unroll
  for (int r = 0; r < rows; ++r) {
    const int i = warp + warps * r;
#pragma unroll
    for (int n = 0; n < D / 32; ++n)
      if (i0 + i < x.seq_q && lane + 32 * n < x.value_dim) o(i0 + i, lane + 32 * n) = sm.lse[i] == -INFINITY ? 0.0f : o_i[r][n];
  }
}

template <int D> void start(const gpu::Problem& x) {
  const std::int64_t size = std::int64_t(x.seq_q) * x.seq_k;  // of S in one head
  gpu::Buffer<float> s(std::size_t(x.batch * x.heads * size), "s"), p(s.size(), "p");
  const gpu::Tensor scores{s.data(), x.heads * size, size, x.seq_k}, weights{p.data(), x.heads * size, size, x.seq_k};
  const int row_tiles = gpu::tile_count(x.seq_q, tile), column_tiles = gpu::tile_count(x.seq_k, tile);
  gpu::launch_tiles(scores_kernel<D>, x, row_tiles * column_tiles, x.heads, threads, sizeof(ScoresStorage<D>), x, scores);
  gpu::launch_tiles(softmax_kernel, x, x.seq_q, x.heads, threads, sizeof(SoftmaxStorage), x, scores, weights);
  gpu::launch_tiles(output_kernel<D>, x, row_tiles, x.heads, threads, sizeof(OutputStorage<D>), x, weights);
}
template <int D> constexpr gpu::Compiled compiled() {
  return {gpu::Element::float32, tile, tile, D, threads, std::max(sizeof(ScoresStorage<D>), sizeof(OutputStorage<D>)), 75, start<D>};
}

}  // namespace

gpu::Kernels standard_kernels() {
  static constexpr gpu::Compiled all[] = {compiled<32>(), compiled<64>(), compiled<128>(), compiled<256>()};
  return all;
}

}  // namespace flashsteps::step01
