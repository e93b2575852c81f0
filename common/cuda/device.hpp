#pragma once
// The device as host code sees it. device_memory.cpp answers for the layer on the CPU, device_memory.cu for a GPU: a program links one of
// them.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace flashsteps::gpu {

/// What runs the kernels of this program.
struct Device {
  std::string name;
  bool is_gpu;
  int capability;            ///< 80 for 8.0
  std::size_t shared_bytes;  ///< shared memory that a block can get
};
/// Nothing where there is no GPU, in a program that is made for one.
std::optional<Device> device();

/// Waits for the kernels and throws what went wrong in them. On the CPU a launch has ended when it returns.
void synchronize();

/// Is this program made for a GPU?
bool is_for_gpu();

/// Blocks run on so many cores at once where kernels run on the CPU; on a GPU this says nothing.
void use_cores(int n);

/// What the tracer saw of the kernels (docs/cuda-on-cpu.md). A model of the accesses that the source asks for; no measurement of a GPU.
struct Counters {
  struct Array {
    std::string name;                                     ///< of the buffer
    std::uint64_t read_bytes, read_sectors, written_bytes, written_sectors;  ///< an atomic addition counts as a write
  };
  std::vector<Array> arrays;
  std::uint64_t passes = 0, ideal_passes = 0;             ///< over the banks of shared memory
  /// All buffers of that name together.
  Array of(std::string_view name) const {
    Array sum{std::string(name), 0, 0, 0, 0};
    for (const Array& a : arrays) {
      if (a.name != name) continue;
      sum.read_bytes += a.read_bytes, sum.read_sectors += a.read_sectors;
      sum.written_bytes += a.written_bytes, sum.written_sectors += a.written_sectors;
    }
    return sum;
  }
  std::uint64_t blocks = 0, barriers = 0, shuffles = 0, syncs = 0, ldmatrix = 0, mma = 0;
};
/// Are the kernels of this program compiled for tracing?
bool can_trace();
/// Watches every access of the kernels from now on.
void begin_trace();
/// Ends that, and returns what was seen.
Counters end_trace();

// What Buffer is made of

/// Device memory, aligned to 256 bytes.
void* allocate_device(std::size_t bytes);
void release_device(void*) noexcept;
void fill_device(void* to, unsigned char byte, std::size_t bytes);
void copy_to_device(void* to, const void* from, std::size_t bytes);
void copy_from_device(void* to, const void* from, std::size_t bytes);
void copy_guard_from_device(void* to, const void* guard, std::size_t bytes);
/// Where accesses are watched: messages call [p, p + bytes) `name`, and the `guard` bytes on either side are forbidden to kernels.
void name_device_memory(void* p, std::size_t bytes, std::size_t guard, const char* name);
void forget_device_memory(void* p, std::size_t bytes, std::size_t guard) noexcept;

}  // namespace flashsteps::gpu
