#pragma once
// Writes one text file: the whole of it, or nothing.

#include <filesystem>
#include <string>
#include <string_view>

#include "common/runner/bad_input.hpp"

namespace flashsteps {

/// A text file on its way. It is written under a temporary name; commit() gives it its own. Without commit(), the destructor removes it.
class WholeFile {
 public:
  /// Looks at the name and leaves nothing behind: a wrong one is found before anything is computed.
  /// @param path the file; its folder is there. A file of that name is replaced
  /// @throws BadInput if it cannot be written there
  explicit WholeFile(const std::string& path);
  WholeFile(const WholeFile&) = delete;
  WholeFile& operator=(const WholeFile&) = delete;
  ~WholeFile();

  /// Writes the text under a temporary name.
  /// @param text what the file is to hold
  /// @throws BadInput if it cannot be written
  void write(std::string_view text);

  /// Gives the file its own name.
  /// @throws BadInput if it cannot be renamed
  void commit();

 private:
  std::filesystem::path own_, temporary_;  // the latter empty until it is there
};

}  // namespace flashsteps
