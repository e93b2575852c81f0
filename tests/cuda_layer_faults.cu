// Kernels with one mistake each. They are compiled for a GPU too, but are for the CPU layer to find.
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

struct Line {
  alignas(16) float x[64];
};

/// Runs a kernel of (const float* in, float* out) in `grid` blocks of `block` threads.
Floats run(void (*kernel)(const float*, float*), dim3 grid, dim3 block, std::size_t n = 64) {
  Floats values(n);
  for (std::size_t i = 0; i < n; ++i) values[i] = float(i);
  const Buffer<float> in(values, "in");
  Buffer<float> out(64, "out");
  gpu::launch(kernel, grid, block, sizeof(Line), in.data(), out.data());
  return out.download();
}

__global__ void nothing(const float*, float*) {}
__global__ void half_written(const float* in, float* out) { out[threadIdx.x] = in[threadIdx.x]; }
__global__ void unwritten_shared(const float*, float* out) {
  auto& sm = gpu::shared_storage<Line>();
  sm.x[threadIdx.x] = 1;
  __syncthreads();
  out[threadIdx.x] = sm.x[threadIdx.x + 1];  // LINE unwritten
}
__global__ void past_the_end(const float*, float* out) { out[threadIdx.x + 1] = 0; }
__global__ void before_the_start(const float*, float* out) { *(out + threadIdx.x - 1) = 0; }
__global__ void shared_kernel(const float*, float*) {
  gpu::shared_storage<Line>().x[0] = 1;  // LINE storage
}

__global__ void barrier_branch(const float*, float*) {
  if (threadIdx.x < 16) __syncthreads();  // LINE branch
}
__global__ void barrier_lines(const float*, float*) {
  if (threadIdx.x < 16) {
    __syncthreads();  // LINE first
  } else {
    __syncthreads();  // LINE second
  }
}
__global__ void early(const float* in, float* out) {
  if (threadIdx.x >= 40) return;
  __syncthreads();  // LINE early
  out[threadIdx.x] = in[threadIdx.x];
}
__global__ void sync_branch(const float*, float*) {
  if (threadIdx.x % 32 != 7) __syncwarp();  // LINE syncwarp
}
__global__ void not_in_mask(const float*, float* out) {
  out[threadIdx.x] = __shfl_xor_sync(0x0000ffffu, 1.0f, 1);  // LINE mask
}
__global__ void two_masks(const float*, float* out) {
  out[threadIdx.x] = __shfl_xor_sync(threadIdx.x % 32 < 16 ? 0xffffffffu : 0xffff0001u, 1.0f, 1);  // LINE masks
}
__global__ void short_mma(const float*, float* out) {
  float c[4] = {};
  const std::uint32_t a[4] = {};
  gpu::mma_16x8x16<__half>(c, a, 0, 0);  // LINE short
  out[threadIdx.x] = c[0];
}
__global__ void in_flight(const float* in, float*) {
  auto& sm = gpu::shared_storage<Line>();
  if (threadIdx.x < 16) gpu::copy_async_16(&sm.x[4 * threadIdx.x], in + 4 * threadIdx.x);
  gpu::copy_async_commit();
}
__global__ void misaligned(const float* in, float* out) {
  out[threadIdx.x] = gpu::load_float4(in + threadIdx.x).x;  // LINE misaligned
}
__global__ void absent(const float*, float* out) {
  if (threadIdx.x < 16) out[threadIdx.x] = __shfl_down_sync(0x0000ffffu, 1.0f, 8);
}
template <bool Wait, bool Barrier> __global__ void copy_kernel(const float* in, float* out) {
  auto& sm = gpu::shared_storage<Line>();
  if (threadIdx.x < 16) gpu::copy_async_16(&sm.x[4 * threadIdx.x], in + 4 * threadIdx.x);  // LINE copy
  gpu::copy_async_commit();
  if constexpr (Wait) gpu::copy_async_wait();
  if constexpr (Barrier) __syncthreads();
  out[threadIdx.x] = sm.x[63 - threadIdx.x];  // LINE copied
  gpu::copy_async_wait();
}
__device__ float deep(const float* in, int n) {
  volatile float frame[256];
  frame[n % 256] = in[0];
  return n < 0 ? 0 : deep(in, n + 1 > 1 << 30 ? 0 : n + 1) + frame[n % 256];
}
__global__ void recursion(const float* in, float* out) { out[threadIdx.x] = deep(in, 0); }

// For the tracer

