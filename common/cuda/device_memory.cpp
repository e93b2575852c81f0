// common/cuda/device.hpp on the CPU.
#include "common/cuda/device.hpp"
#include "common/cuda_on_cpu/counters.hpp"
#include "common/cuda_on_cpu/device.hpp"

namespace flashsteps::gpu {

std::optional<Device> device() { return Device{"the CPU", false, 80, cuda_on_cpu::settings().shared_bytes}; }
void synchronize() {}
bool is_for_gpu() { return false; }
void use_cores(int n) { cuda_on_cpu::settings().os_threads = n; }

bool can_trace() { return cuda_on_cpu::trace_is_linked(); }
void begin_trace() {
  cuda_on_cpu::reset_counters();
  cuda_on_cpu::reset_stats();
  cuda_on_cpu::settings().trace = true;
}
Counters end_trace() {
  cuda_on_cpu::settings().trace = false;
  Counters all;
  for (const cuda_on_cpu::BufferCounters& b : cuda_on_cpu::buffer_counters())
    all.arrays.push_back({b.name, b.read_bytes, b.read_sectors, b.written_bytes, b.written_sectors});
  for (const cuda_on_cpu::LineCounters& line : cuda_on_cpu::line_counters()) all.passes += line.passes, all.ideal_passes += line.ideal_passes;
  const cuda_on_cpu::Stats stats = cuda_on_cpu::stats();
  all.blocks = stats.blocks, all.barriers = stats.barriers, all.shuffles = stats.shuffles, all.syncs = stats.syncs;
  all.ldmatrix = stats.ldmatrix, all.mma = stats.mma;
  return all;
}

void* allocate_device(std::size_t bytes) { return cuda_on_cpu::allocate(bytes); }
void release_device(void* p) noexcept { cuda_on_cpu::release(p); }
void fill_device(void* to, unsigned char byte, std::size_t bytes) { std::memset(to, byte, bytes); }
void copy_to_device(void* to, const void* from, std::size_t bytes) { std::memcpy(to, from, bytes); }
void copy_from_device(void* to, const void* from, std::size_t bytes) { std::memcpy(to, from, bytes); }
void copy_guard_from_device(void* to, const void* guard, std::size_t bytes) {
  cuda_on_cpu::forbid(guard, bytes, false);
  std::memcpy(to, guard, bytes);
  cuda_on_cpu::forbid(guard, bytes, true);
}
void name_device_memory(void* p, std::size_t bytes, std::size_t guard, const char* name) {
  cuda_on_cpu::name_memory(p, bytes, name);
  cuda_on_cpu::forbid(static_cast<char*>(p) - guard, guard, true);  // where AddressSanitizer is at hand, it names the line
  cuda_on_cpu::forbid(static_cast<char*>(p) + bytes, guard, true);
}
void forget_device_memory(void* p, std::size_t bytes, std::size_t guard) noexcept {
  cuda_on_cpu::forbid(static_cast<char*>(p) - guard, guard, false);
  cuda_on_cpu::forbid(static_cast<char*>(p) + bytes, guard, false);
  cuda_on_cpu::forget_memory(p);
}

}  // namespace flashsteps::gpu
