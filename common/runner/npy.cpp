// A .npy file is a magic word, a version, the length of a header, the header and the numbers:
//
//   "\x93NUMPY"  major  minor  length (2 bytes in version 1, 4 from 2 on)  {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }  numbers
//
// The header is a Python dictionary as text: npy_header.hpp reads it. Everything that is not plainly understood is refused.

#include "common/runner/npy.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <new>
#include <string_view>

#include <fmt/format.h>

#include "common/runner/npy_header.hpp"

namespace flashsteps {
namespace {

static_assert(std::endian::native == std::endian::little, "the numbers of a file are taken as they lie");

constexpr std::string_view kMagic = "\x93NUMPY";

/// How many bytes a number takes in the file; refuses what is not a little-endian float.
std::size_t bytes_per_number(const std::string& path, const std::string& descr) {
  const std::string_view type = std::string_view(descr).substr(std::min<std::size_t>(descr.size(), 1));
  const bool is_float = type == "f2" || type == "f4" || type == "f8";
  const char order = descr.empty() ? '?' : descr[0];
  if (is_float && (order == '<' || order == '=')) return static_cast<std::size_t>(type[1] - '0');
  if (is_float && order == '>') refuse_file(path, fmt::format("holds '{}', which is big-endian; save it with .astype('<{}')", descr, type));
  if (type == "O" || descr == "O") refuse_file(path, fmt::format("holds pickled Python objects ('{}'); save it with .astype('<f4')", descr));
  refuse_file(path, fmt::format("holds '{}'; accepted are '<f2', '<f4' and '<f8': save it with .astype('<f4')", descr));
}

/// The product of the axes. An axis of 0 counts as 1 in the check, so that strides fit as well.
std::ptrdiff_t count_numbers(const std::string& path, const std::vector<std::ptrdiff_t>& shape) {
  std::ptrdiff_t product = 1, checked = 1;
  for (const std::ptrdiff_t length : shape) {
    const std::ptrdiff_t factor = std::max<std::ptrdiff_t>(length, 1);
    if (checked > kMostElements / factor) {
      refuse_file(path, fmt::format("its shape {} has more than {} elements, the most that is taken", shape_text(shape), kMostElements));
    }
    checked *= factor;
    product *= length;
  }
  return product;
}

/// float16 as its bits: 1 sign, 5 exponent, 10 fraction. Exact in float and double.
template <class T>
T from_half(std::uint16_t bits) {
  const int exponent = (bits >> 10) & 0x1f;
  const int fraction = bits & 0x3ff;
  T magnitude;
  if (exponent == 0x1f) {
    magnitude = fraction == 0 ? std::numeric_limits<T>::infinity() : std::numeric_limits<T>::quiet_NaN();
  } else if (exponent == 0) {
    magnitude = std::ldexp(T(fraction), -24);  // zero and subnormals
  } else {
    magnitude = std::ldexp(T(fraction + 0x400), exponent - 25);
  }
  return std::copysign(magnitude, (bits & 0x8000) != 0 ? T(-1) : T(1));
}

template <class T>
T number_at(const char* bytes, std::size_t size) {
  const auto as = [&]<class Stored>(Stored stored) {
    std::memcpy(&stored, bytes, sizeof stored);
    return stored;
  };
  if (size == 2) return from_half<T>(as(std::uint16_t()));
  if (size == 4) return static_cast<T>(as(float()));
  return static_cast<T>(as(double()));
}

/// Where in C order the numbers of a file lie that come in Fortran order (or C order itself): an odometer over the axes.
class PlaceInCOrder {
 public:
  PlaceInCOrder(const std::vector<std::ptrdiff_t>& shape, bool fortran_order) : index_(shape.size(), 0) {
    std::ptrdiff_t stride = 1;
    for (std::size_t axis = shape.size(); axis-- > 0; stride *= shape[axis]) wheels_.push_back({shape[axis], stride});
    if (fortran_order) std::reverse(wheels_.begin(), wheels_.end());
  }
  std::size_t here() const { return static_cast<std::size_t>(place_); }
  void advance() {
    for (std::size_t wheel = 0; wheel < wheels_.size(); ++wheel) {
      place_ += wheels_[wheel].stride;
      if (++index_[wheel] < wheels_[wheel].length) return;
      place_ -= wheels_[wheel].stride * wheels_[wheel].length;
      index_[wheel] = 0;
    }
  }

