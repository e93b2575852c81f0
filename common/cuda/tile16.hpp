#pragma once
// Tiles of 16-bit elements in shared memory: from and to device memory, and to tensor cores.
#include "common/cuda/copy_async.hpp"
#include "common/cuda/kernel.hpp"
#include "common/cuda/mma.hpp"
#include "common/cuda/vector.hpp"

namespace flashsteps::gpu {

/// Rows x D elements. The 8 columns more put the eight rows that ldmatrix reads together into different banks.
template <class T, int Rows, int D> using Tile16 = T[Rows][D + 8];

/// Where the first of the pieces of 8 elements lies that this thread moves; the others lie below it. The pieces that eight neighbouring
/// threads move at a time lie in different banks: those of one row, or, where a row has only four, those of two rows with three between.
struct Piece {
  int row,     ///< of the tile
      column;  ///< a multiple of 8
};
/// @tparam D  elements of a row
/// @return the first piece of this thread
template <int D> __device__ __forceinline__ Piece first_piece() {
  const int r = threadIdx.x / (D / 8), x = threadIdx.x % (D / 8) * 8;
  return {D >= 64 ? r : r / 8 * 8 + r % 2 * 4 + r % 8 / 2, x};
}

/// Do all rows of this matrix start at a multiple of 16 bytes and consist of whole pieces?
/// @param m     the matrix, in device memory
/// @param cols  elements of a row
/// @return is it so?
template <class T> __device__ __forceinline__ bool has_pieces(const Matrix<T>& m, int cols) {
  return reinterpret_cast<std::uintptr_t>(m.data) % 16 == 0 && m.stride % 8 == 0 && cols % 8 == 0;
}

/// All threads of the block start to copy the rows from `first` on of a matrix with rows x cols elements, 16 bytes at a time where
/// that can be done, else one by one. Where there are none, the tile is 0 and nothing is read. It is there after a
/// copy_async_commit, a copy_async_wait and a barrier.
/// @tparam Threads   of the block
/// @param tile       [Rows x Stride - 8], in shared memory
/// @param from       the matrix, in device memory
/// @param first      its first row that is copied
/// @param rows,cols  of the matrix
/// @param site       the line of the call: to be left out
template <int Threads, class T, int Rows, int Stride>
__device__ __forceinline__ void load_tile_async(T (&tile)[Rows][Stride], const Matrix<const T>& from, int first, int rows, int cols, Site site = here()) {
  constexpr int D = Stride - 8, step = Threads / (D / 8);  // rows that all threads move at a time
  static_assert(Rows % step == 0);
  if (has_pieces(from, cols)) {
    const auto [r, x] = first_piece<D>();
    const int left = x < cols ? rows - first - r : 0;  // rows that there are from r on
#pragma unroll
    for (int n = 0; n < Rows; n += step) copy_async_16(&tile[r + n][x], from.row(first + r + n) + x, n < left, site);
  } else {
    const int r = threadIdx.x / 32;  // a warp moves a row at a time
    for (int x = threadIdx.x % 32; x < D; x += 32) {
#pragma unroll 4
      for (int n = 0; n < Rows; n += Threads / 32) {
        T value = from_float<T>(0.0f);
        if (first + r + n < rows && x < cols) value = from(first + r + n, x);
        tile[r + n][x] = value;
      }
    }
  }
}
/// The other way, at once. Rows and columns that do not exist are not written.
/// @tparam Threads   of the block
/// @param tile       [Rows x Stride - 8], in shared memory
/// @param to         the matrix, in device memory
/// @param first      its first row that is written
/// @param rows,cols  of the matrix
/// @param site       the line of the call: to be left out
template <int Threads, class T, int Rows, int Stride>
__device__ __forceinline__ void store_tile(const T (&tile)[Rows][Stride], const Matrix<T>& to, int first, int rows, int cols, Site site = here()) {
  constexpr int D = Stride - 8, step = Threads / (D / 8);
  static_assert(Rows % step == 0);
  if (has_pieces(to, cols)) {
    const auto [r, x] = first_piece<D>();
#pragma unroll
    for (int n = 0; n < Rows; n += step) {
      if (first + r + n < rows && x < cols) store_vector(&to(first + r + n, x), load_vector<uint4>(&tile[r + n][x], site), site);
    }
  } else {
    const int r = threadIdx.x / 32;
    for (int x = threadIdx.x % 32; x < D; x += 32) {
#pragma unroll 4
      for (int n = 0; n < Rows; n += Threads / 32) {
        if (first + r + n < rows && x < cols) to(first + r + n, x) = tile[r + n][x];
      }
    }
  }
}

/// 16 x 16 elements of a tile from (r, x) on: f[0] and f[1] have rows r to r + 7 and r + 8 to r + 15 of the first eight columns, f[2]
/// and f[3] of the next eight. This is operand a of mma; of the transpose, whose columns are rows of the tile, f[0] and f[2] are the
/// operand b with the first eight, f[1] and f[3] the one with the next eight.
/// @param f     two elements a register
/// @param tile  in shared memory
/// @param r,x   its row and column where the 16 x 16 elements start
/// @param site  the line of the call: to be left out
template <class T, int Rows, int Stride>
__device__ __forceinline__ void load_16x16(std::uint32_t (&f)[4], const T (&tile)[Rows][Stride], int r, int x, Site site = here()) {
  ldmatrix_x4(f, &tile[r + threadIdx.x % 16][x + threadIdx.x % 32 / 16 * 8], site);
}
/// The same with each 8 x 8 matrix transposed: f[0] and f[1] are operand b of mma with the first eight columns, f[2] and f[3] the one
/// with the next eight.
/// @param f     two elements a register
/// @param tile  in shared memory
/// @param r,x   its row and column where the 16 x 16 elements start
/// @param site  the line of the call: to be left out
template <class T, int Rows, int Stride>
__device__ __forceinline__ void load_16x16_transposed(std::uint32_t (&f)[4], const T (&tile)[Rows][Stride], int r, int x, Site site = here()) {
  ldmatrix_x4_transposed(f, &tile[r + threadIdx.x % 16][x + threadIdx.x % 32 / 16 * 8], site);
}

/// E(x, m) where x and m count in powers of 2: 2^(x - m), and 0 where both are -inf (math 0.3, E6).
/// @param x,m  a score and the maximum, times log2(e)
/// @return E(x, m)
__device__ __forceinline__ float exp2_shifted(float x, float m) { return exp2(x - (m == -INFINITY ? 0.0f : m)); }
/// @{
/// exp(x) = 2^(x log2_e), and log(x) = log2(x) ln_2.
constexpr float log2_e = 1.44269504f, ln_2 = 0.69314718f;
/// @}

}  // namespace flashsteps::gpu
