#include "common/runner/progress.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace flashsteps {
namespace {

constexpr double kPatience = 2.0;  // seconds: what ends sooner needs no line
constexpr double kBetween = 0.2;   // seconds from line to line
constexpr std::string_view kWipe = "\r\x1b[K";

std::ostream* terminal_of_stderr() {
  const char* const term = std::getenv("TERM");
  const bool can_wipe = term != nullptr && *term != '\0' && std::string_view(term) != "dumb";
  return can_wipe && isatty(STDERR_FILENO) == 1 ? &std::cerr : nullptr;
}

double steady_seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

}  // namespace

Progress::Progress(std::string what, std::int64_t total) : Progress(std::move(what), total, terminal_of_stderr(), steady_seconds) {}

Progress::Progress(std::string what, std::int64_t total, std::ostream* terminal, std::function<double()> seconds)
    : what_(std::move(what)), total_(total), terminal_(terminal), seconds_(std::move(seconds)) {
  if (terminal_ != nullptr) next_ = seconds_() + kPatience;
}

Progress::~Progress() {
  if (drawn_) *terminal_ << kWipe << std::flush;
}

void Progress::advance(std::int64_t n) {
  const std::int64_t done = done_.fetch_add(n, std::memory_order_relaxed) + n;
  if (terminal_ == nullptr) return;
  const double now = seconds_();
  if (now <= next_.load(std::memory_order_relaxed)) return;
  const std::unique_lock lock(drawing_, std::try_to_lock);
  if (!lock.owns_lock() || now <= next_) return;  // another thread draws, or has just drawn
  next_ = now + kBetween;
  drawn_ = true;
  const double share = total_ > 0 ? std::clamp(static_cast<double>(done) / static_cast<double>(total_), 0.0, 1.0) : 1.0;
  *terminal_ << kWipe << fmt::format("{}  {:3.0f} %  ({} of {})", what_, 100 * share, done, total_) << std::flush;
}

}  // namespace flashsteps
