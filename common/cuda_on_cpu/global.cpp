// Named buffers in global memory, and races between blocks in them.
#include "common/cuda_on_cpu/tracer.hpp"
#include <deque>

namespace flashsteps::cuda_on_cpu {
namespace trace {
namespace {

std::deque<Buffer> buffers;  // those released stay for their counters, until reset_counters()
std::uint32_t launch = 0;
constexpr std::uint32_t several = 0xffffffffu;
constexpr std::size_t near = 65536;

std::string block_text(std::uint32_t b) {
  if (b == several) return "several";
  return cuda_on_cpu::text({b % grid_size.x, b / grid_size.x % grid_size.y, b / grid_size.x / grid_size.y});
}

}  // namespace

void next_launch() { ++launch; }

void name_memory(void* p, std::size_t bytes, const char* name) {
  Buffer b{static_cast<char*>(p), bytes, name, {}, {}};
  b.units.resize((bytes + 1) / 2);
  b.counters.name = name;
  buffers.push_back(std::move(b));
}

void forget_memory(void* p) noexcept {
  for (Buffer& b : buffers)
    if (b.alive && b.base == p) {
      b.alive = false;
      b.units = {};
    }
}

Buffer* find_buffer(std::uintptr_t a) {
  static Buffer* last = nullptr;  // accesses come in runs
  const auto holds = [a](const Buffer& b) { return b.alive && a - reinterpret_cast<std::uintptr_t>(b.base) < b.bytes; };
  static std::size_t count = 0;
  if (count == buffers.size() && last != nullptr && holds(*last)) return last;
  count = buffers.size();
  last = nullptr;
  for (Buffer& b : buffers)
    if (holds(b)) last = &b;
  return last;
}

std::string neighbours(std::uintptr_t a) {
  std::string text;
  std::uintptr_t nearest = near;
  for (const Buffer& b : buffers) {
    if (!b.alive) continue;
    const auto begin = reinterpret_cast<std::uintptr_t>(b.base), end = begin + b.bytes;
    const std::uintptr_t distance = a >= end ? a - end : begin - a;
    if (distance >= nearest) continue;
    nearest = distance;
    text = "; " + std::to_string(distance) + (a >= end ? " bytes past the end of '" : " bytes before '") + b.name + "'";
  }
  return text;
}

void check_between_blocks(Buffer& b, std::uintptr_t a, std::size_t bytes, Kind kind, Place place, Findings& findings) {
  // Which earlier accesses of another block clash, by Kind of this one and of that one: load, store, atomic
  static constexpr bool clash[3][3] = {{false, true, true}, {true, true, true}, {true, true, false}};
  static const char* const what[] = {"reads", "writes", "adds to"};
  const std::size_t offset = a - reinterpret_cast<std::uintptr_t>(b.base);
  const std::uint32_t me = (block_index.z * grid_size.y + block_index.y) * grid_size.x + block_index.x;
  for (std::size_t i = offset / 2; i < (offset + bytes + 1) / 2 && i < b.units.size(); ++i) {
    Buffer::Unit& u = b.units[i];
    for (int k = 0; k < 3; ++k) {
      if (!clash[int(kind)][k] || u.of[k].launch != launch || u.of[k].block == me) continue;
      findings.add(place, Place(1 + k), [&] {
        return "race between blocks on byte " + std::to_string(2 * i) + " of '" + b.name + "': block " + block_text(u.of[k].block) + " " + what[k] +
               " it and block " + block_text(me) + " " + what[int(kind)] + " it in one launch, thread " + cuda_on_cpu::text(Block::current().lane().index) +
               " at " + text(place);
      });
    }
    Buffer::Last& mine = u.of[int(kind)];
    mine = {launch, mine.launch == launch && mine.block != me ? several : me};
  }
}

}  // namespace trace

std::vector<BufferCounters> buffer_counters() {
  std::map<std::string, BufferCounters> by_name;
  for (const trace::Buffer& b : trace::buffers) {
    BufferCounters& c = by_name[b.name];
    c.name = b.name;
    c.read_bytes += b.counters.read_bytes;
    c.read_sectors += b.counters.read_sectors;
    c.written_bytes += b.counters.written_bytes;
    c.written_sectors += b.counters.written_sectors;
  }
  std::vector<BufferCounters> all;
  for (auto& [name, c] : by_name) all.push_back(c);
  return all;
}

namespace trace {
void reset_buffer_counters() {
  std::erase_if(buffers, [](const Buffer& b) { return !b.alive; });
  for (Buffer& b : buffers) b.counters = {b.name, 0, 0, 0, 0};
}
}  // namespace trace

}  // namespace flashsteps::cuda_on_cpu
