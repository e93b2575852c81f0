#include "common/runner/whole_file.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <memory>
#include <system_error>

#include <fmt/format.h>

namespace flashsteps {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void cannot_write(const fs::path& path, int error) {
  throw BadInput(fmt::format("{}: cannot write this file: {}", path.string(), std::generic_category().message(error)));
}

}  // namespace

WholeFile::WholeFile(const std::string& path) : own_(path) {
  if (path.empty()) throw BadInput("the file's name is empty");
  std::error_code error;
  const fs::file_status status = fs::status(own_, error);
  if (fs::is_directory(status) || !own_.has_filename()) throw BadInput(path + ": is a folder; a file is to be written there");
  if (fs::exists(status) && !fs::is_regular_file(status)) throw BadInput(path + ": is not a plain file");
  const fs::path folder = own_.has_parent_path() ? own_.parent_path() : fs::path(".");
  if (!fs::is_directory(folder, error)) throw BadInput(fmt::format("{}: cannot write this file: there is no folder {}", path, folder.string()));
  if (access(folder.c_str(), W_OK | X_OK) != 0) cannot_write(own_, errno);
}

WholeFile::~WholeFile() {
  std::error_code ignored;
  if (!temporary_.empty()) fs::remove(temporary_, ignored);
}

void WholeFile::write(std::string_view text) {
  const fs::path temporary = own_.parent_path() / fmt::format(".{}.partial-{}", own_.filename().string(), getpid());
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(temporary.c_str(), "wb"), &std::fclose);
  if (file == nullptr) cannot_write(own_, errno);
  temporary_ = temporary;
  if (std::fwrite(text.data(), 1, text.size(), file.get()) != text.size()) cannot_write(own_, errno);
  if (std::fclose(file.release()) != 0) cannot_write(own_, errno);  // a full disk may show only here
}

void WholeFile::commit() {
  std::error_code error;
  fs::rename(temporary_, own_, error);
  if (error) cannot_write(own_, error.value());
  temporary_.clear();
}

}  // namespace flashsteps
