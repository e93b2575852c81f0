#pragma once
// How much memory a run takes, as the system sees it.
#include <cstdint>
#include <optional>

namespace flashsteps {

/// The growth of this process's memory from here on.
class ResidentGrowth {
 public:
  /// Gives back to the system what was freed, and begins to watch.
  ResidentGrowth();
  /// @return the most bytes that were resident at once, beyond those at the beginning; nothing where the system does not say
  std::optional<std::int64_t> most() const;

 private:
  std::optional<std::int64_t> before_;
};

}  // namespace flashsteps
