#pragma once
// What the tracer counted: a model of the accesses as the source asks for them, to be taught; no measurement of a GPU.
#include <cstdint>
#include <string>
#include <vector>

namespace flashsteps::cuda_on_cpu {

/// True in a program that is linked with the tracer: settings().trace then works.
bool trace_is_linked();

/// The accesses of one source line in one direction. A request is one access by the lanes of a warp that make it together.
struct LineCounters {
  std::string place;  ///< file.cu:12
  bool shared, write;
  std::uint64_t requests, bytes;
  std::uint64_t distinct_bytes;        ///< of each request, an address that several lanes name counted once
  std::uint64_t sectors;               ///< of 32 bytes in global memory
  std::uint64_t passes, ideal_passes;  ///< over the 32 banks of shared memory

  double bytes_used() const { return sectors == 0 ? 1 : double(distinct_bytes) / (32.0 * double(sectors)); }
  double conflict() const { return ideal_passes == 0 ? 1 : double(passes) / double(ideal_passes); }
};
std::vector<LineCounters> line_counters();

/// The traffic of one named buffer: of each request, an address that several lanes name counted once. An atomic addition counts as a write.
struct BufferCounters {
  std::string name;
  std::uint64_t read_bytes, read_sectors, written_bytes, written_sectors;
};
std::vector<BufferCounters> buffer_counters();

void reset_counters();
/// All lines as a table.
std::string counters_table();

}  // namespace flashsteps::cuda_on_cpu
