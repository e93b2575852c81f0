// Temporary names first, then renames: a reader of the folder never meets half a file, nor new files beside missing ones.

#include "common/runner/output_folder.hpp"

#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <system_error>
#include <type_traits>

#include <fmt/format.h>

#include "common/runner/npy_header.hpp"

namespace flashsteps {
namespace {

namespace fs = std::filesystem;

static_assert(std::endian::native == std::endian::little, "the numbers are written as they lie");

/// The first bytes of a file of format 1.0, padded with spaces so that the numbers begin at a multiple of 64, as NumPy does.
std::string header(std::string_view type, const std::vector<std::ptrdiff_t>& shape) {
  constexpr std::size_t kBefore = 10;  // magic word, version, length
  std::string text = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}", type, shape_text(shape));
  text.append(63 - (kBefore + text.size()) % 64, ' ');
  text += '\n';
  if (text.size() > 0xffff) throw BadInput(fmt::format("an array of {} axes does not fit a .npy header", shape.size()));
  std::string bytes("\x93NUMPY\x01\x00", 8);
  bytes += static_cast<char>(text.size() & 0xff);
  bytes += static_cast<char>(text.size() >> 8);
  return bytes + text;
}

[[noreturn]] void cannot(const std::string& what, const fs::path& path, int error) {
  throw BadInput(fmt::format("{}: cannot {}: {}", path.string(), what, std::generic_category().message(error)));
}

}  // namespace

OutputFolder::OutputFolder(const std::string& path) : folder_(path) {
  try {
    make_folder();
  } catch (...) {
    remove_traces();  // the destructor does not run for what was not constructed
    throw;
  }
}

void OutputFolder::make_folder() {
  if (folder_.empty()) throw BadInput("the output folder's name is empty");
  if (!folder_.has_filename()) folder_ = folder_.parent_path();  // "out/" is "out"
  std::error_code error;
  if (fs::exists(folder_, error) && !fs::is_directory(folder_, error)) throw BadInput(folder_.string() + ": is not a folder");
  std::vector<fs::path> missing;
  for (fs::path at = folder_; !at.empty() && !fs::exists(at, error); at = at.parent_path()) {
    if (error) cannot("make this folder", folder_, error.value());
    missing.push_back(at);
  }
  for (; !missing.empty(); missing.pop_back()) {
    if (fs::create_directory(missing.back(), error)) made_.insert(made_.begin(), missing.back());
    if (error) cannot("make this folder", folder_, error.value());
  }
  if (access(folder_.c_str(), W_OK | X_OK) != 0) cannot("write into this folder", folder_, errno);
}

OutputFolder::~OutputFolder() { remove_traces(); }

void OutputFolder::remove_traces() noexcept {
  std::error_code ignored;
  for (const auto& [temporary, own] : files_) fs::remove(temporary, ignored);
  for (const fs::path& folder : made_) fs::remove(folder, ignored);  // stays if somebody put something into it
  files_.clear();
  made_.clear();
}

template <class T>
void OutputFolder::add(const std::string& name, const std::vector<std::ptrdiff_t>& shape, const T* numbers) {
  static_assert(std::is_same_v<T, std::uint16_t> || std::is_same_v<T, float> || std::is_same_v<T, double>);
  const fs::path own = folder_ / name;
  const fs::path temporary = folder_ / fmt::format(".{}.partial-{}", name, getpid());
  std::size_t count = 1;
  for (const std::ptrdiff_t length : shape) count *= static_cast<std::size_t>(length);

  const std::string before = header(fmt::format("<f{}", sizeof(T)), shape);
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(temporary.c_str(), "wb"), &std::fclose);
  if (file == nullptr) cannot("write this file", own, errno);
  files_.emplace_back(temporary, own);
  if (std::fwrite(before.data(), 1, before.size(), file.get()) != before.size()) cannot("write this file", own, errno);
  if (count > 0 && std::fwrite(numbers, sizeof(T), count, file.get()) != count) cannot("write this file", own, errno);
  if (std::fclose(file.release()) != 0) cannot("write this file", own, errno);  // a full disk may show only here
}

void OutputFolder::commit() {
  std::error_code error;
  for (const auto& [temporary, own] : files_) {
    if (fs::is_directory(own, error)) throw BadInput(own.string() + ": is a folder; a file is to be written there");
  }
  for (const auto& [temporary, own] : files_) {
    fs::rename(temporary, own, error);
    if (error) cannot("write this file", own, error.value());
  }
  files_.clear();
  made_.clear();
}

template void OutputFolder::add<std::uint16_t>(const std::string& name, const std::vector<std::ptrdiff_t>& shape, const std::uint16_t* numbers);
template void OutputFolder::add<float>(const std::string& name, const std::vector<std::ptrdiff_t>& shape, const float* numbers);
template void OutputFolder::add<double>(const std::string& name, const std::vector<std::ptrdiff_t>& shape, const double* numbers);

}  // namespace flashsteps
