// Runs one form of a step: matrices in, matrices, probes and counts out, all of them files. It compares nothing.
#include "options.hpp"
#include <iostream>
#include <stdexcept>

std::vector<flashsteps::Type>& flashsteps::types() {
  static std::vector<Type> list;
  return list;
}

int main(int count, char** words) {
  try {
    const flashsteps::Options options = flashsteps::read_options(count, words);
    for (const flashsteps::Type& type : flashsteps::types())
      if (type.name == options.type) return type.run(options), 0;
    throw std::invalid_argument("there is no type " + options.type);
  } catch (const std::exception& fault) {
    std::cerr << "error: " << fault.what() << '\n';
    return 2;
  }
}
