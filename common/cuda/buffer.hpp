#pragma once
// An array in device memory.
#include "common/cuda/device.hpp"
#include <array>
#include <stdexcept>
#include <utility>
#include <vector>

namespace flashsteps::gpu {

/// n elements that start as 0xFF bytes, NaN in every floating-point type, between two guards that no kernel may touch. Messages
/// call it by its name.
template <class T> class Buffer {
 public:
  /// @param n     elements
  /// @param name  in messages
  explicit Buffer(std::size_t n, const char* name = "buffer")
      : base_(static_cast<unsigned char*>(allocate_device(sizeof(T) * n + 2 * guard))), n_(n), name_(name) {
    fill_device(base_, guard_byte, guard);
    fill_device(base_ + guard, 0xff, bytes());
    fill_device(base_ + guard + bytes(), guard_byte, guard);
    name_device_memory(data(), bytes(), guard, name);
  }
  /// @param values  what it starts with
  /// @param name    in messages
  explicit Buffer(const std::vector<T>& values, const char* name = "buffer") : Buffer(values.size(), name) { upload(values); }
  /// @param from  owns nothing afterwards
  Buffer(Buffer&& from) noexcept : base_(std::exchange(from.base_, nullptr)), n_(from.n_), name_(std::move(from.name_)) {}
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  Buffer& operator=(Buffer&&) = delete;
  ~Buffer() {
    if (base_ == nullptr) return;
    forget_device_memory(data(), bytes(), guard);
    release_device(base_);
  }

  /// @{
  /// @return the first element, in device memory, aligned to 256 bytes
  T* data() { return reinterpret_cast<T*>(base_ + guard); }
  const T* data() const { return reinterpret_cast<const T*>(base_ + guard); }
  /// @}
  std::size_t size() const { return n_; }  ///< @return elements

  /// Copies to the device.
  /// @param values  as many as the buffer has elements
  /// @throws std::runtime_error if they are not
  void upload(const std::vector<T>& values) {
    if (values.size() != n_) throw std::runtime_error("'" + name_ + "' has " + std::to_string(n_) + " elements, not " + std::to_string(values.size()));
    if (n_ != 0) copy_to_device(data(), values.data(), bytes());
  }

  /// What the kernels left.
  /// @return a copy of the elements
  /// @throws std::runtime_error says what went wrong in them, or where a guard was written
  std::vector<T> download() const {
    check_guards();
    std::vector<T> values(n_);
    if (n_ != 0) copy_from_device(values.data(), data(), bytes());
    return values;
  }

  /// Looks at both guards.
  /// @throws std::runtime_error says where one was written
  void check_guards() const {
    std::array<unsigned char, guard> before, after;
    copy_guard_from_device(before.data(), base_, guard);
    copy_guard_from_device(after.data(), base_ + guard + bytes(), guard);
    for (std::size_t i = 0; i < guard; ++i) {
      if (before[guard - 1 - i] != guard_byte) throw std::runtime_error("a kernel wrote " + std::to_string(i + 1) + " byte(s) before '" + name_ + "'");
      if (after[i] != guard_byte) throw std::runtime_error("a kernel wrote " + std::to_string(i) + " bytes past the end of '" + name_ + "'");
    }
  }

 private:
  static constexpr std::size_t guard = 256;  // keeps the data aligned to 256
  static constexpr unsigned char guard_byte = 0xa5;

  std::size_t bytes() const { return sizeof(T) * n_; }

  unsigned char* base_ = nullptr;
  std::size_t n_;
  std::string name_;
};

}  // namespace flashsteps::gpu
