// figures DIR               writes every figure into DIR
// figures --check DIR NEW   writes every figure into NEW and compares: DIR must hold the same files, byte by byte
#include <cstdio>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <map>
#include <sstream>

#include "figures.hpp"
#include "palette.hpp"

namespace {

namespace fs = std::filesystem;
using namespace flashsteps::figures;

std::map<std::string, std::string> make() {
  std::map<std::string, std::string> files;
  std::string wrong;
  check_contrast();
  for (const auto figure : {memory_hierarchy, ladder_traffic, loop_order, causal_tiles, split_k_split_q, thread_blocks, head_maps, traffic_block_size,
                            traffic_head_dim, traffic_length, backward_orders, attention_layer0, attention_layer5}) {
    const Figure made = figure();
    try {
      files[made.name() + ".svg"] = made.svg();
    } catch (const std::logic_error& error) { wrong += std::string(wrong.empty() ? "" : "\n") + error.what(); }
  }
  if (!wrong.empty()) throw std::logic_error(wrong);
  return files;
}

void write(const std::map<std::string, std::string>& files, const fs::path& folder) {
  fs::create_directories(folder);
  for (const auto& [name, bytes] : files) {
    std::ofstream file(folder / name, std::ios::binary);
    file << bytes;
    file.close();
    if (!file) throw std::runtime_error((folder / name).string() + ": cannot be written");
  }
}

int compare(const std::map<std::string, std::string>& files, const fs::path& committed, const fs::path& made) {
  int different = 0;
  const auto report = [&](const std::string& name, const char* what) { fmt::print("{}: {}\n", (committed / name).string(), what), ++different; };
  for (const auto& [name, bytes] : files) {
    std::ifstream file(committed / name, std::ios::binary);
    std::stringstream there;
    there << file.rdbuf();
    if (!file) report(name, "is not there");
    else if (there.str() != bytes) report(name, "has other bytes than the figure that is made");
  }
  for (const fs::directory_entry& entry : fs::directory_iterator(committed)) {
    const std::string name = entry.path().filename().string();
    if (entry.path().extension() == ".svg" && !files.contains(name)) report(name, "is made by nobody");
  }
  if (different) fmt::print("New ones are in {}; `build/figures docs/figures` writes those that are committed\n", made.string());
  else fmt::print("{} figures are what the code makes\n", files.size());
  return different ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  const bool check = argc == 4 && std::string_view(argv[1]) == "--check";
  if (!check && argc != 2) {
    std::fprintf(stderr, "figures DIR, or figures --check DIR NEW\n");
    return 2;
  }
  try {
    const auto files = make();
    write(files, argv[check ? 3 : 1]);
    return check ? compare(files, argv[2], argv[3]) : 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "figures: %s\n", error.what());
    return 2;
  }
}
