// The primitives, each in a kernel as small as it can be.
#include "common/cuda/buffer.hpp"
#include "common/cuda/copy_async.hpp"
#include "common/cuda/mma.hpp"
#include "common/cuda/vector.hpp"
#include "common/cuda/warp.hpp"
#include "tests/cuda_layer.hpp"

namespace flashsteps::cuda_layer {
namespace {

using gpu::Buffer;
using gpu::full_warp;

template <class T> __global__ void mma_kernel(const std::uint32_t* a, const std::uint32_t* b, float* c) {
  const int i = int(blockIdx.x * 32 + threadIdx.x);
  std::uint32_t a_lane[4];
  float c_lane[4];
  for (int r = 0; r < 4; ++r) a_lane[r] = a[4 * i + r];
  for (int r = 0; r < 4; ++r) c_lane[r] = c[4 * i + r];
  gpu::mma_16x8x16<T>(c_lane, a_lane, b[2 * i], b[2 * i + 1]);
  for (int r = 0; r < 4; ++r) c[4 * i + r] = c_lane[r];
}

struct MatrixRows {
  alignas(16) std::uint32_t row[32][12];  // 8 halves and padding
};
template <int Count, bool Transposed> __global__ void ldmatrix_kernel(const std::uint32_t* in, std::uint32_t* out) {
  auto& sm = gpu::shared_storage<MatrixRows>();
  const int lane = int(threadIdx.x);
  for (int i = 0; i < 4; ++i) sm.row[lane][i] = in[4 * lane + i];
  __syncthreads();
  std::uint32_t r[Count];
  if constexpr (Count == 4 && Transposed) gpu::ldmatrix_x4_transposed(r, sm.row[lane]);
  else if constexpr (Count == 4) gpu::ldmatrix_x4(r, sm.row[lane]);
  else if constexpr (Transposed) gpu::ldmatrix_x2_transposed(r, sm.row[lane]);
  else gpu::ldmatrix_x2(r, sm.row[lane]);
  for (int j = 0; j < Count; ++j) out[Count * lane + j] = r[j];
}

__global__ void shuffles_kernel(int index, int by, int bits, int* out) {
  const int lane = int(threadIdx.x), value = 100 + lane;
  int n = 0;
  for (const int width : {32, 16, 8}) {
    out[12 * lane + n++] = __shfl_sync(full_warp, value, index, width);
    out[12 * lane + n++] = __shfl_up_sync(full_warp, value, by, width);
    out[12 * lane + n++] = __shfl_down_sync(full_warp, value, by, width);
    out[12 * lane + n++] = __shfl_xor_sync(full_warp, value, bits, width);
  }
}

__global__ void wide_shuffles_kernel(double* out) {
  const int lane = int(threadIdx.x);
  out[lane] = __shfl_sync(full_warp, lane * 1e-9 + 1e9, (lane + 1) % 32);
  out[32 + lane] = double(__shfl_sync(full_warp, (1ull << 40) + (unsigned long long)lane, 31 - lane));
}

__global__ void votes_kernel(const int* x, int* out) {
  const int i = int(threadIdx.x);
  out[3 * i] = int(__ballot_sync(full_warp, x[i]));
  out[3 * i + 1] = __any_sync(full_warp, x[i]) != 0;
  out[3 * i + 2] = __all_sync(full_warp, x[i]) != 0;
}

struct HalfWarps {
  int left[16], right[16];
};
__global__ void divergent_kernel(int* out) {
  auto& sm = gpu::shared_storage<HalfWarps>();
  const int lane = int(threadIdx.x);
  int result = 0;
  if (lane < 16) {
    constexpr unsigned mask = 0x0000ffffu;
    for (int i = 0; i < 3; ++i) result += __shfl_xor_sync(mask, lane, 1 << i);
    sm.left[lane] = result;
    __syncwarp(mask);
    result = sm.left[15 - lane];
  } else {
    constexpr unsigned mask = 0xffff0000u;
    sm.right[lane - 16] = __popc(__ballot_sync(mask, lane % 3 == 0)) * 100 + lane;
    __syncwarp(mask);
    result = sm.right[(lane - 16 + 5) % 16];
  }
  __syncwarp();
  out[lane] = result + __shfl_sync(full_warp, result, lane ^ 16);
}

struct Partials {
  float sum[4], top[4];
};
__global__ void reductions_kernel(const float* x, float* out) {
  auto& sm = gpu::shared_storage<Partials>();
  const int t = int(threadIdx.x), warp = t / 32, lane = gpu::lane_id();
  const float value = x[blockIdx.x * 128 + threadIdx.x];
  const float sum = gpu::warp_sum(value), top = gpu::warp_max(value);
  if (lane == 0) {
    sm.sum[warp] = sum;
    sm.top[warp] = top;
  }
  __syncthreads();
  float* mine = out + blockIdx.x * 130;
  if (t == 0) {
    mine[0] = sm.sum[0] + sm.sum[1] + sm.sum[2] + sm.sum[3];
    mine[1] = fmaxf(fmaxf(sm.top[0], sm.top[1]), fmaxf(sm.top[2], sm.top[3]));
  }
  mine[2 + t] = gpu::warp_sum<8>(value);
}

__global__ void transpose_kernel(const float* x, float* y, int n) {
  __shared__ float tile[32][33];
  const int column = int(blockIdx.x * 32 + threadIdx.x);
  for (int r = int(threadIdx.y); r < 32; r += 8) {
    const int row = int(blockIdx.y) * 32 + r;
    if (row < n && column < n) tile[r][threadIdx.x] = x[row * n + column];
  }
  __syncthreads();
  const int to = int(blockIdx.y * 32 + threadIdx.x);
  for (int r = int(threadIdx.y); r < 32; r += 8) {
    const int row = int(blockIdx.x) * 32 + r;
    if (row < n && to < n) y[row * n + to] = tile[threadIdx.x][r];
  }
}

struct TwoTiles {
  alignas(16) float tile[2][64][64];
};
__global__ void async_kernel(const float* x, float* out, int n, int width) {
  auto& sm = gpu::shared_storage<TwoTiles>();
  const int t = int(threadIdx.x), tiles = (n + 63) / 64;
  const auto fetch = [&](int tile) {
    for (int i = t; i < 64 * width / 4; i += 64) {
      const int r = i / (width / 4), c = i % (width / 4) * 4, row = tile * 64 + r;
      gpu::copy_async_16(&sm.tile[tile % 2][r][c], x + (row < n ? row : 0) * width + c, row < n);
    }
    gpu::copy_async_commit();
  };
  float sum = 0;
  fetch(0);
  for (int tile = 0; tile < tiles; ++tile) {
    if (tile + 1 < tiles) {
      fetch(tile + 1);
      gpu::copy_async_wait<1>();
    } else {
      gpu::copy_async_wait<0>();
    }
    __syncthreads();  // every thread's copies have landed
    if (t < width)
      for (int r = 0; r < 64; ++r) sum += sm.tile[tile % 2][r][t];
    __syncthreads();  // before the next fetch overwrites what was read
  }
  if (t < width) out[t] = sum;
}

struct Reversed {
  alignas(16) float x[64];
};
__global__ void reversed_kernel(const float* x, float* out, int n) {
  auto& sm = gpu::shared_storage<Reversed>();
  const int first = 4 * int(threadIdx.x);
  for (int i = first; i < first + 4; ++i) gpu::copy_async_4(&sm.x[i], x + (i < n ? i : 0), i < n);
  gpu::copy_async_commit();
  gpu::copy_async_wait();
  __syncthreads();
  const float4 v = gpu::load_float4(&sm.x[60 - first]);
  gpu::store_float4(out + first, make_float4(v.w, v.z, v.y, v.x));
}

__global__ void histogram_kernel(const int* x, int n, int* counts, unsigned long long* total, unsigned* seen) {
  const int i = int(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= n) return;
  atomicAdd(&counts[x[i]], 1);
  atomicAdd(total, (unsigned long long)x[i]);
  atomicAdd(seen, 1u);
}
__global__ void atomic_sums_kernel(const float* x, int n, float* sums, int bins) {
  const int i = int(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) atomicAdd(&sums[i % bins], x[i]);
}

__global__ void arithmetic_kernel(const float* x, float* out, int n) {
  const int i = int(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= n) return;
  out[3 * i] = gpu::exp(x[i]);
  out[3 * i + 1] = gpu::exp2(x[i]);
  out[3 * i + 2] = gpu::log(x[i]);
}
__global__ void roundings_kernel(const float* x, std::uint32_t* out, int pairs) {
  const int i = int(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= pairs) return;
  const float2 pair = gpu::load_float2(x + 2 * i);
  const uint2 rounded = make_uint2(gpu::pack<__half>(pair.x, pair.y), gpu::pack<__nv_bfloat16>(pair.x, pair.y));
  gpu::store_vector(out + 2 * i, rounded);
}
__global__ void positions_kernel(int* out) {
  const unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  const unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  out[block * blockDim.x * blockDim.y * blockDim.z + thread] = int(block * 1000 + thread);
}

unsigned blocks(std::size_t n, unsigned size) { return unsigned((n + size - 1) / size); }

}  // namespace

Floats mma(bool bfloat16, const Words& a, const Words& b, const Floats& c) {
  const Buffer<std::uint32_t> da(a, "a"), db(b, "b");
  Buffer<float> dc(c, "c");
  gpu::launch(bfloat16 ? mma_kernel<__nv_bfloat16> : mma_kernel<__half>, blocks(c.size(), 128), 32, 0, da.data(), db.data(), dc.data());
  return dc.download();
}
Words ldmatrix(int count, bool transposed, const Words& halves) {
  const Buffer<std::uint32_t> in(halves, "in");
  Buffer<std::uint32_t> out(std::size_t(32 * count), "out");
  const auto kernel =
      count == 4 ? (transposed ? ldmatrix_kernel<4, true> : ldmatrix_kernel<4, false>) : (transposed ? ldmatrix_kernel<2, true> : ldmatrix_kernel<2, false>);
  gpu::launch(kernel, 1, 32, sizeof(MatrixRows), in.data(), out.data());
  return out.download();
}
Ints shuffles(int index, int by, int bits) {
  Buffer<int> out(32 * 12, "out");
  gpu::launch(shuffles_kernel, 1, 32, 0, index, by, bits, out.data());
  return out.download();
}
std::vector<double> wide_shuffles() {
  Buffer<double> out(64, "out");
  gpu::launch(wide_shuffles_kernel, 1, 32, 0, out.data());
  return out.download();
}
Ints votes(const Ints& x) {
  const Buffer<int> in(x, "x");
  Buffer<int> out(3 * x.size(), "out");
  gpu::launch(votes_kernel, 1, unsigned(x.size()), 0, in.data(), out.data());
  return out.download();
}
Ints divergent_paths() {
  Buffer<int> out(32, "out");
  gpu::launch(divergent_kernel, 1, 32, sizeof(HalfWarps), out.data());
  return out.download();
}
Floats block_reductions(const Floats& x) {
  const Buffer<float> in(x, "x");
  Buffer<float> out(x.size() / 128 * 130, "out");
  gpu::launch(reductions_kernel, unsigned(x.size() / 128), 128, sizeof(Partials), in.data(), out.data());
  return out.download();
}
Floats transpose(const Floats& x, int n) {
  const Buffer<float> in(x, "x");
  Buffer<float> out(x.size(), "y");
  gpu::launch(transpose_kernel, dim3(blocks(n, 32), blocks(n, 32)), dim3(32, 8), 0, in.data(), out.data(), n);
  return out.download();
}
Floats async_column_sums(const Floats& x, int n, int width) {
  const Buffer<float> in(x, "x");
  Buffer<float> out(std::size_t(width), "out");
  gpu::launch(async_kernel, 1, 64, sizeof(TwoTiles), in.data(), out.data(), n, width);
  return out.download();
}
Floats reversed(const Floats& x, int n) {
  const Buffer<float> in(x, "x");
  Buffer<float> out(64, "out");
  gpu::launch(reversed_kernel, 1, 16, sizeof(Reversed), in.data(), out.data(), n);
  return out.download();
}
Ints histogram(const Ints& x) {
  const Buffer<int> in(x, "x");
  Buffer<int> counts(Ints(16, 0), "counts");
  Buffer<unsigned long long> total(std::vector<unsigned long long>(1, 0), "total");
  Buffer<unsigned> seen(std::vector<unsigned>(1, 0), "seen");
  gpu::launch(histogram_kernel, blocks(x.size(), 96), 96, 0, in.data(), int(x.size()), counts.data(), total.data(), seen.data());
  Ints result = counts.download();
  result.push_back(int(total.download()[0]));
  result.push_back(int(seen.download()[0]));
  return result;
}
Floats atomic_sums(const Floats& x, int bins) {
  const Buffer<float> in(x, "x");
  Buffer<float> sums(Floats(std::size_t(bins), 0), "sums");
  gpu::launch(atomic_sums_kernel, blocks(x.size(), 64), 64, 0, in.data(), int(x.size()), sums.data(), bins);
  return sums.download();
}
Floats arithmetic(const Floats& x) {
  const Buffer<float> in(x, "x");
  Buffer<float> out(3 * x.size(), "out");
  gpu::launch(arithmetic_kernel, blocks(x.size(), 128), 128, 0, in.data(), out.data(), int(x.size()));
  return out.download();
}
Words roundings(const Floats& x) {
  const Buffer<float> in(x, "x");
  Buffer<std::uint32_t> out(x.size(), "out");
  gpu::launch(roundings_kernel, blocks(x.size() / 2, 64), 64, 0, in.data(), out.data(), int(x.size() / 2));
  return out.download();
}
Ints positions(int gx, int gy, int gz, int bx, int by, int bz) {
  Buffer<int> out(std::size_t(gx * gy * gz * bx * by * bz), "out");
  gpu::launch(positions_kernel, dim3(gx, gy, gz), dim3(bx, by, bz), 0, out.data());
  return out.download();
}

}  // namespace flashsteps::cuda_layer
