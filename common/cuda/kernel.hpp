#pragma once
// What the kernels of the steps share: where a block stands, matrices in device memory, tiles in shared memory.
#include "common/cuda/problem.hpp"
#include "common/cuda/warp.hpp"

namespace flashsteps::gpu {

/// One head of a tensor. Offsets have 64 bits.
template <class T> struct Matrix {
  T* data;
  std::int64_t stride;
  __device__ __forceinline__ T* row(int i) const { return data + i * stride; }
  __device__ __forceinline__ T& operator()(int i, int x) const { return data[i * stride + x]; }
};
template <class T> __device__ __forceinline__ Matrix<T> matrix(const Tensor& t, int b, int h) {
  return {static_cast<T*>(t.data) + b * t.batch + h * t.head, t.row};
}

/// The tile, the head and the batch entry of this block in a grid of (batch * heads * tiles) blocks: y and z have only 65,535 blocks.
struct Place {
  int tile, head, batch;
};
__device__ __forceinline__ Place place(int tiles, int heads) {
  const int block = int(blockIdx.x);
  return {block % tiles, block / tiles % heads, block / tiles / heads};
}

/// How many tiles of `size` cover n elements.
__host__ __device__ __forceinline__ constexpr int tile_count(int n, int size) { return (n + size - 1) / size; }

/// Starts a kernel with a block for each of `tiles` tiles of each of `heads` heads of each batch entry; nothing where there are none.
template <class... P>
void launch_tiles(void (*kernel)(P...), const Problem& x, int tiles, int heads, int threads, std::size_t shared_bytes, typename NotDeduced<P>::type... arguments) {
  const std::int64_t blocks = std::int64_t(x.batch) * heads * tiles;
  if (blocks > 0x7fffffff) throw std::runtime_error("a grid has at most 2147483647 blocks, not " + std::to_string(blocks));
  if (blocks > 0) launch(kernel, dim3(unsigned(blocks)), dim3(unsigned(threads)), shared_bytes, arguments...);
}

/// All threads of the block copy the rows from `first` on of a matrix with rows x cols elements, times `factor`. Where there are none,
/// the tile is 0 and nothing is read.
template <int Rows, int Stride>
__device__ __forceinline__ void load_tile(float (&tile)[Rows][Stride], const Matrix<const float>& from, int first, int rows, int cols, float factor = 1.0f) {
  constexpr int columns = Stride - 1;  // the last one only keeps rows in different banks
  for (int i = threadIdx.x; i < Rows * columns; i += blockDim.x) {
    const int r = i / columns, x = i % columns;
    tile[r][x] = first + r < rows && x < cols ? from(first + r, x) * factor : 0.0f;
  }
}
/// The other way. Rows and columns that do not exist are not written.
template <int Rows, int Stride>
__device__ __forceinline__ void store_tile(const float (&tile)[Rows][Stride], const Matrix<float>& to, int first, int rows, int cols) {
  constexpr int columns = Stride - 1;
  for (int i = threadIdx.x; i < Rows * columns; i += blockDim.x) {
    const int r = i / columns, x = i % columns;
    if (first + r < rows && x < cols) to(first + r, x) = tile[r][x];
  }
}

/// sum of a[x] b[x] over D elements, a multiple of 4: four sums side by side, which lose less to rounding than one.
template <int D> __device__ __forceinline__ float dot(const float* a, const float* b) {
  float sum[4] = {};
#pragma unroll 4
  for (int x = 0; x < D; x += 4) {
#pragma unroll
    for (int n = 0; n < 4; ++n) sum[n] += a[x + n] * b[x + n];
  }
  return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

/// sum of a[x] over N elements, a multiple of 4, in the same way.
template <int N> __device__ __forceinline__ float sum(const float* a) {
  float sum[4] = {};
#pragma unroll
  for (int x = 0; x < N; x += 4) {
#pragma unroll
    for (int n = 0; n < 4; ++n) sum[n] += a[x + n];
  }
  return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

/// E(x, m) = exp(x - m), and 0 where both are -inf (math 0.3, E6).
__device__ __forceinline__ float exp_shifted(float x, float m) { return exp(x - (m == -INFINITY ? 0.0f : m)); }

}  // namespace flashsteps::gpu
