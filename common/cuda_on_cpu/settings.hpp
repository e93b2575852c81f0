#pragma once
// What a user of the layer sees: how kernels are executed, what went wrong, what was counted.
#include <cstddef>
#include <cstdint>
#include <stdexcept>

namespace flashsteps::cuda_on_cpu {

/// In which order lanes, warps and blocks run. A right kernel gives the same result in each.
enum class Order { forward, reverse, random };

/// When an asynchronous copy takes place: at the wait for it, at once, or now one and now the other.
enum class Landing { late, early, random };

/// How kernels are executed. Change it only between launches.
struct Settings {
  Order order = Order::forward;            ///< of lanes, warps and blocks
  Landing landing = Landing::late;         ///< of asynchronous copies
  std::uint64_t seed = 1;                  ///< of the random order and landing
  int os_threads = 1;                      ///< 0: one a core. A block stays on one. Tracing takes one
  std::size_t shared_bytes = 99 * 1024;    ///< shared memory of a block: GeForce 30 and newer
  std::size_t stack_bytes = 64 * 1024;     ///< of a thread
  bool returned_may_miss_barrier = false;  ///< a barrier waits only for the threads that have not returned
  bool trace = false;                      ///< watch every access: needs kernels compiled for it, see trace_is_linked()
};
/// @return the settings, to be read and changed
Settings& settings();

/// A mistake of a kernel or of its launch. The message names block, thread and source line where they are known.
struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// What was executed since reset_stats().
struct Stats {
  std::uint64_t blocks = 0,                                                 ///< blocks that ended
      barriers = 0;                                                         ///< block barriers
  /// @{
  std::uint64_t syncs = 0, shuffles = 0, votes = 0, ldmatrix = 0, mma = 0;  ///< warp operations, one a warp
  /// @}
};
/// @return what was executed since reset_stats()
Stats stats();
/// Starts counting again.
void reset_stats();

}  // namespace flashsteps::cuda_on_cpu
