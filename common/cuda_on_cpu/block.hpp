#pragma once
// The thread block that an OS thread is running: its threads as fibers, what each waits for, and its shared memory.
#include "common/cuda_on_cpu/device.hpp"
#include "common/cuda_on_cpu/fiber.hpp"
#include "common/cuda_on_cpu/trace.hpp"
#include <algorithm>
#include <atomic>
#include <exception>
#include <memory>
#include <string>
#include <vector>

namespace flashsteps::cuda_on_cpu {

/// What a thread does.
enum class State : std::uint8_t { ready, at_barrier, at_operation, returned, failed };
/// What the lanes of a warp do together.
enum class Operation : std::uint8_t { sync, shuffle, vote, ldmatrix, mma };
constexpr int operations = 5;  ///< kinds of Operation

/// What a lane brings to a warp operation, and in `value` what it takes away.
struct Operands {
  std::uint64_t value = 0;    ///< of a shuffle or a vote
  /// @{
  int a = 0, b = 0, c = 0;    ///< what else the operation wants
  /// @}
  const void* in[2] = {};     ///< what it reads
  void* out = nullptr;        ///< what it writes
};

/// An asynchronous copy in flight.
struct Copy {
  void* to;          ///< in shared memory
  const void* from;  ///< in global memory
  int bytes,         ///< to be written
      read_bytes;    ///< to be read; the rest is zero
  bool landed;       ///< has it taken place?
};

/// Seeded, and the same everywhere (xorshift).
struct Random {
  std::uint64_t state;  ///< never 0
  /// @param seed  any number
  explicit Random(std::uint64_t seed) : state(seed * 0x9e3779b97f4a7c15u | 1u) {}
  /// @return the next number, below 2^53
  std::uint64_t operator()() {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state >> 11;
  }
};

/// A thread of the block, as a lane of its warp.
struct Lane {
  /// @param stack_bytes     of its fiber
  /// @param entry,argument  what the fiber runs
  Lane(std::size_t stack_bytes, void (*entry)(void*), void* argument) : fiber(stack_bytes, entry, argument) {}
  Fiber fiber;                            ///< its stack
  uint3 index{};                          ///< threadIdx
  int number = 0;                         ///< in the block
  State state = State::returned;          ///< what it does
  Operation operation{};                  ///< that it waits at
  unsigned mask = 0;                      ///< of that operation
  Site site{"", 0};                       ///< of that operation
  Operands operands;                      ///< of that operation
  std::vector<Copy> copies;               ///< not yet committed
  std::vector<std::vector<Copy>> groups;  ///< committed, the oldest first
  std::exception_ptr error;               ///< if it failed
  Random dice{1};                         ///< for random landings
  int inside = 0;                         ///< a function of the layer: see Inside
};

/// One thread block at a time.
class Block {
 public:
  static Block& current();  ///< @return the block of this OS thread, inside a kernel
  static bool running();    ///< @return is this OS thread inside a kernel?

  /// All threads from the start to the end of the kernel.
  /// @param size          threads
  /// @param shared_bytes  dynamic shared memory
  /// @throws Error at the first mistake
  void run(dim3 size, std::size_t shared_bytes, const Body&, Random);

  Lane& lane() { return *lane_; }                             ///< @return the thread that runs
  Lane& lane(int number) { return *lanes_[number]; }          ///< @param number of a thread @return that thread
  int threads() const { return threads_; }                    ///< @return how many
  void* shared() const { return shared_; }                    ///< @return dynamic shared memory
  std::size_t shared_bytes() const { return shared_bytes_; }  ///< @return how much of it
  std::uint64_t counts[operations] = {},             ///< operations, by kind
      barriers = 0;                                  ///< block barriers

  /// All lanes of the mask meet; the last to arrive calls apply(lanes) for all, absent lanes being null.
  /// @param operation  what they do
  /// @param mask       the lanes
  /// @param site       the line of the call
  /// @param operands   what this lane brings
  /// @param apply      `void(Lane* const (&lanes)[32])`
  /// @return what this lane takes away
  template <class F> Operands& meet(Operation, unsigned mask, Site, const Operands&, F apply);
  /// All threads of the block meet.
  void barrier(Site);
  /// Ends the launch with this message where no exception can pass (in a call that the compiler put in).
  /// @param message  what went wrong
  [[noreturn]] void fail(std::string message);

 private:
  static void enter(void* self);
  void prepare(dim3 size, std::size_t shared_bytes, Random&);
  void run_warp(int warp, int* order, Random&);
  void resume(Lane&);
  void meet_at_barrier();
  [[noreturn]] void report_divergence(const char* what, int first, int end);
  unsigned existing_lanes(int warp) const;
  void arrive(Operation, unsigned mask, Site, const Operands&);

  std::vector<std::unique_ptr<Lane>> lanes_;
  std::size_t stack_bytes_ = 0;
  int threads_ = 0;
  unsigned arrived_[32] = {};  // a warp: lanes that wait at an operation
  Lane* lane_ = nullptr;
  const Body* body_ = nullptr;
  std::unique_ptr<char[]> arena_;
  char* shared_ = nullptr;
  std::size_t shared_bytes_ = 0, arena_bytes_ = 0;
  bool abandoned_ = false;  // fibers stopped half way cannot be used again
  std::string failure_;
};

/// While a kernel's thread is in a function of the layer. The linker may have merged an inline function of the C++ library that the
/// layer uses with its traced copy in a kernel's file; the tracer takes no notice of what such a one does in here.
class Inside {
 public:
  Inside() : lane_(Block::current().lane()) { ++lane_.inside; }
  ~Inside() { --lane_.inside; }
  Inside(const Inside&) = delete;

 private:
  Lane& lane_;
};

std::string text(uint3);               ///< @return (1,0,0)
std::string text(Site);                ///< @return file.cu:12
std::string thread_name(const Lane&);  ///< @return thread (1,0,0) of block (0,0,0)

template <class F> Operands& Block::meet(Operation operation, unsigned mask, Site site, const Operands& operands, F apply) {
  const Inside inside;
  arrive(operation, mask, site, operands);
  Lane& me = *lane_;
  const int warp = me.number / 32, first = warp * 32;
  if ((arrived_[warp] & me.mask) != me.mask) {
    me.fiber.suspend();
    return me.operands;
  }
  Lane* lanes[32];
  for (int i = 0; i < 32; ++i) {
    lanes[i] = me.mask >> i & 1 ? lanes_[first + i].get() : nullptr;
    if (lanes[i] == nullptr) continue;
    // Matrix operations take a warp at one instruction; the others need only one kind and one mask
    const bool matrix = operation == Operation::ldmatrix || operation == Operation::mma;
    if (lanes[i]->operation != operation || lanes[i]->mask != me.mask || (matrix && lanes[i]->site.line != site.line))
      report_divergence("warp divergence", first, std::min(first + 32, threads_));
  }
  apply(lanes);
  for (Lane* lane : lanes)
    if (lane != nullptr) lane->state = State::ready;
  arrived_[warp] &= ~me.mask;
  ++counts[int(operation)];
  if (operation == Operation::sync) trace::warp_sync(warp, me.mask);
  return me.operands;
}

}  // namespace flashsteps::cuda_on_cpu
