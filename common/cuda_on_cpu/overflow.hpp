#pragma once
// A kernel's thread that overflows its stack runs into the page that traps, and becomes an Error like any other mistake.
#include <memory>
#include <signal.h>

namespace flashsteps::cuda_on_cpu {

/// While one lives, its OS thread has a stack on which the signal of an overflow can be handled. Does nothing under
/// AddressSanitizer, which handles that signal itself.
class OverflowGuard {
 public:
  OverflowGuard();
  ~OverflowGuard();
  OverflowGuard(const OverflowGuard&) = delete;

 private:
  std::unique_ptr<char[]> stack_;
  stack_t before_{};
};

}  // namespace flashsteps::cuda_on_cpu
