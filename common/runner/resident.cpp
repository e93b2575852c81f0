#include "common/runner/resident.hpp"

#include <algorithm>
#include <fstream>
#include <malloc.h>
#include <string>

namespace flashsteps {
namespace {

/// A line of /proc/self/status in bytes: VmRSS is what is resident now, VmHWM the most that was.
std::optional<std::int64_t> status(const std::string& name) {
  std::ifstream file("/proc/self/status");
  for (std::string word; file >> word;)
    if (std::int64_t kibibytes; word == name + ":" && file >> kibibytes) return 1024 * kibibytes;
  return {};
}

}  // namespace

ResidentGrowth::ResidentGrowth() {
  malloc_trim(0);
  std::ofstream clear("/proc/self/clear_refs");  // 5 makes VmHWM begin again (proc(5))
  clear << "5" << std::flush;
  if (clear) before_ = status("VmRSS");
}

std::optional<std::int64_t> ResidentGrowth::most() const {
  const std::optional<std::int64_t> peak = status("VmHWM");
  if (!before_ || !peak) return {};
  return std::max<std::int64_t>(0, *peak - *before_);
}

}  // namespace flashsteps
