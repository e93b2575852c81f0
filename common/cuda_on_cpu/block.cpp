#include "common/cuda_on_cpu/block.hpp"
#include "common/cuda_on_cpu/sanitizer.hpp"
#include <cstdio>
#include <map>
#include <numeric>

namespace flashsteps::cuda_on_cpu {

constinit thread_local uint3 thread_index{}, block_index{}, block_size{}, grid_size{};

namespace {
constinit thread_local Block* current_block = nullptr;
constexpr std::size_t alignment = 128;  // of shared memory: a row of the 32 banks

const char* name(Operation o) {
  static const char* const names[] = {"__syncwarp", "a shuffle", "a vote", "ldmatrix", "mma"};
  return names[int(o)];
}
std::string place(const Lane& lane) {
  char mask[40] = "";
  if (lane.mask != all_lanes) std::snprintf(mask, sizeof mask, " with mask 0x%08x", lane.mask);
  switch (lane.state) {
    case State::at_barrier: return "at __syncthreads (" + text(lane.site) + ")";
    case State::at_operation: return std::string("at ") + name(lane.operation) + mask + " (" + text(lane.site) + ")";
    case State::returned: return "returned from the kernel";
    default: return "not yet there";
  }
}
void shuffle(int* a, int n, Random& random) {
  for (int i = n - 1; i > 0; --i) std::swap(a[i], a[random() % std::uint64_t(i + 1)]);
}
}  // namespace

std::string text(uint3 v) { return "(" + std::to_string(v.x) + "," + std::to_string(v.y) + "," + std::to_string(v.z) + ")"; }
std::string text(Site site) {
  const std::string file = site.file;
  return file.substr(file.rfind('/') + 1) + ":" + std::to_string(site.line);
}
std::string thread_name(const Lane& lane) { return "thread " + text(lane.index) + " of block " + text(block_index); }

Block& Block::current() {
  if (current_block == nullptr) throw Error("a function of the device was called outside a kernel");
  return *current_block;
}
bool Block::running() { return current_block != nullptr && current_block->lane_ != nullptr; }

void Block::enter(void* self) {
  auto& block = *static_cast<Block*>(self);
  Lane& me = *block.lane_;
  try {
    block.body_->call(block.body_->arguments);
    me.inside = 1;
    if (!me.copies.empty() || !me.groups.empty()) throw Error(thread_name(me) + " returned with asynchronous copies in flight");
  } catch (const ThreadExit&) {
    me.inside = 1;
  } catch (...) {
    me.inside = 1;
    me.error = std::current_exception();
  }
  me.state = State::returned;
}

void Block::fail(std::string message) {
  failure_ = std::move(message);
  lane_->state = State::failed;
  lane_->fiber.suspend();
  std::abort();  // a failed fiber is never resumed
}

void Block::barrier(Site site) {
  const Inside inside;
  lane_->site = site;
  lane_->state = State::at_barrier;
  lane_->fiber.suspend();
}

unsigned Block::existing_lanes(int warp) const {
  const int count = threads_ - warp * 32;
  return count >= 32 ? all_lanes : (1u << count) - 1;
}

void Block::arrive(Operation operation, unsigned mask, Site site, const Operands& operands) {
  Lane& me = *lane_;
  const int warp = me.number / 32, lane = me.number % 32;
  if (!(mask >> lane & 1)) throw Error(thread_name(me) + " is not in the mask that it gave to " + name(operation) + " (" + text(site) + ")");
  me.operation = operation;
  me.mask = mask & existing_lanes(warp);
  me.site = site;
  me.operands = operands;
  me.state = State::at_operation;
  const bool matrix = operation == Operation::ldmatrix || operation == Operation::mma;
  if (matrix && me.mask != all_lanes) throw Error(std::string(name(operation)) + " in a warp of fewer than 32 threads (" + text(site) + ")");
  arrived_[warp] |= 1u << lane;
}

void Block::report_divergence(const char* what, int first, int end) {
  std::map<std::string, std::vector<int>> groups;
  for (int i = first; i < end; ++i) groups[place(*lanes_[i])].push_back(i);
  std::string message = std::string(what) + " in block " + text(block_index) + ":";
  for (const auto& [where, threads] : groups)
    message += "\n  " + std::to_string(threads.size()) + " thread(s) " + where + ", first " + text(lanes_[threads.front()]->index);
  throw Error(message);
}

void Block::resume(Lane& lane) {
  lane_ = &lane;
  thread_index = lane.index;
  lane.fiber.resume();
  lane_ = nullptr;
  if (lane.error) std::rethrow_exception(lane.error);
  if (lane.state == State::failed) throw Error(failure_);
}

void Block::prepare(dim3 size, std::size_t shared_bytes, Random& random) {
  threads_ = int(size.x * size.y * size.z);
  if (abandoned_ || stack_bytes_ != settings().stack_bytes) lanes_.clear();
  stack_bytes_ = settings().stack_bytes;
  while (int(lanes_.size()) < threads_) lanes_.push_back(std::make_unique<Lane>(stack_bytes_, &Block::enter, this));

  if (!arena_ || shared_bytes != shared_bytes_) {
    if (arena_) sanitizer::allow(arena_.get(), arena_bytes_);
    arena_bytes_ = shared_bytes + 2 * alignment;
    arena_.reset(new char[arena_bytes_]);
    const auto start = reinterpret_cast<std::uintptr_t>(arena_.get());
    shared_ = arena_.get() + (alignment - start % alignment) % alignment;
    shared_bytes_ = shared_bytes;
    sanitizer::forbid(arena_.get(), arena_bytes_);
    sanitizer::allow(shared_, shared_bytes);
  }
  std::memset(shared_, 0xff, shared_bytes);  // what nobody wrote is NaN

  for (int i = 0; i < threads_; ++i) {
    Lane& lane = *lanes_[i];
    lane.number = i;
    lane.index = {unsigned(i) % size.x, unsigned(i) / size.x % size.y, unsigned(i) / (size.x * size.y)};
    lane.state = State::ready;
    lane.copies.clear();
    lane.groups.clear();
    lane.error = nullptr;
    lane.inside = 0;
    lane.dice = Random(random());
  }
  std::fill(std::begin(arrived_), std::end(arrived_), 0u);
}

/// Every lane of the warp to its next block barrier or its end.
void Block::run_warp(int warp, int* order, Random& random) {
  const int first = warp * 32, end = std::min(first + 32, threads_);
  for (bool again = true; again;) {
    again = false;
    if (settings().order == Order::random) shuffle(order, 32, random);
    for (int k = 0; k < 32; ++k) {
      const int i = first + order[k];
      if (i >= end || lanes_[i]->state != State::ready) continue;
      again = true;
      resume(*lanes_[i]);
    }
  }
  for (int i = first; i < end; ++i)
    if (lanes_[i]->state == State::at_operation) report_divergence("warp divergence", first, end);
  trace::warp_done(warp);
}

/// Lets the threads go on that wait at __syncthreads, if all do, and at the same one.
void Block::meet_at_barrier() {
  const Lane* one = nullptr;
  bool same = true, returned = false;
  for (int i = 0; i < threads_; ++i) {
    const Lane& lane = *lanes_[i];
    if (lane.state == State::returned) returned = true;
    else if (one == nullptr) one = &lane;
    else same = same && lane.site.line == one->site.line && std::strcmp(lane.site.file, one->site.file) == 0;
  }
  if (!same || (returned && !settings().returned_may_miss_barrier)) report_divergence("barrier divergence", 0, threads_);
  for (int i = 0; i < threads_; ++i)
    if (lanes_[i]->state == State::at_barrier) lanes_[i]->state = State::ready;
  ++barriers;
  trace::barrier();
}

void Block::run(dim3 size, std::size_t shared_bytes, const Body& body, Random random) {
  prepare(size, shared_bytes, random);
  body_ = &body;
  abandoned_ = true;
  current_block = this;
  struct Reset {
    ~Reset() { current_block = nullptr; }
  } reset;
  trace::block_begins(shared_, shared_bytes, threads_);

  const int warps = (threads_ + 31) / 32;
  int warp_order[32], lane_order[32];
  std::iota(warp_order, warp_order + warps, 0);
  std::iota(lane_order, lane_order + 32, 0);
  if (settings().order == Order::reverse) {
    std::reverse(warp_order, warp_order + warps);
    std::reverse(lane_order, lane_order + 32);
  }
  for (;;) {
    if (settings().order == Order::random) shuffle(warp_order, warps, random);
    for (int w = 0; w < warps; ++w) run_warp(warp_order[w], lane_order, random);
    const auto returned = [&](int i) { return lanes_[i]->state == State::returned; };
    int running = 0;
    for (int i = 0; i < threads_; ++i) running += !returned(i);
    if (running == 0) break;
    meet_at_barrier();
  }
  abandoned_ = false;
}

}  // namespace flashsteps::cuda_on_cpu
