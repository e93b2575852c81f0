#pragma once
// An array in device memory.
#include "common/cuda/cuda.hpp"
#include <cstring>
#include <utility>
#include <vector>

namespace flashsteps::gpu {

/// n elements that start as 0xFF bytes, NaN in every floating-point type, between two guards that no kernel may touch. Messages
/// call it by its name.
template <class T> class Buffer {
 public:
  explicit Buffer(std::size_t n, const char* name = "buffer") : n_(n), name_(name) {
    const std::size_t bytes = sizeof(T) * n + 2 * guard;
#if defined(__CUDACC__)
    void* p = nullptr;
    check(cudaMalloc(&p, bytes), "cudaMalloc");
    base_ = static_cast<unsigned char*>(p);
    check(cudaMemset(base_, 0xff, bytes), "cudaMemset");
#else
    base_ = static_cast<unsigned char*>(cuda_on_cpu::allocate(bytes));
    cuda_on_cpu::name_memory(data(), sizeof(T) * n, name);
#endif
    fill_guards();
  }
  explicit Buffer(const std::vector<T>& values, const char* name = "buffer") : Buffer(values.size(), name) { upload(values); }
  Buffer(Buffer&& from) noexcept : base_(std::exchange(from.base_, nullptr)), n_(from.n_), name_(std::move(from.name_)) {}
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  Buffer& operator=(Buffer&&) = delete;
  ~Buffer() {
    if (base_ == nullptr) return;
#if defined(__CUDACC__)
    cudaFree(base_);
#else
    cuda_on_cpu::forbid(base_, guard, false);
    cuda_on_cpu::forbid(base_ + guard + sizeof(T) * n_, guard, false);
    cuda_on_cpu::forget_memory(data());
    cuda_on_cpu::release(base_);
#endif
  }

  T* data() { return reinterpret_cast<T*>(base_ + guard); }
  const T* data() const { return reinterpret_cast<const T*>(base_ + guard); }
  std::size_t size() const { return n_; }

  void upload(const std::vector<T>& values) {
    if (values.size() != n_) throw std::runtime_error("'" + name_ + "' has " + std::to_string(n_) + " elements, not " + std::to_string(values.size()));
#if defined(__CUDACC__)
    check(cudaMemcpy(data(), values.data(), sizeof(T) * n_, cudaMemcpyHostToDevice), "cudaMemcpy");
#else
    if (n_ != 0) std::memcpy(static_cast<void*>(data()), values.data(), sizeof(T) * n_);
#endif
  }

  /// What the kernels left. Throws what went wrong in them, and where a guard was written.
  std::vector<T> download() const {
    check_guards();
    std::vector<T> values(n_);
    if (n_ != 0) copy_out(values.data(), base_ + guard, sizeof(T) * n_);
    return values;
  }

  void check_guards() const {
    const std::size_t end = guard + sizeof(T) * n_;
    const auto before = read_guard(0), after = read_guard(end);
    for (std::size_t i = 0; i < guard; ++i) {
      if (before[guard - 1 - i] != guard_byte) throw std::runtime_error("a kernel wrote " + std::to_string(i + 1) + " byte(s) before '" + name_ + "'");
      if (after[i] != guard_byte) throw std::runtime_error("a kernel wrote " + std::to_string(i) + " bytes past the end of '" + name_ + "'");
    }
  }

 private:
  static constexpr std::size_t guard = 256;  // keeps the data aligned to 256
  static constexpr unsigned char guard_byte = 0xa5;

  void fill_guards() {
    for (const std::size_t at : {std::size_t(0), guard + sizeof(T) * n_}) {
#if defined(__CUDACC__)
      check(cudaMemset(base_ + at, guard_byte, guard), "cudaMemset");
#else
      std::memset(base_ + at, guard_byte, guard);
      cuda_on_cpu::forbid(base_ + at, guard, true);  // where AddressSanitizer is at hand, it names the line
#endif
    }
  }
  std::vector<unsigned char> read_guard(std::size_t at) const {
    std::vector<unsigned char> bytes(guard);
#if !defined(__CUDACC__)
    cuda_on_cpu::forbid(base_ + at, guard, false);
#endif
    copy_out(bytes.data(), base_ + at, guard);
#if !defined(__CUDACC__)
    cuda_on_cpu::forbid(base_ + at, guard, true);
#endif
    return bytes;
  }
  static void copy_out(void* to, const unsigned char* from, std::size_t bytes) {
#if defined(__CUDACC__)
    check(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost), "cudaMemcpy");
#else
    std::memcpy(to, from, bytes);
#endif
  }

  unsigned char* base_ = nullptr;
  std::size_t n_;
  std::string name_;
};

}  // namespace flashsteps::gpu
