// FlashAttention-1, forward, on tensor cores (math 4.1): half or bfloat16 in and out, sums in float.
// A block has a whole head. Column tiles outside, row tiles inside: O, m and l lie in global memory as floats, and come and go for every tile.
// Warps split the tile over keys, so they exchange maxima, sums and products in shared memory (5.4).
#include "common/cuda/buffer.hpp"
#include "common/cuda/tile16.hpp"
#include "steps/04_fa1_tiled/kernels.hpp"

namespace flashsteps::step04 {
namespace {

constexpr int slice = 32;  // columns of the products that are exchanged at a time: a lane for each when they are added

template <class T, int Br, int Bc, int D, int W> struct Storage {
  gpu::Tile16<T, Br, D> q;
  gpu::Tile16<T, Bc, D> k, v;
  float top[W][Br];        // of every warp: the maxima over its keys, their sums, and a slice of their products with V
  float sum[W][Br];
  float pv[W][Br][slice + 8];  // + 8: four rows that are written together lie in different banks
};

/// What the blocks keep in global memory.
struct Workspace {
  float *o, *m, *l;        // [batch, heads, Nq, dv]  [batch, heads, Nq]  [batch, heads, Nq]
};

/// Every warp has Bc / W keys of a tile and sees all its queries. Then the warps share the rows for the merge, a lane each.
template <class T, int Br, int Bc, int D, int W>
__global__ void __launch_bounds__(W * 32, 1) forward_tensor_core_kernel(const gpu::Problem x, const Workspace work) {
  // Find the head of this block
  constexpr int threads = W * 32, keys = Bc / W, rows = Br / W;
  static_assert((Br == 16 || Br == 32) && keys % 16 == 0 && D % slice == 0);
  auto& sm = gpu::shared_storage<Storage<T, Br, Bc, D, W>>();
  const auto [tile, h, b] = gpu::place(1, x.heads);
  const auto q = gpu::matrix<const T>(x.q, b, h), k = gpu::matrix<const T>(x.k, b, h), v = gpu::matrix<const T>(x.v, b, h);
  const auto o = gpu::matrix<T>(x.o, b, h);
  const auto lse = gpu::matrix<float>(x.lse, b, h);
  const std::int64_t head = std::int64_t(blockIdx.x) * x.seq_q;   // where this head starts
  const gpu::Matrix<float> sums{work.o + head * x.value_dim, x.value_dim};
  float *const m = work.m + head, *const l = work.l + head;
  const int warp = int(threadIdx.x) / 32, lane = int(threadIdx.x) % 32, row = lane % Br, owner = lane / rows;
  const int g = lane / 4, c = lane % 4 * 2;  // of each 16 x 8 of S and P V a thread has (g, c), (g, c + 1), (g + 8, c), (g + 8, c + 1)

  // O = 0, m = -inf, l = 0
  for (int i = warp; i < x.seq_q; i += W)
    for (int y = lane; y < x.value_dim; y += 32) sums(i, y) = 0.0f;
  for (int i = threadIdx.x; i < x.seq_q; i += threads) m[i] = -INFINITY, l[i] = 0.0f;

  // Load the column tile
  for (int j0 = 0; j0 < x.seq_k; j0 += Bc) {
    gpu::load_tile_async<threads>(sm.k, k, j0, x.seq_k, x.head_dim);   // K_J                     [Bc x d]
    gpu::load_tile_async<threads>(sm.v, v, j0, x.seq_k, x.value_dim);  // V_J                     [Bc x dv]

    // Load the row tile
    for (int i0 = 0; i0 < x.seq_q; i0 += Br) {
      gpu::load_tile_async<threads>(sm.q, q, i0, x.seq_q, x.head_dim);  // Q_I                    [Br x d]
      gpu::copy_async_commit();
      gpu::copy_async_wait();
      __syncthreads();                                             // the tiles are complete

      // Score the keys of the warp, in powers of 2
      float s[Br / 16][keys / 8][4] = {};
#pragma unroll
      for (int y = 0; y < D / 16; ++y) {                           // S = Q_I K_J^T                 [Br x Bc / W]
        std::uint32_t q_i[Br / 16][4], k_j[4];
#pragma unroll
        for (int t = 0; t < Br / 16; ++t) gpu::load_16x16(q_i[t], sm.q, 16 * t, 16 * y);
#pragma unroll
        for (int n = 0; n < keys / 16; ++n) {
          gpu::load_16x16(k_j, sm.k, warp * keys + 16 * n, 16 * y);
#pragma unroll
          for (int t = 0; t < Br / 16; ++t) {
            gpu::mma_16x8x16<T>(s[t][2 * n], q_i[t], k_j[0], k_j[2]);
            gpu::mma_16x8x16<T>(s[t][2 * n + 1], q_i[t], k_j[1], k_j[3]);
          }
        }
      }

      // Weigh them against the maximum of the whole tile
#pragma unroll
      for (int t = 0; t < Br / 8; ++t) {                           // the rows 8 t + g
        float most = -INFINITY;
#pragma unroll
        for (int n = 0; n < keys / 8; ++n) {
#pragma unroll
          for (int e = t % 2 * 2; e < t % 2 * 2 + 2; ++e) {        // S = tau log2(e) S
            float& s_ij = s[t / 2][n][e];
            s_ij = j0 + warp * keys + 8 * n + c + e % 2 < x.seq_k ? s_ij * (x.scale * gpu::log2_e) : -INFINITY;
            most = fmaxf(most, s_ij);
          }
        }
        most = gpu::warp_max<4>(most);
        if (c == 0)
          sm.top[warp][8 * t + g] = most;                          // written: W Br
      }
      __syncthreads();                                             // every warp needs the maxima of all
      float top = -INFINITY;
#pragma unroll
      for (int w = 0; w < W; ++w)
        top = fmaxf(top, sm.top[w][row]);                          // read: W W Br                  m~ = rowmax(S)
#pragma unroll
      for (int t = 0; t < Br / 8; ++t) {
        const float m_tile = __shfl_sync(gpu::full_warp, top, 8 * t + g);
        float sum = 0.0f;
#pragma unroll
        for (int n = 0; n < keys / 8; ++n) {
#pragma unroll
          for (int e = t % 2 * 2; e < t % 2 * 2 + 2; ++e) {        // P~ = E(S, m~)                 [Br x Bc / W]
            s[t / 2][n][e] = gpu::exp2_shifted(s[t / 2][n][e], m_tile);
            sum += s[t / 2][n][e];
          }
        }
        sum = gpu::warp_sum<4>(sum);
        if (c == 0)
          sm.sum[warp][8 * t + g] = sum;                           // written: W Br                 l~ = rowsum(P~), once they are added
      }

      float al = 0.0f, beta = 0.0f, l_new = 0.0f;                  // of the row of this lane, in the warp that owns it
      for (int c0 = 0; c0 < x.value_dim; c0 += slice) {
        float pv[Br / 16][slice / 8][4] = {};
#pragma unroll
        for (int n = 0; n < keys / 16; ++n) {                      // P~ V_J, once they are added   [Br x slice]
#pragma unroll
          for (int y = 0; y < slice / 16; ++y) {
            std::uint32_t v_j[4];
            gpu::load_16x16_transposed(v_j, sm.v, warp * keys + 16 * n, c0 + 16 * y);
#pragma unroll
            for (int t = 0; t < Br / 16; ++t) {                    // two results of mma are, as they lie, one operand a
              const auto &s0 = s[t][2 * n], &s1 = s[t][2 * n + 1];
              const std::uint32_t p[4] = {gpu::pack<T>(s0[0], s0[1]), gpu::pack<T>(s0[2], s0[3]), gpu::pack<T>(s1[0], s1[1]), gpu::pack<T>(s1[2], s1[3])};
              gpu::mma_16x8x16<T>(pv[t][2 * y], p, v_j[0], v_j[1]);
              gpu::mma_16x8x16<T>(pv[t][2 * y + 1], p, v_j[2], v_j[3]);
            }
          }
        }
#pragma unroll
        for (int t = 0; t < Br / 8; ++t) {
#pragma unroll
          for (int y = 0; y < slice / 8; ++y) {
            const float* pair = pv[t / 2][y] + t % 2 * 2;
            gpu::store_float2(&sm.pv[warp][8 * t + g][8 * y + c], make_float2(pair[0], pair[1]));  // written: W Br dv
          }
        }
        __syncthreads();                                           // the sums and this slice of the products are complete

        // Merge the tile with what was summed so far
        if (c0 == 0 && owner == warp) {
          float sum = 0.0f;
#pragma unroll
          for (int w = 0; w < W; ++w)
            sum += sm.sum[w][row];                                 // read: W Br
          if (i0 + row < x.seq_q) {
            float &m_i = m[i0 + row], &l_i = l[i0 + row];
            const float m_old = m_i, m_new = fmaxf(m_old, top);    // m_new = max(m, m~)            [Br]
            beta = gpu::exp2_shifted(top, m_new);                  // b = E(m~, m_new)              [Br]
            al = gpu::exp2_shifted(m_old, m_new) * l_i;            // a l, where a = E(m, m_new)    [Br]
            l_new = al + beta * sum;                               // l_new = a l + b l~            [Br]
            m_i = m_new, l_i = l_new;
          }
        }
#pragma unroll
        for (int n = 0; n < rows; ++n) {
          const int r = warp * rows + n, y = c0 + lane;
          const float old_weight = __shfl_sync(gpu::full_warp, al, r), weight = __shfl_sync(gpu::full_warp, beta, r);
          const float total = __shfl_sync(gpu::full_warp, l_new, r);
          float product = 0.0f;
#pragma unroll
          for (int w = 0; w < W; ++w)
            product += sm.pv[w][r][lane];                          // read: W Br dv
          if (i0 + r < x.seq_q && y < x.value_dim) {
            float& o_i = sums(i0 + r, y);                          // O_I = diag(l_new)^-1 (diag(a l) O_I + diag(b) P~ V_J)
            o_i = total == 0.0f ? 0.0f : (old_weight * o_i + weight * product) / total;
          }
        }
        if (c0 + slice < x.value_dim) __syncthreads();             // this slice is no longer needed
      }
    }
  }

  // Algorithm 1 ends here, with L in two parts and O in float
  __syncthreads();                                                 // other threads see O, m and l
  for (int i = warp; i < x.seq_q; i += W)
    for (int y = lane; y < x.value_dim; y += 32) o(i, y) = gpu::from_float<T>(sums(i, y));
  for (int i = threadIdx.x; i < x.seq_q; i += threads) {
    const float m_i = m[i], l_i = l[i];
    lse(i, 0) = m_i * gpu::ln_2 + gpu::log(l_i);  // L_I = m + log(l); in an empty row both are -inf
  }
}

template <class T, int Br, int Bc, int D, int W> void start(const gpu::Problem& x) {
  const std::size_t rows = std::size_t(x.batch) * x.heads * x.seq_q;
  gpu::Buffer<float> o(rows * x.value_dim, "o_float"), m(rows, "m"), l(rows, "l");
  gpu::launch_tiles(forward_tensor_core_kernel<T, Br, Bc, D, W>, x, x.seq_q > 0 ? 1 : 0, x.heads, W * 32, sizeof(Storage<T, Br, Bc, D, W>), x,
                    {o.data(), m.data(), l.data()});
}
template <class T, int Br, int Bc, int D, int W = 4> constexpr gpu::Compiled compiled(gpu::Element element) {
  return {element, Br, Bc, D, W * 32, sizeof(Storage<T, Br, Bc, D, W>), 80, start<T, Br, Bc, D, W>};
}

}  // namespace

gpu::Kernels forward_tensor_core_kernels() {
  constexpr auto half = gpu::Element::half, bfloat16 = gpu::Element::bfloat16;
  using F = __half;
  using B = __nv_bfloat16;
  static constexpr gpu::Compiled all[] = {
      compiled<F, 32, 64, 32>(half), compiled<F, 32, 64, 64>(half), compiled<F, 32, 64, 128>(half), compiled<F, 16, 64, 256>(half),  // the defaults
      compiled<F, 32, 32, 32, 2>(half), compiled<F, 16, 64, 64>(half), compiled<F, 32, 128, 32>(half), compiled<F, 32, 128, 64, 8>(half),
      compiled<B, 32, 64, 32>(bfloat16), compiled<B, 32, 64, 64>(bfloat16), compiled<B, 32, 64, 128>(bfloat16), compiled<B, 16, 64, 256>(bfloat16),
      compiled<B, 32, 32, 32, 2>(bfloat16), compiled<B, 16, 64, 64>(bfloat16), compiled<B, 32, 128, 32>(bfloat16), compiled<B, 32, 128, 64, 8>(bfloat16)};
  return all;
}

}  // namespace flashsteps::step04
