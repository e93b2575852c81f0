#include "tests/benchmarks/machine.hpp"

#include "common/memory/packet.hpp"

#include <cstdlib>
#include <fmt/format.h>
#include <fstream>
#include <sched.h>
#include <unistd.h>

namespace flashsteps::bench {
namespace {

/// What stands behind "NAME: " or "NAME   : " in a file of the system; empty if nothing does.
std::string entry(const char* file, const std::string& name) {
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t colon = line.find(':');
    if (line.rfind(name, 0) == 0 && colon != std::string::npos) return line.substr(line.find_first_not_of(" \t", colon + 1));
  }
  return "";
}

Index positive(long x) { return x > 0 ? Index(x) : 0; }

std::string bytes(Index n) {
  return n == 0 ? "unknown" : n >= 1 << 20 ? fmt::format("{:.3g} MiB", double(n) / (1 << 20)) : fmt::format("{:.3g} KiB", double(n) / 1024);
}

}  // namespace

Machine machine() {
  Machine m;
  m.processor = entry("/proc/cpuinfo", "model name");
  if (m.processor.empty()) m.processor = "an unknown processor";
  cpu_set_t set;
  m.cores = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : int(sysconf(_SC_NPROCESSORS_ONLN));
  m.memory = positive(sysconf(_SC_PHYS_PAGES)) * positive(sysconf(_SC_PAGESIZE));
  m.l1 = positive(sysconf(_SC_LEVEL1_DCACHE_SIZE));
  m.l2 = positive(sysconf(_SC_LEVEL2_CACHE_SIZE));
  m.l3 = positive(sysconf(_SC_LEVEL3_CACHE_SIZE));
  return m;
}

Index free_memory() {
  const std::string kib = entry("/proc/meminfo", "MemAvailable");
  return kib.empty() ? machine().memory : Index(std::atoll(kib.c_str())) * 1024;
}

Build build() {
  Build b;
#if defined(__clang__)
  b.compiler = fmt::format("clang++ {}.{}.{}", __clang_major__, __clang_minor__, __clang_patchlevel__);
#else
  b.compiler = fmt::format("g++ {}.{}.{}", __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__);
#endif
  b.flags = FLASHSTEPS_FLAGS;
  b.mode = FLASHSTEPS_MODE;
  b.packet = simd_bytes;
  return b;
}

std::string machine_text() {
  const Machine m = machine();
  const Build b = build();
  return fmt::format("{}, {} core{}, {:.1f} GiB of memory; caches of {}, {} and {}\n{} {}; mode {}, assertions off, packets of {} bytes\n", m.processor,
                     m.cores, m.cores == 1 ? "" : "s", double(m.memory) / (1 << 30), bytes(m.l1), bytes(m.l2), bytes(m.l3), b.compiler, b.flags, b.mode,
                     b.packet);
}

}  // namespace flashsteps::bench
