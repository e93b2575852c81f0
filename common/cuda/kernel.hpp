#pragma once
// What the kernels of the steps share: where a block stands, matrices in device memory, tiles in shared memory.
#include "common/cuda/problem.hpp"
#include "common/cuda/warp.hpp"

namespace flashsteps::gpu {

/// One head of a tensor. Offsets have 64 bits.
template <class T> struct Matrix {
  T* data;              ///< element (0, 0)
  std::int64_t stride;  ///< elements from one row to the next
  /// @param i  a row
  /// @return its first element
  __device__ __forceinline__ T* row(int i) const { return data + i * stride; }
  /// @param i,x  a row and a column
  /// @return the element
  __device__ __forceinline__ T& operator()(int i, int x) const { return data[i * stride + x]; }
};
/// One head of a tensor, as matrix of T.
/// @param t    the tensor
/// @param b,h  batch entry and head
/// @return that head
template <class T> __device__ __forceinline__ Matrix<T> matrix(const Tensor& t, int b, int h) {
  return {static_cast<T*>(t.data) + b * t.batch + h * t.head, t.row};
}

/// The tile, the head and the batch entry of this block in a grid of (batch * heads * tiles) blocks: y and z have only 65,535 blocks.
struct Place {
  int tile,   ///< below the number of tiles
      head,   ///< below the number of heads
      batch;  ///< batch entry
};
/// Where this block stands.
/// @param tiles,heads  of a head, and of a batch entry
/// @return its place: tiles change fastest
__device__ __forceinline__ Place place(int tiles, int heads) {
  const int block = int(blockIdx.x);
  return {block % tiles, block / tiles % heads, block / tiles / heads};
}

/// How many tiles of `size` cover n elements.
/// @param n,size  at least 0, and at least 1
/// @return ceil(n / size)
__host__ __device__ __forceinline__ constexpr int tile_count(int n, int size) { return (n + size - 1) / size; }

/// Starts a kernel with a block for each of `tiles` tiles of each of `heads` heads of each batch entry; nothing where there are none.
/// @param kernel        a __global__ function
/// @param x             has the batch size
/// @param tiles,heads   tiles of a head, heads of a batch entry
/// @param threads       of a block
/// @param shared_bytes  of a block
/// @param arguments     of the kernel
/// @throws std::runtime_error says what is wrong with the launch
template <class... P>
void launch_tiles(void (*kernel)(P...), const Problem& x, int tiles, int heads, int threads, std::size_t shared_bytes, typename NotDeduced<P>::type... arguments) {
  const std::int64_t blocks = std::int64_t(x.batch) * heads * tiles;
  if (blocks > 0x7fffffff) throw std::runtime_error("a grid has at most 2147483647 blocks, not " + std::to_string(blocks));
  if (blocks > 0) launch(kernel, dim3(unsigned(blocks)), dim3(unsigned(threads)), shared_bytes, arguments...);
}

/// All threads of the block copy the rows from `first` on of a matrix with rows x cols elements, times `factor`. Where there are none,
/// the tile is 0 and nothing is read.
/// @param tile       [Rows x Stride - 1], in shared memory
/// @param from       the matrix, in device memory
/// @param first      its first row that is copied
/// @param rows,cols  of the matrix
/// @param factor     of every element
template <int Rows, int Stride>
__device__ __forceinline__ void load_tile(float (&tile)[Rows][Stride], const Matrix<const float>& from, int first, int rows, int cols, float factor = 1.0f) {
  constexpr int columns = Stride - 1;  // the last one only keeps rows in different banks
  for (int i = threadIdx.x; i < Rows * columns; i += blockDim.x) {
    const int r = i / columns, x = i % columns;
    tile[r][x] = first + r < rows && x < cols ? from(first + r, x) * factor : 0.0f;
  }
}
/// The other way. Rows and columns that do not exist are not written.
/// @param tile       [Rows x Stride - 1], in shared memory
/// @param to         the matrix, in device memory
/// @param first      its first row that is written
/// @param rows,cols  of the matrix
template <int Rows, int Stride>
__device__ __forceinline__ void store_tile(const float (&tile)[Rows][Stride], const Matrix<float>& to, int first, int rows, int cols) {
  constexpr int columns = Stride - 1;
  for (int i = threadIdx.x; i < Rows * columns; i += blockDim.x) {
    const int r = i / columns, x = i % columns;
    if (first + r < rows && x < cols) to(first + r, x) = tile[r][x];
  }
}

/// sum of a[x] b[x] over D elements, a multiple of 4: four sums side by side, which lose less to rounding than one.
/// @param a,b  [D] each
/// @return a . b
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
/// @param a  [N]
/// @return the sum
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
/// @param x,m  a score and the maximum
/// @return E(x, m)
__device__ __forceinline__ float exp_shifted(float x, float m) { return exp(x - (m == -INFINITY ? 0.0f : m)); }

}  // namespace flashsteps::gpu
