// The grid: blocks from a counter, each run by one OS thread from its start to its end.
#include "common/cuda_on_cpu/block.hpp"
#include "common/cuda_on_cpu/overflow.hpp"
#include <mutex>
#include <numeric>
#include <thread>

namespace flashsteps::cuda_on_cpu {
namespace {

std::mutex totals_mutex;
Stats totals;

void add(const Block& block, std::uint64_t blocks) {
  const std::lock_guard lock(totals_mutex);
  totals.blocks += blocks;
  totals.barriers += block.barriers;
  totals.syncs += block.counts[int(Operation::sync)];
  totals.shuffles += block.counts[int(Operation::shuffle)];
  totals.votes += block.counts[int(Operation::vote)];
  totals.ldmatrix += block.counts[int(Operation::ldmatrix)];
  totals.mma += block.counts[int(Operation::mma)];
}

void check(dim3 grid, dim3 block, std::size_t shared_bytes) {
  const auto threads = std::uint64_t(block.x) * block.y * block.z;
  if (threads < 1 || threads > 1024 || block.z > 64) throw Error("a block has 1 to 1024 threads, not " + text({block.x, block.y, block.z}));
  if (grid.x < 1 || grid.y < 1 || grid.z < 1 || grid.x > 0x7fffffffu || grid.y > 65535 || grid.z > 65535)
    throw Error("a grid has 1 to 2147483647 x 65535 x 65535 blocks, not " + text({grid.x, grid.y, grid.z}));
  if (shared_bytes > settings().shared_bytes)
    throw Error("the launch asks for " + std::to_string(shared_bytes) + " bytes of shared memory a block; the device has " +
                std::to_string(settings().shared_bytes));
}

/// The i-th block to run.
class BlockOrder {
 public:
  explicit BlockOrder(std::uint64_t total) : total_(total) {
    if (settings().order != Order::random || total < 2) return;
    Random random(settings().seed);
    start_ = random() % total;
    do step_ = random() % total;  // a step without a common factor reaches every block once
    while (std::gcd(step_, total) != 1);
  }
  std::uint64_t operator()(std::uint64_t i) const {
    if (settings().order == Order::forward) return i;
    if (settings().order == Order::reverse) return total_ - 1 - i;
    return std::uint64_t((static_cast<unsigned __int128>(i) * step_ + start_) % total_);
  }

 private:
  std::uint64_t total_, start_ = 0, step_ = 1;
};

}  // namespace

Settings& settings() {
  static Settings s;
  return s;
}
Stats stats() {
  const std::lock_guard lock(totals_mutex);
  return totals;
}
void reset_stats() {
  const std::lock_guard lock(totals_mutex);
  totals = {};
}

void launch_blocks(dim3 grid, dim3 block, std::size_t shared_bytes, const Body& body) {
  check(grid, block, shared_bytes);
  if (settings().trace && !trace::is_linked()) throw Error("settings().trace, but the program is not linked with the tracer");
  const auto total = std::uint64_t(grid.x) * grid.y * grid.z;
  const BlockOrder order(total);
  std::atomic<std::uint64_t> next{0};
  std::exception_ptr error;
  std::mutex error_mutex;
  trace::launch_begins(body.arguments, body.bytes);

  const auto work = [&] {
    const OverflowGuard guard;
    thread_local Block own;  // keeps its fibers from launch to launch
    own.barriers = 0;
    std::fill(std::begin(own.counts), std::end(own.counts), 0u);
    block_size = {block.x, block.y, block.z};
    grid_size = {grid.x, grid.y, grid.z};
    std::uint64_t blocks = 0;
    for (std::uint64_t i; (i = next++) < total; ++blocks) {
      const std::uint64_t b = order(i);
      block_index = {unsigned(b % grid.x), unsigned(b / grid.x % grid.y), unsigned(b / grid.x / grid.y)};
      try {
        own.run(block, shared_bytes, body, Random(settings().seed * 0x2545f4914f6cdd1du + b));
      } catch (...) {
        const std::lock_guard lock(error_mutex);
        if (!error) error = std::current_exception();
        next = total;
      }
    }
    add(own, blocks);
  };

  int threads = settings().os_threads > 0 ? settings().os_threads : std::max(1, int(std::thread::hardware_concurrency()));
  if (settings().trace) threads = 1;
  threads = int(std::min<std::uint64_t>(std::uint64_t(threads), total));
  std::vector<std::thread> others;
  for (int i = 1; i < threads; ++i) others.emplace_back(work);
  work();
  for (std::thread& t : others) t.join();

  if (error) {
    trace::launch_failed();
    std::rethrow_exception(error);
  }
  trace::launch_ends();
}

}  // namespace flashsteps::cuda_on_cpu
