#pragma once
// What the words of CUDA (words.hpp) and the wrappers of common/cuda are made of. Kernels do not call these by name.
#include "common/cuda_on_cpu/settings.hpp"
#include <cstring>
#include <type_traits>

namespace flashsteps::cuda_on_cpu {

struct uint3 {
  unsigned x, y, z;
};
struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};

// constinit, so that reading them takes no check for a first use
extern constinit thread_local uint3 thread_index, block_index, block_size, grid_size;

/// A place in a kernel's source.
struct Site {
  const char* file;
  int line;
};
/// As a default argument: the place of the call.
constexpr Site here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) { return {file, line}; }

constexpr unsigned all_lanes = 0xffffffffu;

void block_barrier(Site);
void warp_sync(unsigned mask, Site);

enum class Shuffle { index, up, down, exclusive_or };
std::uint64_t shuffle_bits(unsigned mask, std::uint64_t value, Shuffle, int argument, int width, Site);
/// Lanes that take no part give poison: all bits set.
template <class T> T shuffle(unsigned mask, T value, Shuffle kind, int argument, int width, Site site) {
  static_assert(sizeof(T) <= 8 && std::is_trivially_copyable_v<T>);
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  bits = shuffle_bits(mask, bits, kind, argument, width, site);
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
/// Bit i: lane i takes part and its predicate holds.
unsigned ballot(unsigned mask, bool predicate, Site);

/// The block's dynamic shared memory. Fails when the launch gave less than `bytes`.
void* shared_memory(std::size_t bytes, Site);

/// `count` 8 x 8 matrices of 16-bit elements (1, 2 or 4): lane i gives the address of row i % 8 of matrix i / 8, and
/// gets the elements (i / 4, 2 (i % 4)) and the next of each; transposed, those of the transpose.
void ldmatrix(std::uint32_t* result, int count, bool transposed, const void* row, Site);

enum class Element { half, bfloat16 };
/// c += a b, for a of 16 x 16 and b of 16 x 8 in the register layout of mma.sync.m16n8k16.row.col; sums in float, k upwards.
void mma_16x8x16(Element, float c[4], const std::uint32_t a[4], const std::uint32_t b[2], Site);

/// `bytes` (4, 8 or 16) to shared memory in the background: `read_bytes` of them read, the rest zero.
void async_copy(void* to, const void* from, int bytes, int read_bytes, Site);
void async_commit();
/// Until at most `pending` of the committed groups are in flight.
void async_wait(int pending);

/// One access of 4, 8 or 16 aligned bytes, counted as one.
void load(void* to, const void* from, int bytes, Site);
void store(void* to, const void* from, int bytes, Site);

float atomic_add(float*, float, Site);
int atomic_add(int*, int, Site);
unsigned atomic_add(unsigned*, unsigned, Site);
unsigned long long atomic_add(unsigned long long*, unsigned long long, Site);

/// exp, 2^x and log in double arithmetic of our own, then rounded: at most 0.51 units in the last place off, and the
/// same bits on every machine.
float exp_of(float);
float exp2_of(float);
float log_of(float);

/// A kernel with its arguments.
struct Body {
  void (*call)(const void* arguments);
  const void* arguments;
  std::size_t bytes;
};
/// Runs the kernel for every thread of the grid; throws Error at the first mistake.
void launch_blocks(dim3 grid, dim3 block, std::size_t shared_bytes, const Body&);

/// Device memory of 0xFF bytes, aligned to 256.
void* allocate(std::size_t bytes);
void release(void*) noexcept;
/// Kernels may touch [p, p + bytes), which messages call `name`, and, being traced, no other memory.
void name_memory(void* p, std::size_t bytes, const char* name);
void forget_memory(void* p) noexcept;
/// Under AddressSanitizer: forbids these bytes, or allows them again.
void forbid(const void*, std::size_t, bool) noexcept;

}  // namespace flashsteps::cuda_on_cpu
