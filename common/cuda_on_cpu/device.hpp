#pragma once
// What the words of CUDA (words.hpp) and the wrappers of common/cuda are made of. Kernels do not call these by name.
#include "common/cuda_on_cpu/settings.hpp"
#include <cstring>
#include <type_traits>

namespace flashsteps::cuda_on_cpu {

/// Three indices.
struct uint3 {
  /// @{
  unsigned x, y, z;  ///< one axis
  /// @}
};
/// Three sizes.
struct dim3 {
  /// @{
  unsigned x, y, z;  ///< one axis
  /// @}
  /// @param x_,y_,z_  the three axes
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};

/// @{
/// What threadIdx, blockIdx, blockDim and gridDim stand for.
// constinit, so that reading them takes no check for a first use
extern constinit thread_local uint3 thread_index, block_index, block_size, grid_size;
/// @}

/// A place in a kernel's source.
struct Site {
  const char* file;  ///< its path
  int line;          ///< from 1 on
};
/// As a default argument: the place of the call.
/// @param file,line  to be left out
/// @return that place
constexpr Site here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) { return {file, line}; }

/// Thrown by a thread that ends where it stands, as the PTX instruction `exit` ends one.
struct ThreadExit {};

constexpr unsigned all_lanes = 0xffffffffu;  ///< the mask of a whole warp

/// __syncthreads
void block_barrier(Site);
/// __syncwarp
/// @param mask  lanes that meet
void warp_sync(unsigned mask, Site);

/// The kinds of __shfl_..._sync.
enum class Shuffle { index, up, down, exclusive_or };
/// @param mask      lanes that take part
/// @param value     this lane's
/// @param argument  of the word: a lane, a distance, or bits
/// @param width     lanes of a group
/// @return the value of the other lane
std::uint64_t shuffle_bits(unsigned mask, std::uint64_t value, Shuffle, int argument, int width, Site);
/// The same for any type of at most 8 bytes. Lanes that take no part give poison: all bits set.
/// @param mask      lanes that take part
/// @param value     this lane's
/// @param kind      which word
/// @param argument  of the word: a lane, a distance, or bits
/// @param width     lanes of a group
/// @param site      the line of the call
/// @return the value of the other lane
template <class T> T shuffle(unsigned mask, T value, Shuffle kind, int argument, int width, Site site) {
  static_assert(sizeof(T) <= 8 && std::is_trivially_copyable_v<T>);
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  bits = shuffle_bits(mask, bits, kind, argument, width, site);
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
/// __ballot_sync
/// @param mask       lanes that take part
/// @param predicate  this lane's
/// @return bit i: lane i takes part and its predicate holds
unsigned ballot(unsigned mask, bool predicate, Site);

/// The block's dynamic shared memory. Fails when the launch gave less than `bytes`.
/// @param bytes  that the kernel wants
/// @return where it starts
/// @throws Error if the launch gave less
void* shared_memory(std::size_t bytes, Site);

/// `count` 8 x 8 matrices of 16-bit elements (1, 2 or 4): lane i gives the address of row i % 8 of matrix i / 8, and
/// gets the elements (i / 4, 2 (i % 4)) and the next of each; transposed, those of the transpose.
/// @param result      a register for each matrix
/// @param count       of matrices
/// @param transposed  each of them?
/// @param row         the address that this lane gives
void ldmatrix(std::uint32_t* result, int count, bool transposed, const void* row, Site);

/// The types that tensor cores multiply.
enum class Element { half, bfloat16 };
/// c += a b, for a of 16 x 16 and b of 16 x 8 in the register layout of mma.sync.m16n8k16.row.col; sums in float, k upwards.
/// @param c,a,b  the registers of this lane
void mma_16x8x16(Element, float c[4], const std::uint32_t a[4], const std::uint32_t b[2], Site);

/// `bytes` (4, 8 or 16) to shared memory in the background: `read_bytes` of them read, the rest zero.
/// @param to          in shared memory
/// @param from        in global memory
/// @param bytes       to be written
/// @param read_bytes  to be read, 0 to bytes
void async_copy(void* to, const void* from, int bytes, int read_bytes, Site);
/// The copies of this thread since the last commit become a group.
void async_commit();
/// Until at most `pending` of the committed groups are in flight.
/// @param pending  groups, the newest ones
void async_wait(int pending);

/// @{
/// One access of 4, 8 or 16 aligned bytes, counted as one.
/// @param to,from  where the bytes go, and where they are
/// @param bytes    how many
void load(void* to, const void* from, int bytes, Site);
void store(void* to, const void* from, int bytes, Site);
/// @}

/// @{
/// atomicAdd
/// @return what stood there before
float atomic_add(float*, float, Site);
int atomic_add(int*, int, Site);
unsigned atomic_add(unsigned*, unsigned, Site);
unsigned long long atomic_add(unsigned long long*, unsigned long long, Site);
/// @}

/// @{
/// exp, 2^x and log in double arithmetic of our own, then rounded: at most 0.51 units in the last place off, and the
/// same bits on every machine.
/// @return the value of the function
float exp_of(float);
float exp2_of(float);
float log_of(float);
/// @}

/// A kernel with its arguments.
struct Body {
  void (*call)(const void* arguments);  ///< runs the kernel
  const void* arguments;                ///< what it is called with
  std::size_t bytes;                    ///< how large they are
};
/// Runs the kernel for every thread of the grid.
/// @param grid,block    blocks of the grid, threads of a block
/// @param shared_bytes  dynamic shared memory of a block
/// @throws Error at the first mistake
void launch_blocks(dim3 grid, dim3 block, std::size_t shared_bytes, const Body&);

/// Device memory of 0xFF bytes, aligned to 256.
/// @param bytes  how many
/// @return where it starts
void* allocate(std::size_t bytes);
/// Gives it back.
void release(void*) noexcept;
/// Kernels may touch [p, p + bytes), which messages call `name`, and, being traced, no other memory.
/// @param p      where it starts
/// @param bytes  how many
/// @param name   in messages
void name_memory(void* p, std::size_t bytes, const char* name);
/// Takes that back.
/// @param p  where it starts
void forget_memory(void* p) noexcept;
/// Under AddressSanitizer: forbids these bytes, or allows them again.
void forbid(const void*, std::size_t, bool) noexcept;

}  // namespace flashsteps::cuda_on_cpu
