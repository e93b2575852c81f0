// What a request of a warp costs: 32-byte sectors of global memory, passes over the 32 banks of shared memory.
#include "common/cuda_on_cpu/tracer.hpp"
#include <cstdio>

namespace flashsteps::cuda_on_cpu {
namespace trace {
void reset_buffer_counters();

namespace {
struct Key {
  Place place;
  bool shared, write;
  auto operator<=>(const Key&) const = default;
};
std::map<Key, LineCounters> lines;

template <class T> std::uint64_t count_distinct(T* begin, T* end) {
  std::sort(begin, end);
  return std::uint64_t(std::unique(begin, end) - begin);
}

void count_sectors(const Request* const* r, int n, LineCounters& line) {
  std::uintptr_t sectors[64];
  int k = 0;
  for (int i = 0; i < n; ++i)
    for (std::uintptr_t s = r[i]->address / 32; s <= (r[i]->address + r[i]->bytes - 1) / 32; ++s)
      if (k < 64) sectors[k++] = s;
  const std::uint64_t distinct = count_distinct(sectors, sectors + k);
  line.sectors += distinct;
  if (Buffer* b = find_buffer(r[0]->address)) {
    std::uintptr_t addresses[32];
    for (int i = 0; i < n; ++i) addresses[i] = r[i]->address;
    const std::uint64_t bytes = count_distinct(addresses, addresses + n) * r[0]->bytes;
    (r[0]->write ? b->counters.written_bytes : b->counters.read_bytes) += bytes;
    (r[0]->write ? b->counters.written_sectors : b->counters.read_sectors) += distinct;
  }
}

/// 8 bytes a lane go by half warps and 16 by quarters. Each bank gives one of its 4-byte words a pass.
void count_passes(const Request* const* r, int n, LineCounters& line) {
  const int bytes = r[0]->bytes, group = bytes <= 4 ? 32 : bytes == 8 ? 16 : 8;
  for (int first = 0; first < 32; first += group) {
    std::uintptr_t words[32 * 5];
    int k = 0;
    for (int i = 0; i < n; ++i) {
      if (r[i]->lane < first || r[i]->lane >= first + group) continue;
      for (std::uintptr_t w = r[i]->address / 4; w <= (r[i]->address + std::uintptr_t(bytes) - 1) / 4; ++w)
        if (k < 32 * 5) words[k++] = w;
    }
    if (k == 0) continue;
    std::sort(words, words + k);
    const auto* end = std::unique(words, words + k);
    int in_bank[32] = {};
    for (const auto* w = words; w != end; ++w) ++in_bank[*w % 32];
    line.passes += std::uint64_t(*std::max_element(in_bank, in_bank + 32));
    ++line.ideal_passes;
  }
}
}  // namespace

void count(const Request* const* r, int n) {
  LineCounters& line = lines[{r[0]->place, r[0]->shared, r[0]->write}];
  line.shared = r[0]->shared;
  line.write = r[0]->write;
  ++line.requests;
  line.bytes += std::uint64_t(n) * r[0]->bytes;
  std::uintptr_t addresses[32];
  for (int i = 0; i < n; ++i) addresses[i] = r[i]->address;
  line.distinct_bytes += count_distinct(addresses, addresses + n) * r[0]->bytes;
  if (line.shared) count_passes(r, n, line);
  else count_sectors(r, n, line);
}

}  // namespace trace

std::vector<LineCounters> line_counters() {
  std::vector<trace::Place> places;
  for (const auto& [key, line] : trace::lines) places.push_back(key.place);
  trace::look_up(places);
  std::map<std::tuple<std::string, bool, bool>, LineCounters> by_text;  // a line may hold several instructions
  for (const auto& [key, line] : trace::lines) {
    const std::string place = trace::text(key.place);
    LineCounters& sum = by_text[{place, key.shared, key.write}];
    sum.place = place;
    sum.shared = key.shared;
    sum.write = key.write;
    sum.requests += line.requests;
    sum.bytes += line.bytes;
    sum.distinct_bytes += line.distinct_bytes;
    sum.sectors += line.sectors;
    sum.passes += line.passes;
    sum.ideal_passes += line.ideal_passes;
  }
  std::vector<LineCounters> all;
  for (auto& [key, line] : by_text) all.push_back(line);
  return all;
}

void reset_counters() {
  trace::lines.clear();
  trace::reset_buffer_counters();
}

std::string counters_table() {
  std::string table;
  for (const LineCounters& l : line_counters()) {
    char text[256];
    const auto n = [](std::uint64_t x) { return static_cast<unsigned long long>(x); };
    const char* what = l.shared ? (l.write ? "shared store" : "shared load") : (l.write ? "global store" : "global load");
    if (l.shared)
      std::snprintf(text, sizeof text, "%-24s %-12s %9llu requests %11llu bytes %9llu passes   %6.2f passes for one\n", l.place.c_str(), what, n(l.requests),
                    n(l.bytes), n(l.passes), l.conflict());
    else
      std::snprintf(text, sizeof text, "%-24s %-12s %9llu requests %11llu bytes %9llu sectors  %5.1f %% of them used\n", l.place.c_str(), what, n(l.requests),
                    n(l.bytes), n(l.sectors), 100 * l.bytes_used());
    table += text;
  }
  return table;
}

}  // namespace flashsteps::cuda_on_cpu
