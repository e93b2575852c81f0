// Grouped-query attention, forward, on tensor cores (math 8): the kernel of step 07, whose K and V are those of the group.
// They are found by index and never copied: the blocks of a group read the same head of K and V.
// Precondition (math 0.3, E2): V is finite where a tile on the diagonal masks it. P is 0 there, and mma multiplies it: 0 NaN is NaN.
#include "common/cuda/tile16.hpp"
#include "steps/08_gqa/kernels.hpp"

namespace flashsteps::step08 {
namespace {

template <class T, int Br, int Bc, int D> struct Storage {
  struct {
    gpu::Tile16<T, Bc, D> k, v;
  } tile[2];
  static_assert(Br <= 2 * Bc);  // Q_I, and O_I at the end, pass through the place of the second tile
  __device__ auto& rows() { return reinterpret_cast<gpu::Tile16<T, Br, D>&>(tile[1]); }
};

// scale is tau log2(e): scores count in powers of 2. The 1 keeps nvcc from spilling registers for the sake of more blocks at a time.
template <class T, int Br, int Bc, int D> __global__ void __launch_bounds__(2 * Br, 1) forward_tensor_core_kernel(const gpu::Problem x, const float scale) {
  // Find the row tile of this block, and the rows of this warp
  constexpr int threads = 2 * Br;
  auto& sm = gpu::shared_storage<Storage<T, Br, Bc, D>>();
  const auto [tile, h, b] = gpu::place(gpu::tile_count(x.seq_q, Br), x.heads);
  const int kv = h / (x.heads / x.kv_heads);                  // the group of this head
  const auto q = gpu::matrix<const T>(x.q, b, h), k = gpu::matrix<const T>(x.k, b, kv), v = gpu::matrix<const T>(x.v, b, kv);
  const int lane = threadIdx.x % 32, first = threadIdx.x / 32 * 16, i0 = tile * Br;  // `first` of the 16 rows of this warp
  const int r = first + lane / 4, c = lane % 4 * 2;  // of each 16 x 8 of S and O a thread has (r, c), (r, c + 1), (r + 8, c), (r + 8, c + 1)
  const int end = min(x.seq_k, min(i0 + Br, x.seq_q) + x.diagonal);  // keys that the last row sees; <= 0 if none

  // Start to copy a column tile
  const auto fetch = [&](int j0) {
    if (j0 < end) {
      auto& to = sm.tile[j0 / Bc % 2];
      gpu::load_tile_async<threads>(to.k, k, j0, x.seq_k, x.head_dim);   // K_J                [Bc x d]
      gpu::load_tile_async<threads>(to.v, v, j0, x.seq_k, x.value_dim);  // V_J                [Bc x dv]
    }
    gpu::copy_async_commit();
  };

  // Load the row tile; O, m and l are born in registers
  gpu::load_tile_async<threads>(sm.rows(), q, i0, x.seq_q, x.head_dim);
  fetch(0);
  gpu::copy_async_wait();
  __syncthreads();                                            // Q_I is complete, and the first tile
  std::uint32_t q_i[D / 16][4];                               // Q_I                           [16 x d]
#pragma unroll
  for (int y = 0; y < D / 16; ++y) gpu::load_16x16(q_i[y], sm.rows(), first, 16 * y);
  float o_i[D / 8][4] = {};                                   // O_I, not normalised           [16 x dv]
  float m[2] = {-INFINITY, -INFINITY}, l[2] = {0.0f, 0.0f};   // of the rows r and r + 8: maximum of the keys so far, and their sum

  // Wait for the column tile, and start to copy the next one
  for (int j0 = 0; j0 < end; j0 += Bc) {                      // the tiles to the right are skipped
    __syncthreads();                                          // this tile is complete, and the one before no longer needed
    fetch(j0 + Bc);
    const auto& [k_j, v_j] = sm.tile[j0 / Bc % 2];

    // Weigh the tile against the new maximum
    float s[Bc / 8][4] = {};
#pragma unroll
    for (int y = 0; y < D / 16; ++y) {                        // S = Q_I K_J^T                 [16 x Bc]
#pragma unroll
      for (int n = 0; n < Bc / 16; ++n) {
        std::uint32_t b[4];
        gpu::load_16x16(b, k_j, 16 * n, 16 * y);
        gpu::mma_16x8x16<T>(s[2 * n], q_i[y], b[0], b[2]);
        gpu::mma_16x8x16<T>(s[2 * n + 1], q_i[y], b[1], b[3]);
      }
    }
#pragma unroll
    for (int n = 0; n < Bc / 8; ++n) {
#pragma unroll
      for (int e = 0; e < 4; ++e) s[n][e] *= scale;           // S = tau log2(e) S
    }
    if (j0 + Bc > min(x.seq_k, i0 + x.diagonal + 1)) {        // partial: row 0 does not see all of its keys
#pragma unroll
      for (int n = 0; n < Bc / 8; ++n) {
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          const int i = i0 + r + e / 2 * 8, j = j0 + 8 * n + c + e % 2;
          s[n][e] = j < min(x.seq_k, i + x.diagonal + 1) ? s[n][e] : -INFINITY;
        }
      }
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {                    // row r, then row r + 8
      float top = -INFINITY;
#pragma unroll
      for (int n = 0; n < Bc / 8; ++n) top = fmaxf(top, fmaxf(s[n][2 * half], s[n][2 * half + 1]));
      const float m_new = fmaxf(m[half], gpu::warp_max<4>(top));     // m_new = max(m, rowmax(S))
      const float alpha = gpu::exp2_shifted(m[half], m_new);         // alpha = E(m, m_new)
      float sum = 0.0f;
#pragma unroll
      for (int n = 0; n < Bc / 8; ++n) {
#pragma unroll
        for (int e = 2 * half; e < 2 * half + 2; ++e) {
          s[n][e] = gpu::exp2_shifted(s[n][e], m_new);        // P = E(S, m_new)               [16 x Bc]
          sum += s[n][e];
        }
      }
      m[half] = m_new;
      l[half] = alpha * l[half] + sum;                        // l = alpha l + rowsum(P); each thread its keys
#pragma unroll
      for (int y = 0; y < D / 8; ++y) {
#pragma unroll
        for (int e = 2 * half; e < 2 * half + 2; ++e) o_i[y][e] *= alpha;  // O_I = diag(alpha) O_I
      }
    }

    // Add it to what was summed so far: two results of mma are, as they lie, one operand a
#pragma unroll
    for (int n = 0; n < Bc / 16; ++n) {
      const auto &s0 = s[2 * n], &s1 = s[2 * n + 1];
      const std::uint32_t p[4] = {gpu::pack<T>(s0[0], s0[1]), gpu::pack<T>(s0[2], s0[3]), gpu::pack<T>(s1[0], s1[1]), gpu::pack<T>(s1[2], s1[3])};
#pragma unroll
      for (int y = 0; y < D / 16; ++y) {                      // O_I = O_I + P V_J
        std::uint32_t b[4];
        gpu::load_16x16_transposed(b, v_j, 16 * n, 16 * y);
        gpu::mma_16x8x16<T>(o_i[2 * y], p, b[0], b[1]);
        gpu::mma_16x8x16<T>(o_i[2 * y + 1], p, b[2], b[3]);
      }
    }
    gpu::copy_async_wait();                                   // this thread's part of the next tile is there
  }

  // Normalise once, and store
  const auto o = gpu::matrix<T>(x.o, b, h);
  const auto lse = gpu::matrix<float>(x.lse, b, h);
  __syncthreads();                                            // the second tile is no longer needed
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const float sum = gpu::warp_sum<4>(l[half]), factor = 1.0f / sum;
    const int i = r + 8 * half;
#pragma unroll
    for (int y = 0; y < D / 8; ++y) {                         // O_I = diag(l)^-1 O_I
      const std::uint32_t pair = gpu::pack<T>(o_i[y][2 * half] * factor, o_i[y][2 * half + 1] * factor);
      gpu::store_vector(&sm.rows()[i][8 * y + c], sum == 0.0f ? 0u : pair);
    }
    if (c == 0 && i0 + i < x.seq_q) lse(i0 + i, 0) = sum == 0.0f ? -INFINITY : m[half] * gpu::ln_2 + gpu::log(sum);  // L_I = m + log(l)
  }
  __syncthreads();
  gpu::store_tile<threads>(sm.rows(), o, i0, x.seq_q, x.value_dim);
}

template <class T, int Br, int Bc, int D> void start(const gpu::Problem& x) {
  gpu::launch_tiles(forward_tensor_core_kernel<T, Br, Bc, D>, x, gpu::tile_count(x.seq_q, Br), x.heads, 2 * Br, sizeof(Storage<T, Br, Bc, D>), x,
                    x.scale * gpu::log2_e);
}
template <class T, int Br, int Bc, int D> constexpr gpu::Compiled compiled(gpu::Element element) {
  return {element, Br, Bc, D, 2 * Br, sizeof(Storage<T, Br, Bc, D>), 80, start<T, Br, Bc, D>};
}

}  // namespace

gpu::Kernels forward_tensor_core_kernels() {
  constexpr auto half = gpu::Element::half, bfloat16 = gpu::Element::bfloat16;
  using F = __half;
  using B = __nv_bfloat16;
  static constexpr gpu::Compiled all[] = {
      compiled<F, 64, 64, 32>(half), compiled<F, 64, 64, 64>(half), compiled<F, 64, 64, 128>(half), compiled<F, 64, 32, 256>(half),  // the defaults
      compiled<F, 32, 64, 32>(half), compiled<F, 32, 64, 64>(half), compiled<F, 128, 64, 32>(half), compiled<F, 128, 64, 64>(half),
      compiled<B, 64, 64, 32>(bfloat16), compiled<B, 64, 64, 64>(bfloat16), compiled<B, 64, 64, 128>(bfloat16), compiled<B, 64, 32, 256>(bfloat16),
      compiled<B, 32, 64, 32>(bfloat16), compiled<B, 32, 64, 64>(bfloat16), compiled<B, 128, 64, 32>(bfloat16), compiled<B, 128, 64, 64>(bfloat16)};
  return all;
}

}  // namespace flashsteps::step08
