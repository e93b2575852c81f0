#pragma once
// What the tracer counted: a model of the accesses as the source asks for them, to be taught; no measurement of a GPU.
#include <cstdint>
#include <string>
#include <vector>

namespace flashsteps::cuda_on_cpu {

/// @return true in a program that is linked with the tracer: settings().trace then works
bool trace_is_linked();

/// The accesses of one source line in one direction. A request is one access by the lanes of a warp that make it together.
struct LineCounters {
  std::string place;             ///< file.cu:12
  bool shared,                   ///< in shared memory, else in global memory
      write;                     ///< a store or an atomic addition, else a load
  std::uint64_t requests,        ///< how many
      bytes;                     ///< of all lanes
  std::uint64_t distinct_bytes;  ///< of each request, an address that several lanes name counted once
  std::uint64_t sectors;         ///< of 32 bytes in global memory
  std::uint64_t passes,          ///< over the 32 banks of shared memory
      ideal_passes;              ///< the fewest that would do

  /// @return the part of the sectors that the kernel asked for, 1 where there are none
  double bytes_used() const { return sectors == 0 ? 1 : double(distinct_bytes) / (32.0 * double(sectors)); }
  /// @return passes over ideal passes, 1 where there are none
  double conflict() const { return ideal_passes == 0 ? 1 : double(passes) / double(ideal_passes); }
};
/// @return the counters of every line
std::vector<LineCounters> line_counters();

/// The traffic of one named buffer: of each request, an address that several lanes name counted once. An atomic addition counts as a write.
struct BufferCounters {
  std::string name;          ///< of the buffer
  std::uint64_t read_bytes,  ///< by loads
      read_sectors,          ///< of 32 bytes
      written_bytes,         ///< by stores and atomic additions
      written_sectors;       ///< of 32 bytes
};
/// @return the counters of every named buffer
std::vector<BufferCounters> buffer_counters();

/// Starts counting again.
void reset_counters();
/// @return all lines as a table
std::string counters_table();

}  // namespace flashsteps::cuda_on_cpu
