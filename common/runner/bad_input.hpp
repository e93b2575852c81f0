#pragma once
// What a program says when its input is wrong, and how large an input may be.

#include <cstddef>
#include <stdexcept>
#include <string>

namespace flashsteps {

/// The longest axis and the largest tile edge that is taken. Products of two of them, and sums of such products, stay inside 64 bits.
inline constexpr std::ptrdiff_t kLongestAxis = std::ptrdiff_t(1) << 30;

/// The most elements of one tensor; an axis of 0 counts as 1, so that strides stay inside 64 bits too.
inline constexpr std::ptrdiff_t kMostElements = std::ptrdiff_t(1) << 40;

/// Wrong arguments or a wrong file: one line that says what is wrong and what would be right. A program prints `NAME: line` on stderr and returns 2.
class BadInput : public std::runtime_error {
 public:
  /// @param line the message; control characters (a file name may hold any) become '?', so that it stays one line
  explicit BadInput(const std::string& line) : std::runtime_error(printable(line)) {}

 private:
  static std::string printable(std::string line) {
    for (char& c : line) {
      const auto byte = static_cast<unsigned char>(c);
      if (byte < 0x20 || byte == 0x7f) c = '?';
    }
    return line;
  }
};

}  // namespace flashsteps
