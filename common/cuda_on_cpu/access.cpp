// Asynchronous copies, wide loads and stores, atomics, and the memory that they work on.
#include "common/cuda_on_cpu/block.hpp"
#include "common/cuda_on_cpu/sanitizer.hpp"
#include <new>

namespace flashsteps::cuda_on_cpu {
namespace {

// A copy may land at once or as late as the wait for it; a kernel has to be right with both.
void land(const Copy& c) {
  std::memcpy(c.to, c.from, std::size_t(c.read_bytes));
  std::memset(static_cast<char*>(c.to) + c.read_bytes, 0, std::size_t(c.bytes - c.read_bytes));
}

void check_aligned(const void* p, int bytes, const char* what, Site site) {
  if (reinterpret_cast<std::uintptr_t>(p) % std::uintptr_t(bytes) != 0)
    throw Error(std::string(what) + " of " + std::to_string(bytes) + " bytes by " + thread_name(Block::current().lane()) + " is not aligned to them (" +
                text(site) + ")");
}

template <class T> T add(T* to, T value, Site site) {
  const Inside inside;
  check_aligned(to, sizeof(T), "an atomic addition", site);
  trace::access(site, to, sizeof(T), trace::Kind::atomic);
  return std::atomic_ref<T>(*to).fetch_add(value, std::memory_order_relaxed);
}

}  // namespace

void async_copy(void* to, const void* from, int bytes, int read_bytes, Site site) {
  const Inside inside;
  Lane& me = Block::current().lane();
  check_aligned(to, bytes, "an asynchronous copy", site);
  if (read_bytes > 0) check_aligned(from, bytes, "an asynchronous copy", site);
  trace::copy_begins(site, to, from, bytes, read_bytes);
  const Landing landing = settings().landing;
  const bool early = landing == Landing::early || (landing == Landing::random && (me.dice() & 1) != 0);
  me.copies.push_back({to, from, bytes, read_bytes, early});
  if (early) land(me.copies.back());
}

void async_commit() {
  const Inside inside;
  Lane& me = Block::current().lane();
  me.groups.push_back(std::move(me.copies));
  me.copies.clear();
}

void async_wait(int pending) {
  const Inside inside;
  Lane& me = Block::current().lane();
  while (int(me.groups.size()) > pending) {
    for (const Copy& c : me.groups.front()) {
      if (!c.landed) land(c);
      trace::copy_landed(c.to, c.bytes);
    }
    me.groups.erase(me.groups.begin());
  }
}

void* shared_memory(std::size_t bytes, Site site) {
  const Inside inside;
  const Block& block = Block::current();
  if (bytes > block.shared_bytes())
    throw Error("the kernel uses " + std::to_string(bytes) + " bytes of shared memory (" + text(site) + "), but was launched with " +
                std::to_string(block.shared_bytes()));
  return block.shared();
}

void load(void* to, const void* from, int bytes, Site site) {
  const Inside inside;
  check_aligned(from, bytes, "a load", site);
  trace::access(site, from, bytes, trace::Kind::load);
  std::memcpy(to, from, std::size_t(bytes));
}
void store(void* to, const void* from, int bytes, Site site) {
  const Inside inside;
  check_aligned(to, bytes, "a store", site);
  trace::access(site, to, bytes, trace::Kind::store);
  std::memcpy(to, from, std::size_t(bytes));
}

float atomic_add(float* to, float value, Site site) { return add(to, value, site); }
int atomic_add(int* to, int value, Site site) { return add(to, value, site); }
unsigned atomic_add(unsigned* to, unsigned value, Site site) { return add(to, value, site); }
unsigned long long atomic_add(unsigned long long* to, unsigned long long value, Site site) { return add(to, value, site); }

void* allocate(std::size_t bytes) {
  void* p = ::operator new(bytes, std::align_val_t(256));
  std::memset(p, 0xff, bytes);
  return p;
}
void release(void* p) noexcept { ::operator delete(p, std::align_val_t(256)); }
void name_memory(void* p, std::size_t bytes, const char* name) { trace::name_memory(p, bytes, name); }
void forget_memory(void* p) noexcept { trace::forget_memory(p); }
void forbid(const void* p, std::size_t bytes, bool yes) noexcept { yes ? sanitizer::forbid(p, bytes) : sanitizer::allow(p, bytes); }

}  // namespace flashsteps::cuda_on_cpu
