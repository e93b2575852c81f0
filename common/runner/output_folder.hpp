#pragma once
// Writes a set of .npy files into a folder: all of them, or none.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "common/runner/bad_input.hpp"

namespace flashsteps {

/// A set of .npy files on its way into a folder. Each file is written under a temporary name; commit() gives all of them their own.
/// Without commit(), the destructor removes the files, and the folders that were made for them.
class OutputFolder {
 public:
  /// Makes the folder, with its parents, where it is missing: a wrong name is found before anything is computed.
  /// @param path the folder
  /// @throws BadInput if it cannot be made or is not a folder
  explicit OutputFolder(const std::string& path);
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;
  ~OutputFolder();

  /// Writes one array under a temporary name: format 1.0, little-endian float16, float32 or float64, C order.
  /// @tparam T std::uint16_t (the bits of a float16), float or double
  /// @param name the file's name in the folder, such as "o.npy"
  /// @param shape length of every axis; any number of axes
  /// @param numbers the product of shape many numbers, in C order
  /// @throws BadInput if the file cannot be written
  template <class T>
  void add(const std::string& name, const std::vector<std::ptrdiff_t>& shape, const T* numbers);

  /// Renames every file that was added to its own name; older files of these names are replaced.
  /// @throws BadInput if a name is taken by a folder (then nothing is renamed) or a file cannot be renamed
  void commit();

 private:
  std::filesystem::path folder_;
  std::vector<std::filesystem::path> made_;                                      // folders that were not there, deepest first
  std::vector<std::pair<std::filesystem::path, std::filesystem::path>> files_;  // temporary name, own name
  void make_folder();
  void remove_traces() noexcept;
};

}  // namespace flashsteps
