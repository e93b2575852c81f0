#pragma once
// A line on stderr for a person who waits.

#include <atomic>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <mutex>
#include <string>

namespace flashsteps {

/// Shows how far a long loop is, from 2 seconds after its construction on and about 5 times a second, and wipes the line at its end.
/// Silent unless stderr is a terminal that can wipe a line (TERM set and not "dumb").
class Progress {
 public:
  /// @param what what is being done, a few words
  /// @param total how many units there are
  Progress(std::string what, std::int64_t total);

  /// For tests: another terminal and another clock.
  /// @param what what is being done
  /// @param total how many units there are
  /// @param terminal where the line goes; nullptr means nowhere
  /// @param seconds a clock that never goes back
  Progress(std::string what, std::int64_t total, std::ostream* terminal, std::function<double()> seconds);

  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress();

  /// Counts units as done; any thread may call it at any time. Costs an atomic addition, and on a terminal a look at the clock.
  /// @param n how many units
  void advance(std::int64_t n = 1);

 private:
  const std::string what_;
  const std::int64_t total_;
  std::ostream* const terminal_;
  const std::function<double()> seconds_;
  std::atomic<std::int64_t> done_ = 0;
  std::atomic<double> next_ = 0;  // time of the next line
  std::mutex drawing_;
  bool drawn_ = false;
};

}  // namespace flashsteps