 private:
  struct Wheel {
    std::ptrdiff_t length, stride;
  };
  std::vector<Wheel> wheels_;  // fastest in the file first
  std::vector<std::ptrdiff_t> index_;
  std::ptrdiff_t place_ = 0;
};

/// An open file of known size, read front to back.
class File {
 public:
  explicit File(const std::string& path) : path_(path) {
    std::error_code error;
    const auto status = std::filesystem::status(path, error);
    if (!std::filesystem::exists(status)) refuse_file(path, "no such file");
    if (std::filesystem::is_directory(status)) refuse_file(path, "is a folder; a .npy file is expected");
    if (!std::filesystem::is_regular_file(status)) refuse_file(path, "is not a regular file");
    size_ = std::filesystem::file_size(path, error);
    stream_.open(path, std::ios::binary);
    if (error || !stream_) refuse_file(path, "cannot be read (permission?)");
  }
  std::uintmax_t size() const { return size_; }
  std::uintmax_t left() const { return size_ - taken_; }
  void take(char* into, std::size_t bytes) {
    if (!stream_.read(into, static_cast<std::streamsize>(bytes))) refuse_file(path_, "cannot be read to its end");
    taken_ += bytes;
  }
  std::string take(std::size_t bytes, std::string_view what) {
    if (bytes > left()) refuse_file(path_, fmt::format("ends inside its {}: {} bytes are missing", what, bytes - left()));
    std::string text(bytes, '\0');
    take(text.data(), bytes);
    return text;
  }

 private:
  const std::string& path_;
  std::ifstream stream_;
  std::uintmax_t size_ = 0, taken_ = 0;
};

NpyHeader read_header(const std::string& path, File& file) {
  if (file.size() == 0) refuse_file(path, "is empty; a .npy file is expected");
  const std::string magic = file.take(std::min<std::uintmax_t>(kMagic.size(), file.left()), "magic word");
  if (magic.starts_with("PK")) refuse_file(path, "is a zip archive (.npz?); save each array by itself with numpy.save");
  if (magic != kMagic) refuse_file(path, "is not a .npy file: it does not begin with \\x93NUMPY");
  const std::string version = file.take(2, "version");
  const int major = static_cast<unsigned char>(version[0]), minor = static_cast<unsigned char>(version[1]);
  if (major < 1 || major > 3 || minor != 0) refuse_file(path, fmt::format("is a .npy file of format {}.{}; known are 1.0, 2.0 and 3.0", major, minor));
  std::size_t length = 0;
  const std::string length_bytes = file.take(major == 1 ? 2 : 4, "header");
  for (std::size_t i = length_bytes.size(); i-- > 0;) length = length << 8 | static_cast<unsigned char>(length_bytes[i]);
  return parse_npy_header(path, file.take(length, "header"));
}

}  // namespace

template <class T>
Npy<T> read_npy(const std::string& path, int axes) {
  File file(path);
  const NpyHeader header = read_header(path, file);
  const std::size_t size = bytes_per_number(path, header.descr);
  if (header.shape.size() != static_cast<std::size_t>(axes)) {
    refuse_file(path, fmt::format("has {} axes, {}; {} are expected", header.shape.size(), shape_text(header.shape), axes));
  }
  const auto count = static_cast<std::size_t>(count_numbers(path, header.shape));
  if (count * size != file.left()) {
    refuse_file(path, fmt::format("is {} than its header says: {} of '{}' take {} bytes, there are {}", file.left() < count * size ? "shorter" : "longer",
                             shape_text(header.shape), header.descr, count * size, file.left()));
  }
  Npy<T> array{header.shape, {}};
  try {
    array.numbers.resize(count);
  } catch (const std::bad_alloc&) {
    refuse_file(path, fmt::format("its {} numbers do not fit into memory", count));
  }
  std::vector<char> chunk(std::min(count, std::size_t(1) << 16) * size);
  PlaceInCOrder place(header.shape, header.fortran_order);
  for (std::size_t done = 0; done < count;) {
    const std::size_t now = std::min(chunk.size() / size, count - done);
    file.take(chunk.data(), now * size);
    for (std::size_t i = 0; i < now; ++i, place.advance()) array.numbers[place.here()] = number_at<T>(&chunk[i * size], size);
    done += now;
  }
  return array;
}

template Npy<float> read_npy<float>(const std::string& path, int axes);
template Npy<double> read_npy<double>(const std::string& path, int axes);

}  // namespace flashsteps
