// The tracer: every access of a kernel, checked as it comes and counted when its warp is done.
#include "common/cuda_on_cpu/tracer.hpp"
#include <link.h>

namespace flashsteps::cuda_on_cpu {

bool trace_is_linked() { return trace::is_linked(); }

namespace trace {
namespace {

bool active = false;
std::uintptr_t arguments_begin = 0, arguments_end = 0;
std::uintptr_t shared_begin = 0, shared_end = 0;
int threads = 0;
SharedShadow shadow;
Findings findings;
std::vector<Request> requests[1024];  // by thread

using Span = std::pair<std::uintptr_t, std::uintptr_t>;
std::vector<Span> image;  // the program itself: its constants and variables are no buffers
int note_image(dl_phdr_info* info, std::size_t, void*) {
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& h = info->dlpi_phdr[i];
    std::uintptr_t begin = 0;
    if (h.p_type == PT_LOAD) begin = info->dlpi_addr + h.p_vaddr;
    if (h.p_type == PT_TLS) begin = reinterpret_cast<std::uintptr_t>(info->dlpi_tls_data);
    if (begin != 0) image.push_back({begin, begin + h.p_memsz});
  }
  return 0;
}

[[noreturn]] void fail(const std::string& message) { Block::current().fail(message); }
bool in_shared(std::uintptr_t a, std::size_t bytes) { return a >= shared_begin && a + bytes <= shared_end; }
std::string who() { return thread_name(Block::current().lane()); }

void keep(int thread, Place place, std::uintptr_t a, std::size_t bytes, bool write, bool shared) {
  requests[thread].push_back({place, a, std::uint8_t(bytes), std::uint8_t(thread % 32), write, shared});
}

std::string past_shared(std::uintptr_t a) {
  const bool near = a >= shared_end && a - shared_end < 65536;
  return near ? "; " + std::to_string(a - shared_end) + " bytes past the end of shared memory" : "";
}

}  // namespace

bool is_linked() { return true; }

void launch_begins(const void* arguments, std::size_t bytes) {
  active = settings().trace;
  arguments_begin = reinterpret_cast<std::uintptr_t>(arguments);
  arguments_end = arguments_begin + bytes;
  findings.clear();
  next_launch();
  image.clear();
  dl_iterate_phdr(note_image, nullptr);
}
void launch_failed() {
  active = false;
  findings.clear();
}
void launch_ends() {
  active = false;
  findings.report();
}

void block_begins(void* base, std::size_t bytes, int n) {
  if (!active) return;
  shared_begin = reinterpret_cast<std::uintptr_t>(base);
  shared_end = shared_begin + bytes;
  threads = n;
  shadow.begin(static_cast<char*>(base), bytes);
  for (auto& r : requests) r.clear();
}
void barrier() {
  if (active) shadow.barrier();
}
void warp_sync(int warp, unsigned mask) {
  if (active) shadow.warp_sync(warp, mask);
}

void note(Place place, const void* p, std::size_t bytes, Kind kind) {
  const Lane& me = Block::current().lane();
  const auto a = reinterpret_cast<std::uintptr_t>(p);
  const bool write = kind != Kind::load;
  if (a >= shared_begin && a < shared_end) {
    if (a + bytes > shared_end) fail("access across the end of shared memory by " + who() + " at " + text(place));
    if (kind == Kind::load) shadow.read(me.number, place, a - shared_begin, bytes, findings);
    if (kind == Kind::store) shadow.write(me.number, place, a - shared_begin, bytes, findings);
    return keep(me.number, place, a, bytes, write, true);
  }
  if (me.fiber.holds(p) || (a >= arguments_begin && a < arguments_end)) return;
  Buffer* buffer = find_buffer(a);
  if (buffer != nullptr && a + bytes <= reinterpret_cast<std::uintptr_t>(buffer->base) + buffer->bytes) {
    check_between_blocks(*buffer, a, bytes, kind, place, findings);
    return keep(me.number, place, a, bytes, write, false);
  }
  if (buffer == nullptr)
    for (const auto& [begin, end] : image)
      if (a >= begin && a < end) return;
  fail(std::string(write ? "write" : "read") + " of " + std::to_string(bytes) + " bytes outside every buffer by " + who() + " at " + text(place) +
       (buffer != nullptr ? "; across the end of '" + buffer->name + "'" : neighbours(a) + past_shared(a)));
}

bool is_active() { return active && Block::running(); }
void note_from_kernel(Place place, const void* p, std::size_t bytes, Kind kind) {
  Lane& me = Block::current().lane();
  if (me.inside > 0) return;
  ++me.inside;
  note(place, p, bytes, kind);
  --me.inside;
}

void access(Site site, const void* p, int bytes, Kind kind) {
  if (active) note(place_of(site), p, std::size_t(bytes), kind);
}

void matrix_rows(Site site, const void* const rows[8], int first_thread) {
  if (!active) return;
  const Place place = place_of(site);
  Request r[8];
  const Request* all[8];
  for (int i = 0; i < 8; ++i) {
    const auto a = reinterpret_cast<std::uintptr_t>(rows[i]);
    if (!in_shared(a, 16))
      fail("ldmatrix: a row outside shared memory, from thread " + cuda_on_cpu::text(Block::current().lane(first_thread + i).index) + " of block " +
           cuda_on_cpu::text(block_index) + " at " + text(place) + past_shared(a));
    shadow.read(first_thread + i, place, a - shared_begin, 16, findings);
    r[i] = {place, a, 16, std::uint8_t(i), false, true};
    all[i] = &r[i];
  }
  count(all, 8);
}

void copy_begins(Site site, void* to, const void* from, int bytes, int read_bytes) {
  if (!active) return;
  const Place place = place_of(site);
  if (read_bytes > 0) note(place, from, std::size_t(read_bytes), Kind::load);
  const auto a = reinterpret_cast<std::uintptr_t>(to);
  if (!in_shared(a, std::size_t(bytes))) fail("asynchronous copy to outside shared memory by " + who() + " at " + text(place) + past_shared(a));
  const int thread = Block::current().lane().number;
  shadow.copy(thread, place, a - shared_begin, std::size_t(bytes), findings);
  keep(thread, place, a, std::size_t(bytes), true, true);
}
void copy_landed(void* to, int bytes) {
  if (!active) return;
  shadow.landed(Block::current().lane().number, reinterpret_cast<std::uintptr_t>(to) - shared_begin, std::size_t(bytes));
}

void warp_done(int warp) {
  if (!active) return;
  const int first = warp * 32, end = std::min(first + 32, threads);
  const auto same = [](const Request& a, const Request& b) { return a.place == b.place && a.shared == b.shared && a.write == b.write && a.bytes == b.bytes; };
  bool together = true;
  for (int t = first; t < end && together; ++t)
    together = std::equal(requests[first].begin(), requests[first].end(), requests[t].begin(), requests[t].end(), same);
  if (together) {
    for (std::size_t i = 0; i < requests[first].size(); ++i) {
      const Request* r[32];
      for (int t = first; t < end; ++t) r[t - first] = &requests[t][i];
      count(r, end - first);
    }
  } else {  // lanes went different ways: the k-th time that each ran an instruction goes together
    std::map<std::tuple<Place, bool, bool, int, int>, std::vector<const Request*>> groups;
    for (int t = first; t < end; ++t) {
      std::map<std::tuple<Place, bool, bool, int>, int> times;
      for (const Request& r : requests[t]) groups[{r.place, r.shared, r.write, r.bytes, times[{r.place, r.shared, r.write, r.bytes}]++}].push_back(&r);
    }
    for (const auto& [key, r] : groups) count(r.data(), int(r.size()));
  }
  for (int t = first; t < end; ++t) requests[t].clear();
}

}  // namespace trace
}  // namespace flashsteps::cuda_on_cpu
