#pragma once
// Small kernels, one for each primitive of common/cuda, behind functions that plain C++ can call: vectors in, vectors out.
#include <cstdint>
#include <vector>

namespace flashsteps::cuda_layer {

using Words = std::vector<std::uint32_t>;
using Floats = std::vector<float>;
using Ints = std::vector<int>;

/// c + a b for each case: 32 lanes x 4, 2 and 4 registers in the layout of mma.sync.m16n8k16.
Floats mma(bool bfloat16, const Words& a, const Words& b, const Floats& c);
/// 32 rows of 8 halves through ldmatrix: 32 lanes x 4 (or 2) registers.
Words ldmatrix(int count, bool transposed, const Words& halves);

/// For each lane of a warp, 12 shuffles of 100 + lane: index, up, down, xor, each of width 32, 16 and 8.
Ints shuffles(int index, int by, int bits);
/// A double and a 64-bit number, sent round by one lane.
std::vector<double> wide_shuffles();
/// For each lane of 2 warps: ballot, any, all of x != 0.
Ints votes(const Ints& x);
/// The halves of a warp go different ways, each with shuffles, votes and __syncwarp of its own.
Ints divergent_paths();

/// Sum and maximum of each block's 128 numbers, through warp_sum, warp_max and shared memory; then sums of 8 neighbours.
Floats block_reductions(const Floats& x);
/// A transposed n x n matrix, by tiles in static shared memory.
Floats transpose(const Floats& x, int n);
/// The sum over tiles of 64 rows of `width` (a multiple of 4) floats, two buffers filled by asynchronous copies; rows from
/// n on are zero-filled.
Floats async_column_sums(const Floats& x, int n, int width);
/// 64 floats backwards: by copies of 4 bytes (zeros from n on), then 16 bytes at a time.
Floats reversed(const Floats& x, int n);
/// How often each of 16 values occurs, by atomics of ints and unsigned long longs, and their sum as floats.
Ints histogram(const Ints& x);
Floats atomic_sums(const Floats& x, int bins);

/// exp, exp2, log.
Floats arithmetic(const Floats& x);
/// As bits: to half and bfloat16, packed in pairs.
Words roundings(const Floats& x);
/// Its position, for each thread of a three-dimensional grid of three-dimensional blocks.
Ints positions(int gx, int gy, int gz, int bx, int by, int bz);

// Kernels with a mistake, and launches that must be refused (cuda_layer_faults.cu). A line that a message should name ends with
// a comment: LINE and a name.
Floats unwritten_device_memory();
Floats unwritten_shared_memory();
Floats one_past_the_end();
Floats one_before_the_start();
void too_little_shared_memory();
void barrier_in_a_branch();
void barrier_on_two_lines();
void early_return();
void sync_in_a_branch();
void not_in_its_mask();
void different_masks();
void short_warp_mma();
void copy_in_flight();
void misaligned_load();
Floats absent_lane();
Floats copy_without_wait();
Floats copy_without_barrier();
void launch_empty(unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, std::size_t shared_bytes);
void endless_recursion();

// For the tracer
Floats missing_barrier();
Floats missing_warp_sync();
Floats read_before_overwrite();
Floats partial_warp_sync(bool whole_group);
Floats read_past_the_end();
Floats shared_past_the_end();
Floats race_between_blocks();
Floats read_of_another_block();
Floats atomic_and_plain();
Floats bank_conflict(int stride, int lanes_together = 1);
Floats strided_load(int stride);

}  // namespace flashsteps::cuda_layer
