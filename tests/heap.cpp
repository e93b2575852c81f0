#include "tests/heap.hpp"

#include <atomic>
#include <cstdlib>
#include <malloc.h>
#include <new>

namespace {

std::atomic<long> live = 0, most = 0;

void* counted(void* p) {
  if (!p) throw std::bad_alloc();
  const long now = live += long(malloc_usable_size(p));
  for (long seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {}
  return p;
}
void release(void* p) {
  if (p) live -= long(malloc_usable_size(p));
  std::free(p);
}

}  // namespace

void* operator new(std::size_t n) { return counted(std::malloc(n ? n : 1)); }
void* operator new(std::size_t n, std::align_val_t align) {
  const std::size_t a = std::size_t(align);
  return counted(std::aligned_alloc(a, (n + a - 1) / a * a));
}
void operator delete(void* p) noexcept { release(p); }
void operator delete(void* p, std::size_t) noexcept { release(p); }
void operator delete(void* p, std::align_val_t) noexcept { release(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { release(p); }

namespace flashsteps {

long allocated() { return live; }
void forget_most_allocated() { most = live.load(); }
long most_allocated() { return most; }

}  // namespace flashsteps
