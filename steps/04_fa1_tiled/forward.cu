// FlashAttention-1, forward, on a GPU (math 4.1; FlashAttention, Algorithm 1).
// A block has a whole head, so that there are only batch x heads of them (5.5). Column tiles outside, row tiles inside: O, m and l lie in global
// memory, and come and go for every tile. Warps split the tile over keys, so they exchange maxima, sums and products in shared memory (5.4).
#include "common/cuda/buffer.hpp"
#include "common/cuda/kernel.hpp"
#include "steps/04_fa1_tiled/kernels.hpp"

namespace flashsteps::step04 {
namespace {

constexpr int slice = 32;  // columns of the products that are exchanged at a time: a lane for each when they are added

template <int Br, int Bc, int D, int W> struct Storage {
  float q[Br][D + 1];      // + 1: rows start in different banks
  float k[Bc][D + 1];
  float v[Bc][D + 1];
  float top[W][Br];        // of every warp: the maxima over its keys, their sums, and a slice of their products with V
  float sum[W][Br];
  float pv[W][Br][slice + 1];
};

/// Every warp has Bc / W keys of a tile and sees all its queries, a lane each. Then the warps share the rows for the merge.
template <int Br, int Bc, int D, int W> __global__ void __launch_bounds__(W * 32) forward_kernel(const gpu::Problem x, float* const m, float* const l) {
  // Find the head of this block
  static_assert(Br == 32 && D % slice == 0);
  constexpr int keys = Bc / W, rows = Br / W;
  auto& sm = gpu::shared_storage<Storage<Br, Bc, D, W>>();
  const auto [tile, h, b] = gpu::place(1, x.heads);
  const auto q = gpu::matrix<const float>(x.q, b, h), k = gpu::matrix<const float>(x.k, b, h), v = gpu::matrix<const float>(x.v, b, h);
  const auto o = gpu::matrix<float>(x.o, b, h), lse = gpu::matrix<float>(x.lse, b, h);
  const std::int64_t head = std::int64_t(blockIdx.x) * x.seq_q;  // where m and l of this head start
  const int warp = int(threadIdx.x) / 32, lane = int(threadIdx.x) % 32, owner = lane / rows;

  // O = 0, m = -inf, l = 0
  for (int i = warp; i < x.seq_q; i += W)
    for (int c = lane; c < x.value_dim; c += 32) o(i, c) = 0.0f;
  for (int i = threadIdx.x; i < x.seq_q; i += blockDim.x) m[head + i] = -INFINITY, l[head + i] = 0.0f;

  // Load the column tile
  for (int j0 = 0; j0 < x.seq_k; j0 += Bc) {
    gpu::load_tile(sm.k, k, j0, x.seq_k, x.head_dim);              // K_J                           [Bc x d]
    gpu::load_tile(sm.v, v, j0, x.seq_k, x.value_dim);             // V_J                           [Bc x dv]

    // Load the row tile
    for (int i0 = 0; i0 < x.seq_q; i0 += Br) {
      gpu::load_tile(sm.q, q, i0, x.seq_q, x.head_dim, x.scale);   // tau Q_I                       [Br x d]
      __syncthreads();                                             // the tiles are complete

      // Weigh the keys of the warp against the maximum of the whole tile
      float p[keys] = {}, top = -INFINITY, sum = 0.0f;
      for (int c0 = 0; c0 < D; c0 += 8) {                          // S = tau Q_I K_J^T             [Br x Bc / W]
        float part[keys] = {};                                     // of 8 columns: many short sums lose less than a long one
#pragma unroll
        for (int c = c0; c < c0 + 8; ++c) {
          const float q_c = sm.q[lane][c];
#pragma unroll
          for (int n = 0; n < keys; ++n) part[n] += q_c * sm.k[warp * keys + n][c];
        }
#pragma unroll
        for (int n = 0; n < keys; ++n) p[n] += part[n];
      }
#pragma unroll
      for (int n = 0; n < keys; ++n) {
        if (j0 + warp * keys + n >= x.seq_k) p[n] = -INFINITY;
        top = fmaxf(top, p[n]);
      }

      // Exchange the maxima, then the sums
      sm.top[warp][lane] = top;                                    // written: W Br
      __syncthreads();                                             // every warp needs the maxima of all
#pragma unroll
      for (int w = 0; w < W; ++w)
        top = fmaxf(top, sm.top[w][lane]);                         // read: W W Br                  m~ = rowmax(S)
#pragma unroll
      for (int n = 0; n < keys; ++n) {                             // P~ = E(S, m~)                 [Br x Bc / W]
        p[n] = gpu::exp_shifted(p[n], top);
        sum += p[n];
      }
      sm.sum[warp][lane] = sum;                                    // written: W Br                 l~ = rowsum(P~), once they are added

      float al = 0.0f, beta = 0.0f, l_new = 0.0f;                  // of the row of this lane, in the warp that owns it
      for (int c0 = 0; c0 < x.value_dim; c0 += slice) {
        // Exchange a slice of the products
#pragma unroll 8
        for (int c = 0; c < slice; ++c) {
          float pv = 0.0f;
#pragma unroll
          for (int n = 0; n < keys; ++n) pv += p[n] * sm.v[warp * keys + n][c0 + c];
          sm.pv[warp][lane][c] = pv;                               // written: W Br dv              P~ V_J, once they are added
        }
        __syncthreads();                                           // the sums and this slice of the products are complete

        // Merge the tile with what was summed so far
        if (c0 == 0 && owner == warp) {
          sum = 0.0f;
#pragma unroll
          for (int w = 0; w < W; ++w)
            sum += sm.sum[w][lane];                                // read: W Br
          if (i0 + lane < x.seq_q) {
            float& m_i = m[head + i0 + lane];
            float& l_i = l[head + i0 + lane];
            const float m_old = m_i, m_new = fmaxf(m_old, top);    // m_new = max(m, m~)            [Br]
            beta = gpu::exp_shifted(top, m_new);                   // b = E(m~, m_new)              [Br]
            al = gpu::exp_shifted(m_old, m_new) * l_i;             // a l, where a = E(m, m_new)    [Br]
            l_new = al + beta * sum;                               // l_new = a l + b l~            [Br]
            m_i = m_new, l_i = l_new;
          }
        }
#pragma unroll
        for (int n = 0; n < rows; ++n) {
          const int r = warp * rows + n, c = c0 + lane;
          const float old_weight = __shfl_sync(gpu::full_warp, al, r), weight = __shfl_sync(gpu::full_warp, beta, r);
          const float total = __shfl_sync(gpu::full_warp, l_new, r);
          float pv = 0.0f;
#pragma unroll
          for (int w = 0; w < W; ++w)
            pv += sm.pv[w][r][lane];                               // read: W Br dv
          if (i0 + r < x.seq_q && c < x.value_dim) {
            float& o_i = o(i0 + r, c);                             // O_I = diag(l_new)^-1 (diag(a l) O_I + diag(b) P~ V_J)
            o_i = total == 0.0f ? 0.0f : (old_weight * o_i + weight * pv) / total;
          }
        }
        if (c0 + slice < x.value_dim) __syncthreads();             // this slice is no longer needed
      }
    }
  }

  // Algorithm 1 ends here, with L in two parts
  __syncthreads();                                                 // other threads see m and l
  for (int i = threadIdx.x; i < x.seq_q; i += blockDim.x) {
    const float m_i = m[head + i], l_i = l[head + i];
    lse(i, 0) = m_i + gpu::log(l_i);                               // L_I = m + log(l); in an empty row both are -inf
  }
}

template <int Br, int Bc, int D, int W> void start(const gpu::Problem& x) {
  const std::size_t rows = std::size_t(x.batch) * x.heads * x.seq_q;
  gpu::Buffer<float> m(rows, "m"), l(rows, "l");
  gpu::launch_tiles(forward_kernel<Br, Bc, D, W>, x, x.seq_q > 0 ? 1 : 0, x.heads, W * 32, sizeof(Storage<Br, Bc, D, W>), x, m.data(), l.data());
}
template <int Br, int Bc, int D, int W = 4> constexpr gpu::Compiled compiled() {
  return {gpu::Element::float32, Br, Bc, D, W * 32, sizeof(Storage<Br, Bc, D, W>), 75, start<Br, Bc, D, W>};
}

}  // namespace

gpu::Kernels forward_kernels() {
  static constexpr gpu::Compiled all[] = {
      compiled<32, 32, 32>(), compiled<32, 32, 64>(), compiled<32, 16, 128>(), compiled<32, 16, 256>(),  // the default of each dimension first
      compiled<32, 64, 32, 8>(), compiled<32, 64, 64, 8>(), compiled<32, 16, 32>(), compiled<32, 16, 64>()};
  return all;
}

}  // namespace flashsteps::step04
