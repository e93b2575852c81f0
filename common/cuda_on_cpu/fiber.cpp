#include "common/cuda_on_cpu/fiber.hpp"
#include "common/cuda_on_cpu/sanitizer.hpp"
#include <sys/mman.h>
#include <unistd.h>
#include <new>

namespace flashsteps::cuda_on_cpu {
namespace context = boost::context::detail;

namespace {
std::size_t page() {
  static const std::size_t bytes = std::size_t(sysconf(_SC_PAGESIZE));
  return bytes;
}
std::size_t guard() { return 16 * page(); }  // so that few frames are large enough to reach beyond it
}  // namespace

Fiber::Fiber(std::size_t stack_bytes, void (*entry)(void*), void* argument)
    : bytes_((stack_bytes + page() - 1) / page() * page()), entry_(entry), argument_(argument) {
  // Pages are taken as they are touched; the lowest ones trap an overflow
  void* p = mmap(nullptr, bytes_ + guard(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (p == MAP_FAILED) throw std::bad_alloc();
  mprotect(p, guard(), PROT_NONE);
  stack_ = static_cast<char*>(p) + guard();
  sanitizer::allow(stack_, bytes_);  // an abandoned stack at this address may have left red zones
}

Fiber::~Fiber() { munmap(stack_ - guard(), bytes_ + guard()); }

bool Fiber::overflowed_at(const void* p) const { return p >= stack_ - guard() && p < stack_; }

void Fiber::start(context::transfer_t from) {
  auto* me = static_cast<Fiber*>(from.data);
  me->caller_ = from.fctx;
  sanitizer::arrive(nullptr, &me->caller_stack_, &me->caller_bytes_);
  while (!me->ended_) {
    me->entry_(me->argument_);
    me->suspend();
  }
}

void Fiber::resume() {
  if (here_ == nullptr) here_ = context::make_fcontext(stack_ + bytes_, bytes_, &Fiber::start);
  sanitizer::leave(&caller_frames_, stack_, bytes_);
  here_ = context::jump_fcontext(here_, this).fctx;
  sanitizer::arrive(caller_frames_, nullptr, nullptr);
}

void Fiber::suspend() {
  sanitizer::leave(&own_frames_, caller_stack_, caller_bytes_);
  caller_ = context::jump_fcontext(caller_, nullptr).fctx;
  sanitizer::arrive(own_frames_, &caller_stack_, &caller_bytes_);
}

}  // namespace flashsteps::cuda_on_cpu
