#include "common/cuda_on_cpu/overflow.hpp"
#include "common/cuda_on_cpu/block.hpp"
#include "common/cuda_on_cpu/sanitizer.hpp"
#include <mutex>

namespace flashsteps::cuda_on_cpu {

#if defined(FLASHSTEPS_ADDRESS_SANITIZER)
OverflowGuard::OverflowGuard() {}
OverflowGuard::~OverflowGuard() {}
#else
namespace {

struct sigaction previous {};

// Leaves for the scheduler, and the kernel's stack and this one behind: SA_NODEFER, for nobody returns to unblock the signal
void handle(int, siginfo_t* info, void*) {
  if (Block::running() && Block::current().lane().fiber.overflowed_at(info->si_addr)) {
    Block& block = Block::current();
    block.lane().inside = 1;
    block.fail(thread_name(block.lane()) + " overflowed its stack of " + std::to_string(settings().stack_bytes) + " bytes");
  }
  sigaction(SIGSEGV, &previous, nullptr);  // not ours: whoever was there before gets it when it happens again
}

/// At every launch: a test framework may have put its own handler in between.
void install() {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  struct sigaction ours {
  }, before{};
  ours.sa_sigaction = handle;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  sigemptyset(&ours.sa_mask);
  sigaction(SIGSEGV, &ours, &before);
  if ((before.sa_flags & SA_SIGINFO) == 0 || before.sa_sigaction != handle) previous = before;
}

}  // namespace

OverflowGuard::OverflowGuard() {
  constexpr std::size_t bytes = 64 * 1024;
  stack_.reset(new char[bytes]);
  stack_t stack{};
  stack.ss_sp = stack_.get();
  stack.ss_size = bytes;
  sigaltstack(&stack, &before_);
  install();
}
OverflowGuard::~OverflowGuard() { sigaltstack(&before_, nullptr); }
#endif

}  // namespace flashsteps::cuda_on_cpu
