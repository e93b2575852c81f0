#pragma once
// Counts what a program allocates with operator new: linked to it, heap.cpp replaces that operator.

namespace flashsteps {

/// @return bytes that are allocated now
long allocated();
/// Begins to look for the most bytes that are allocated at once.
void forget_most_allocated();
/// @return the most bytes that were allocated at once since then
long most_allocated();

/// @param work  `void()`
/// @return the most bytes that were allocated at once while it ran, beyond those before
template <class Work> long extra_bytes(Work work) {
  const long before = allocated();
  forget_most_allocated();
  work();
  return most_allocated() - before;
}

}  // namespace flashsteps