__global__ void no_barrier(const float* in, float* out) {
  auto& sm = gpu::shared_storage<Line>();
  sm.x[threadIdx.x] = in[threadIdx.x];        // LINE race write
  out[threadIdx.x] = sm.x[threadIdx.x ^ 32];  // LINE race read
}
__global__ void no_warp_sync(const float* in, float* out) {
  auto& sm = gpu::shared_storage<Line>();
  sm.x[threadIdx.x] = in[threadIdx.x];
  const float other = __shfl_xor_sync(full_warp, in[threadIdx.x], 1);  // orders no memory
  out[threadIdx.x] = other + sm.x[threadIdx.x ^ 1];                    // LINE no syncwarp
}
__global__ void overwrite(const float* in, float* out) {
  auto& sm = gpu::shared_storage<Line>();
  sm.x[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  const float other = sm.x[63 - threadIdx.x];  // LINE overwrite read
  sm.x[threadIdx.x] = other;                   // LINE overwrite write
  __syncthreads();
  out[threadIdx.x] = sm.x[threadIdx.x];
}
/// Pairs of lanes exchange, ordered by a __syncwarp of their group of four, or of too small a group.
template <int Group> __global__ void group_sync(const float* in, float* out) {
  auto& sm = gpu::shared_storage<Line>();
  const int lane = int(threadIdx.x) % 32;
  sm.x[threadIdx.x] = in[threadIdx.x];
  __syncwarp(((1u << Group) - 1) << (lane / Group * Group));
  out[threadIdx.x] = sm.x[threadIdx.x ^ 2];  // LINE group
}
__global__ void read_past(const float* in, float* out) {
  const float unused = in[threadIdx.x + 1];  // LINE past
  out[threadIdx.x] = unused > 1000 ? 1 : 0;
}
__global__ void shared_past(const float*, float* out) {
  auto& sm = gpu::shared_storage<Line>();
  float* x = sm.x;
  x[threadIdx.x + 1] = 1;  // LINE shared past
  out[threadIdx.x] = 0;
}
__global__ void both_write(const float*, float* out) {
  out[threadIdx.x] = float(blockIdx.x);  // LINE both write
}
__global__ void read_other(const float*, float* out) {
  const float other = out[(threadIdx.x + 32 + 32 * blockIdx.x) % 64];  // LINE other read
  out[32 * blockIdx.x + threadIdx.x] = other;                          // LINE other write
}
__global__ void plain_and_atomic(const float*, float* out) {
  if (blockIdx.x == 0) out[threadIdx.x] = 0;  // LINE plain
  else atomicAdd(&out[threadIdx.x], 1.0f);    // LINE atomic
}
struct Rows {
  float x[1024];
};
__global__ void conflict(float* out, int stride, int together) {
  auto& sm = gpu::shared_storage<Rows>();
  for (int i = int(threadIdx.x); i < 1024; i += 32) sm.x[i] = float(i);  // LINE clean store
  __syncthreads();
  out[threadIdx.x] = sm.x[int(threadIdx.x) / together * stride];  // LINE conflict
}
__global__ void strided(const float* in, float* out, int stride) {
  out[threadIdx.x] = in[int(threadIdx.x) * stride];  // LINE strided
}

}  // namespace

Floats unwritten_device_memory() { return run(half_written, 1, 32); }
Floats unwritten_shared_memory() { return run(unwritten_shared, 1, 32); }
Floats one_past_the_end() { return run(past_the_end, 1, 64); }
Floats one_before_the_start() { return run(before_the_start, 1, 64); }
void too_little_shared_memory() {
  Buffer<float> x(1, "x");
  gpu::launch(shared_kernel, 1, 1, sizeof(Line) - 1, x.data(), x.data());
}
void barrier_in_a_branch() { run(barrier_branch, 2, 64); }
void barrier_on_two_lines() { run(barrier_lines, 1, 32); }
void early_return() { run(early, 1, 64); }
void sync_in_a_branch() { run(sync_branch, 1, 64); }
void not_in_its_mask() { run(not_in_mask, 1, 64); }
void different_masks() { run(two_masks, 1, 64); }
void short_warp_mma() { run(short_mma, 1, 48); }
void copy_in_flight() { run(in_flight, 1, 64); }
void misaligned_load() { run(misaligned, 1, 32); }
Floats absent_lane() { return run(absent, 1, 32); }
Floats copy_without_wait() { return run(copy_kernel<false, true>, 1, 64); }
Floats copy_without_barrier() { return run(copy_kernel<true, false>, 1, 64); }
void launch_empty(unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, std::size_t shared_bytes) {
  gpu::launch(nothing, dim3(gx, gy, gz), dim3(bx, by, bz), shared_bytes, nullptr, nullptr);
  gpu::synchronize();
}
void endless_recursion() { run(recursion, 1, 1); }

Floats missing_barrier() { return run(no_barrier, 1, 64); }
Floats missing_warp_sync() { return run(no_warp_sync, 1, 64); }
Floats read_before_overwrite() { return run(overwrite, 1, 64); }
Floats partial_warp_sync(bool whole_group) { return run(whole_group ? group_sync<4> : group_sync<2>, 1, 64); }
Floats read_past_the_end() { return run(read_past, 1, 64); }
Floats shared_past_the_end() { return run(shared_past, 1, 64); }
Floats race_between_blocks() { return run(both_write, 2, 64); }
Floats read_of_another_block() { return run(read_other, 2, 32); }
Floats atomic_and_plain() { return run(plain_and_atomic, 2, 64); }
Floats bank_conflict(int stride, int lanes_together) {
  Buffer<float> out(32, "out");
  gpu::launch(conflict, 1, 32, sizeof(Rows), out.data(), stride, lanes_together);
  return out.download();
}
Floats strided_load(int stride) {
  const Buffer<float> in(Floats(std::size_t(32 * stride), 1), "in");
  Buffer<float> out(32, "out");
  gpu::launch(strided, 1, 32, 0, in.data(), out.data(), stride);
  return out.download();
}

}  // namespace flashsteps::cuda_layer
