// common/cuda/device.hpp on a GPU.
#include "common/cuda/cuda.hpp"

namespace flashsteps::gpu {

namespace {

std::optional<Device> find_device() {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) return std::nullopt;
  int current = 0, shared_bytes = 0;
  cudaDeviceProp properties{};
  check(cudaGetDevice(&current), "cudaGetDevice");
  check(cudaGetDeviceProperties(&properties, current), "cudaGetDeviceProperties");
  check(cudaDeviceGetAttribute(&shared_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, current), "cudaDeviceGetAttribute");
  return Device{properties.name, true, 10 * properties.major + properties.minor, std::size_t(shared_bytes)};
}

}  // namespace

std::optional<Device> device() {
  static const std::optional<Device> found = find_device();  // asking takes milliseconds
  return found;
}
void synchronize() { check(cudaDeviceSynchronize(), "cudaDeviceSynchronize"); }

bool is_for_gpu() { return true; }
void use_cores(int) {}

bool can_trace() { return false; }
void begin_trace() {}
Counters end_trace() { return {}; }

// From the pool of the default stream, so that a launcher may allocate what its kernels share and not wait for them
void* allocate_device(std::size_t bytes) {
  void* p = nullptr;
  check(cudaMallocAsync(&p, bytes, nullptr), "cudaMallocAsync");
  return p;
}
void release_device(void* p) noexcept { cudaFreeAsync(p, nullptr); }
void fill_device(void* to, unsigned char byte, std::size_t bytes) { check(cudaMemsetAsync(to, byte, bytes, nullptr), "cudaMemsetAsync"); }
void copy_to_device(void* to, const void* from, std::size_t bytes) { check(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice), "cudaMemcpy"); }
void copy_from_device(void* to, const void* from, std::size_t bytes) { check(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost), "cudaMemcpy"); }
void copy_guard_from_device(void* to, const void* guard, std::size_t bytes) { copy_from_device(to, guard, bytes); }
void name_device_memory(void*, std::size_t, std::size_t, const char*) {}
void forget_device_memory(void*, std::size_t, std::size_t) noexcept {}

}  // namespace flashsteps::gpu
