#pragma once
// Reads NumPy's .npy files. Writing is output_folder.hpp's.

#include <cstddef>
#include <string>
#include <vector>

#include "common/runner/bad_input.hpp"

namespace flashsteps {

/// An array that was read from a file.
template <class T>
struct Npy {
  std::vector<std::ptrdiff_t> shape;  ///< length of every axis, 0 allowed
  std::vector<T> numbers;             ///< in C order: the last axis is contiguous, whatever the order in the file was
};

/// Reads a .npy file (format 1.0, 2.0 or 3.0) of little-endian float16, float32 or float64 in C or Fortran order.
/// float16 and float32 are taken exactly; float64 is rounded once to float, so what exceeds float's range becomes an infinity, as in NumPy.
/// Nothing is allocated before the size that the header claims has been checked against the size of the file.
/// @tparam T float or double
/// @param path the file
/// @param axes how many axes it must have
/// @return the shape and the numbers
/// @throws BadInput for every other file, with the file's name and what is wrong with it
template <class T>
Npy<T> read_npy(const std::string& path, int axes);

}  // namespace flashsteps
