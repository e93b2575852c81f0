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
  std::string name;          ///< of the card, or of the layer
  bool is_gpu;               ///< false for the layer on the CPU
  int capability;            ///< 80 for 8.0
  std::size_t shared_bytes;  ///< shared memory that a block can get
};
/// @return it; nothing where there is no GPU, in a program that is made for one
std::optional<Device> device();

/// Waits for the kernels. On the CPU a launch has ended when it returns.
/// @throws std::runtime_error says what went wrong in them
void synchronize();

/// @return is this program made for a GPU?
bool is_for_gpu();

/// Blocks run on so many cores at once where kernels run on the CPU; on a GPU this says nothing.
/// @param n  cores; 0 for all
void use_cores(int n);

/// What the tracer saw of the kernels (docs/cuda-on-cpu.md). A model of the accesses that the source asks for; no measurement of a GPU.
struct Counters {
  /// The traffic of the buffers of one name.
  struct Array {
    std::string name;               ///< of the buffer
    std::uint64_t read_bytes,       ///< of each access of a warp, an address that several lanes name counted once
        read_sectors,               ///< of 32 bytes
        written_bytes,              ///< an atomic addition counts as a write
        written_sectors;            ///< of 32 bytes
  };
  std::vector<Array> arrays;        ///< a buffer each
  std::uint64_t passes = 0,         ///< over the banks of shared memory
      ideal_passes = 0;             ///< the fewest that these accesses could take
  /// All buffers of that name together.
  /// @param name  of a buffer
  /// @return their sums, 0 if there is none
  Array of(std::string_view name) const {
    Array sum{std::string(name), 0, 0, 0, 0};
    for (const Array& a : arrays) {
      if (a.name != name) continue;
      sum.read_bytes += a.read_bytes, sum.read_sectors += a.read_sectors;
      sum.written_bytes += a.written_bytes, sum.written_sectors += a.written_sectors;
    }
    return sum;
  }
  /// @{
  std::uint64_t blocks = 0, barriers = 0, shuffles = 0, syncs = 0, ldmatrix = 0, mma = 0;  ///< how many; barriers a block, the operations after them a warp
  /// @}
};
/// @return are the kernels of this program compiled for tracing?
bool can_trace();
/// Watches every access of the kernels from now on.
void begin_trace();
/// Ends that.
/// @return what was seen
Counters end_trace();

// What Buffer is made of

/// Device memory, aligned to 256 bytes.
/// @param bytes  how many
/// @return where it starts
/// @throws std::runtime_error on a GPU, std::bad_alloc on the CPU, if there is not enough
void* allocate_device(std::size_t bytes);
/// Gives it back.
/// @param p  what allocate_device returned
void release_device(void*) noexcept;
/// Sets device memory.
/// @param to     where it starts
/// @param byte   the value of each
/// @param bytes  how many
void fill_device(void* to, unsigned char byte, std::size_t bytes);
/// Copies from the host.
/// @param to     in device memory
/// @param from   in the host's
/// @param bytes  how many
void copy_to_device(void* to, const void* from, std::size_t bytes);
/// Copies to the host, after all kernels.
/// @param to     in the host's memory
/// @param from   in device memory
/// @param bytes  how many
void copy_from_device(void* to, const void* from, std::size_t bytes);
/// The same for the guards of a buffer, which nobody else may read.
/// @param to     in the host's memory
/// @param guard  in device memory
/// @param bytes  how many
void copy_guard_from_device(void* to, const void* guard, std::size_t bytes);
/// Where accesses are watched: messages call [p, p + bytes) `name`, and the `guard` bytes on either side are forbidden to kernels.
/// @param p      where the data starts
/// @param bytes  of the data
/// @param guard  bytes on either side
/// @param name   in messages
void name_device_memory(void* p, std::size_t bytes, std::size_t guard, const char* name);
/// Takes that back.
/// @param p      where the data starts
/// @param bytes  of the data
/// @param guard  bytes on either side
void forget_device_memory(void* p, std::size_t bytes, std::size_t guard) noexcept;

}  // namespace flashsteps::gpu
