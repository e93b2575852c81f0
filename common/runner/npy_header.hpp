#pragma once
// The header of a .npy file: a Python dictionary as text. For npy.cpp and output_folder.cpp.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace flashsteps {

/// What the header says. Whether the type is one that is read is for the caller to judge.
struct NpyHeader {
  std::string descr;                  ///< byte order, kind and bytes of a number, such as "<f4"
  bool fortran_order = false;         ///< the first axis is contiguous, not the last
  std::vector<std::ptrdiff_t> shape;  ///< 0 to kLongestAxis each
};

/// Reads the dictionary: exactly the three keys, in any order, either kind of quotes, spaces and trailing commas where Python takes them.
/// @param path the file, for messages
/// @param text the header, padding included
/// @return what it says
/// @throws BadInput for a header that is malformed, lacks a key, has another one, or describes records
NpyHeader parse_npy_header(const std::string& path, std::string_view text);

/// @param path  the file
/// @param why   what is wrong with it
/// @throws BadInput always: "PATH: WHY"
[[noreturn]] void refuse_file(const std::string& path, const std::string& why);

/// @return (2, 3), and (2,) for a single axis, as Python writes it
/// @param shape  length of every axis
std::string shape_text(const std::vector<std::ptrdiff_t>& shape);

}  // namespace flashsteps
