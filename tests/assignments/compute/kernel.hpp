#pragma once
// Between the main program of a kernel and the file that holds the student's kernel.
#include "common/cuda/problem.hpp"
#include <string>
#include <vector>

namespace flashsteps::kernel_run {

/// An array in shared memory, for messages.
struct Array {
  std::string name;       ///< as the kernel calls it
  std::size_t offset,     ///< bytes from the start of shared memory
      bytes,              ///< of the whole array
      row_bytes;          ///< of a row; as many as of an element if it has no rows
};

/// @return the compiled shapes of the kernel
gpu::Kernels kernels();
/// The arrays of a compiled shape in shared memory.
/// @param compiled  one of kernels()
/// @return them, in order; none if they are not known
std::vector<Array> arrays(const gpu::Compiled& compiled);

}  // namespace flashsteps::kernel_run
