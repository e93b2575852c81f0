// Attention in three sweeps over the keys, on a GPU (math 1.3, p = 3).
// A block owns one query row. S is never stored: each sweep computes it again, and reads K again.
#include "common/cuda/kernel.hpp"
#include "steps/01_safe_softmax_3pass/block_reduction.hpp"
#include "steps/01_safe_softmax_3pass/kernels.hpp"

namespace flashsteps::step01 {
namespace {

constexpr int threads = 128;  // and keys of a chunk: a thread computes the score of one of them
constexpr int slice = 32;     // columns of K that are on chip together

template <int D> struct Storage {
  float q[D];
  float k[threads][slice + 1];  // + 1: rows start in different banks
  float p[threads];
  float maxima[threads / 32], sums[threads / 32];
};

/// s = tau q . k_j for the key of this thread, -inf where there is none.
/// K passes through shared memory, so that neighbours read neighbours.
template <int D> __device__ __forceinline__ float score(Storage<D>& sm, const gpu::Matrix<const float>& k, int j0, const gpu::Problem& x) {
  float s = 0.0f;
  for (int x0 = 0; x0 < x.head_dim; x0 += slice) {
    __syncthreads();                                                                  // the slice before is no longer needed
    gpu::load_tile(sm.k, {k.data + x0, k.stride}, j0, x.seq_k, x.head_dim - x0);      // a slice of K_J   [Bc x slice]
    __syncthreads();                                                                  // the slice is complete
    s += gpu::dot<slice>(sm.q + x0, sm.k[threadIdx.x]);
  }
  return j0 + int(threadIdx.x) < x.seq_k ? s : -INFINITY;
}

// 4 blocks a multiprocessor: a thread may have 128 registers, and nothing spills
template <int D> __global__ void __launch_bounds__(threads, 4) forward_kernel(const gpu::Problem x) {
  // Find the query of this block
  auto& sm = gpu::shared_storage<Storage<D>>();
  const auto [i, h, b] = gpu::place(x.seq_q, x.heads);
  const auto q = gpu::matrix<const float>(x.q, b, h), k = gpu::matrix<const float>(x.k, b, h), v = gpu::matrix<const float>(x.v, b, h);
  const auto o = gpu::matrix<float>(x.o, b, h), lse = gpu::matrix<float>(x.lse, b, h);
  const int t = int(threadIdx.x);

  for (int y = t; y < D; y += threads) sm.q[y] = y < x.head_dim ? q(i, y) * x.scale : 0.0f;  // tau q_i   [d]

  // Sweep 1: the maximum
  float m = -INFINITY;
  for (int j0 = 0; j0 < x.seq_k; j0 += threads)
    m = fmaxf(m, score(sm, k, j0, x));                        // m = max(m, s); each thread its keys
  m = block_max(sm.maxima, m);

  // Sweep 2: the sum
  float l = 0.0f;
  for (int j0 = 0; j0 < x.seq_k; j0 += threads)
    l += gpu::exp_shifted(score(sm, k, j0, x), m);            // l = l + E(s, m); each thread its keys
  l = block_sum(sm.sums, l);

  // Sweep 3: the weights, which are shared, and what they weigh; each thread its columns
  constexpr int columns = gpu::tile_count(D, threads);
  float o_i[columns] = {};                                    // o_i                          [dv]
  for (int j0 = 0; j0 < x.seq_k; j0 += threads) {
    sm.p[t] = gpu::exp_shifted(score(sm, k, j0, x), m) / l;   // p = E(s, m) / l              [Bc]
    __syncthreads();                                          // the weights of the chunk are complete
    const int keys = min(threads, x.seq_k - j0);
#pragma unroll
    for (int n = 0; n < columns; ++n) {
      const int y = t + threads * n;
      float pv = 0.0f;
      if (y < x.value_dim)
        for (int j = 0; j < keys; ++j) pv += sm.p[j] * v(j0 + j, y);
      o_i[n] += pv;                                           // o_i = o_i + p V_J
    }
  }

  // Store the row
#pragma unroll
  for (int n = 0; n < columns; ++n)
    if (t + threads * n < x.value_dim) o(i, t + threads * n) = l == 0.0f ? 0.0f : o_i[n];  // a row that saw no key is 0 (E1)
  if (t == 0) lse(i, 0) = l == 0.0f ? -INFINITY : m + gpu::log(l);                         // L_i = m + log(l)
}

template <int D> void start(const gpu::Problem& x) {
  gpu::launch_tiles(forward_kernel<D>, x, x.seq_q, x.heads, threads, sizeof(Storage<D>), x);
}
template <int D> constexpr gpu::Compiled compiled() {
  return {gpu::Element::float32, 1, threads, D, threads, sizeof(Storage<D>), 75, start<D>};
}

}  // namespace

gpu::Kernels forward_kernels() {
  static constexpr gpu::Compiled all[] = {compiled<32>(), compiled<64>(), compiled<128>(), compiled<256>()};
  return all;
}

}  // namespace flashsteps::step01
