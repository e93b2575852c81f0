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

enum class State : std::uint8_t { ready, at_barrier, at_operation, returned, failed };
enum class Operation : std::uint8_t { sync, shuffle, vote, ldmatrix, mma };
constexpr int operations = 5;

/// What a lane brings to a warp operation, and in `value` what it takes away.
struct Operands {
  std::uint64_t value = 0;
  int a = 0, b = 0, c = 0;
  const void* in[2] = {};
  void* out = nullptr;
};

/// An asynchronous copy in flight.
struct Copy {
  void* to;
  const void* from;
  int bytes, read_bytes;
  bool landed;
};

/// Seeded, and the same everywhere (xorshift).
struct Random {
  std::uint64_t state;
  explicit Random(std::uint64_t seed) : state(seed * 0x9e3779b97f4a7c15u | 1u) {}
  std::uint64_t operator()() {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state >> 11;
  }
};

struct Lane {
  Lane(std::size_t stack_bytes, void (*entry)(void*), void* argument) : fiber(stack_bytes, entry, argument) {}
  Fiber fiber;
  uint3 index{};
  int number = 0;  // in the block
  State state = State::returned;
  Operation operation{};  // that it waits at, with the mask and the line
  unsigned mask = 0;
  Site site{"", 0};
  Operands operands;
  std::vector<Copy> copies;               // not yet committed
  std::vector<std::vector<Copy>> groups;  // committed, the oldest first
  std::exception_ptr error;
  Random dice{1};
  int inside = 0;  // a function of the layer: see Inside
};

class Block {
 public:
  /// The block of this OS thread, inside a kernel.
  static Block& current();
  static bool running();

  /// All threads from the start to the end of the kernel. Throws Error.
  void run(dim3 size, std::size_t shared_bytes, const Body&, Random);

  Lane& lane() { return *lane_; }
  Lane& lane(int number) { return *lanes_[number]; }
  int threads() const { return threads_; }
  void* shared() const { return shared_; }
  std::size_t shared_bytes() const { return shared_bytes_; }
  std::uint64_t counts[operations] = {}, barriers = 0;

  /// All lanes of the mask meet; the last to arrive calls apply(lanes) for all, absent lanes being null.
  template <class F> Operands& meet(Operation, unsigned mask, Site, const Operands&, F apply);
  void barrier(Site);
  /// Ends the launch with this message where no exception can pass (in a call that the compiler put in).
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

std::string text(uint3);
std::string text(Site);                ///< file.cu:12
std::string thread_name(const Lane&);  ///< thread (1,0,0) of block (0,0,0)

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
