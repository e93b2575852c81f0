// Races and unwritten reads in shared memory.
#include "common/cuda_on_cpu/tracer.hpp"

namespace flashsteps::cuda_on_cpu::trace {
namespace {
std::string name(int thread) { return "thread " + cuda_on_cpu::text(Block::current().lane(thread).index); }
}  // namespace

void Findings::report() {
  if (messages_.empty()) return;
  std::string text = "the tracer found:";
  for (const auto& [places, message] : messages_) text += "\n  " + message;
  messages_.clear();
  throw Error(text);
}

void SharedShadow::begin(char*, std::size_t bytes) {
  if (units_.size() < bytes / 2 + 1) units_.resize(bytes / 2 + 1);
  ++generation_;
  epoch_ = 0;
  std::fill(std::begin(clock_), std::end(clock_), 0u);
  for (auto& row : seen_) std::fill(std::begin(row), std::end(row), 0u);
}

SharedShadow::Unit& SharedShadow::unit(std::size_t i) {
  Unit& u = units_[i];
  if (u.generation != generation_) {
    u = Unit{};
    u.generation = generation_;
  }
  return u;
}

void SharedShadow::warp_sync(int warp, unsigned mask) {
  std::uint32_t joined[32] = {};
  for (int i = 0; i < 32; ++i) {
    if (!(mask >> i & 1)) continue;
    const int thread = warp * 32 + i;
    for (int j = 0; j < 32; ++j) joined[j] = std::max(joined[j], seen_[thread][j]);
    joined[i] = std::max(joined[i], ++clock_[thread]);
  }
  for (int i = 0; i < 32; ++i)
    if (mask >> i & 1) std::copy(joined, joined + 32, seen_[warp * 32 + i]);
}

/// Does the access come before everything that the thread does now?
bool SharedShadow::ordered(const Access& a, int thread) const {
  return a.thread < 0 || a.thread == thread || a.epoch < epoch_ || (a.thread / 32 == thread / 32 && a.clock < seen_[thread][a.thread % 32]);
}

void SharedShadow::race(const char* what, const Access& a, int thread, Place place, std::size_t offset, Findings& findings) {
  findings.add(a.place, place, [&] {
    return std::string(what) + " on shared byte " + std::to_string(offset) + " in block " + cuda_on_cpu::text(block_index) + ": " + name(a.thread) + " at " +
           text(a.place) + ", then " + name(thread) + " at " + text(place) + ", with no barrier between";
  });
}

void SharedShadow::read(int thread, Place place, std::size_t offset, std::size_t bytes, Findings& findings) {
  for (std::size_t i = offset / 2; i < (offset + bytes + 1) / 2; ++i) {
    Unit& u = unit(i);
    if (u.in_flight) race("an asynchronous copy that was not waited for, and a read,", u.writer, thread, place, 2 * i, findings);
    else if (u.writer.thread < 0)
      findings.add(place, 0, [&] {
        return "read of shared byte " + std::to_string(2 * i) + " in block " + cuda_on_cpu::text(block_index) + ", which nobody wrote: " + name(thread) +
               " at " + text(place);
      });
    else if (!ordered(u.writer, thread)) race("a write and a read", u.writer, thread, place, 2 * i, findings);

    // Two readers are kept, of two warps if there are: enough to find a write that did not wait for some of many
    const Access now = this->now(thread, place);
    if (u.reader.thread < 0 || u.reader.epoch < epoch_) {
      u.reader = now;
      u.other_reader = {};
    } else if (u.reader.thread / 32 == thread / 32 && (u.reader.thread == thread || u.reader.clock < clock_[thread])) {
      u.reader = now;
    } else if (u.reader.thread != thread &&
               (u.other_reader.thread < 0 || u.other_reader.thread / 32 == u.reader.thread / 32 || u.other_reader.thread / 32 == thread / 32)) {
      u.other_reader = now;
    }
  }
}

void SharedShadow::write(int thread, Place place, std::size_t offset, std::size_t bytes, Findings& findings) {
  for (std::size_t i = offset / 2; i < (offset + bytes + 1) / 2; ++i) {
    Unit& u = unit(i);
    if (!ordered(u.writer, thread)) race("two writes", u.writer, thread, place, 2 * i, findings);
    for (const Access* r : {&u.reader, &u.other_reader})
      if (!ordered(*r, thread)) race("a read and a write", *r, thread, place, 2 * i, findings);
    u.writer = now(thread, place);
    u.reader = u.other_reader = {};
    u.in_flight = false;
  }
}

/// It may land from now on: a write here, and what is read before the wait may be old or new.
void SharedShadow::copy(int thread, Place place, std::size_t offset, std::size_t bytes, Findings& findings) {
  write(thread, place, offset, bytes, findings);
  for (std::size_t i = offset / 2; i < (offset + bytes) / 2; ++i) unit(i).in_flight = true;
}

/// From here on a write of the thread that waited, like any other.
void SharedShadow::landed(int thread, std::size_t offset, std::size_t bytes) {
  for (std::size_t i = offset / 2; i < (offset + bytes) / 2; ++i) {
    Unit& u = unit(i);
    u.in_flight = false;
    u.writer = now(thread, u.writer.place);
  }
}

}  // namespace flashsteps::cuda_on_cpu::trace
