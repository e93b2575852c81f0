// For tests/foreign_npy.py: reads a .npy file as the programs do and writes the same numbers into a folder as the programs do.
//   npy_echo float|double AXES FILE FOLDER NAME

#include <cstdio>
#include <cstdlib>
#include <string>

#include "common/runner/npy.hpp"
#include "common/runner/output_folder.hpp"

namespace {

template <class T>
void echo(const std::string& file, int axes, const std::string& folder, const std::string& name) {
  const flashsteps::Npy<T> array = flashsteps::read_npy<T>(file, axes);
  flashsteps::OutputFolder output(folder);
  output.add(name, array.shape, array.numbers.data());
  output.commit();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) {
    std::fputs("npy_echo: use: npy_echo float|double AXES FILE FOLDER NAME\n", stderr);
    return 2;
  }
  try {
    const int axes = std::atoi(argv[2]);
    if (std::string(argv[1]) == "float") {
      echo<float>(argv[3], axes, argv[4], argv[5]);
    } else {
      echo<double>(argv[3], axes, argv[4], argv[5]);
    }
  } catch (const flashsteps::BadInput& error) {
    std::fprintf(stderr, "npy_echo: %s\n", error.what());
    return 2;
  }
  return 0;
}
