#pragma once
// A thread of a kernel: a stack of its own, and the place where it stopped. Boost's raw contexts, for its fiber class unwinds
// an abandoned stack by an exception, and a kernel that failed is abandoned.
#include <boost/context/detail/fcontext.hpp>
#include <cstddef>

namespace flashsteps::cuda_on_cpu {

/// A stack, and the place where its thread stopped.
class Fiber {
 public:
  /// Runs entry(argument) at each resume() after the last call of it returned.
  /// @param stack_bytes  of its stack
  /// @param entry        the function
  /// @param argument     what it is called with
  Fiber(std::size_t stack_bytes, void (*entry)(void*), void* argument);
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  void resume();   ///< From outside: runs until it suspends or returns. Always from the same OS thread.
  void suspend();  ///< From inside: goes back to who resumed.
  bool holds(const void* p) const { return p >= stack_ && p < stack_ + bytes_; }  ///< @param p an address @return is it on the stack?
  /// @param p  an address
  /// @return is it below the stack, where every access traps?
  bool overflowed_at(const void* p) const;

 private:
  static void start(boost::context::detail::transfer_t);

  char* stack_ = nullptr;
  std::size_t bytes_;
  void (*entry_)(void*);
  void* argument_;
  boost::context::detail::fcontext_t here_ = nullptr, caller_ = nullptr;
  bool ended_ = false;  // never set: without a way out of its loop, AddressSanitizer takes the entry for one that ends the program
  // What AddressSanitizer wants to know of both stacks
  void* own_frames_ = nullptr;
  void* caller_frames_ = nullptr;
  const void* caller_stack_ = nullptr;
  std::size_t caller_bytes_ = 0;
};

}  // namespace flashsteps::cuda_on_cpu
