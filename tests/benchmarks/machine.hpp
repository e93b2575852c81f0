#pragma once
// What was measured on, and with what it was built.
#include "common/memory/range.hpp"
#include <string>

namespace flashsteps::bench {

/// The machine, as the system tells it; 0 where it does not.
struct Machine {
  std::string processor;  ///< its name
  int cores = 0;          ///< that this program may run on
  Index memory = 0,       ///< bytes of physical memory
      l1 = 0,             ///< bytes of a core's first cache for data
      l2 = 0,             ///< bytes of the second
      l3 = 0;             ///< bytes of the third
};
/// @return this machine
Machine machine();

/// @return bytes of physical memory that could be had now
Index free_memory();

/// How this program was built.
struct Build {
  std::string compiler,  ///< "g++ 12.2.0"
      flags,             ///< as typed or set by the build
      mode;              ///< "Release"
  int packet = 0;        ///< bytes of a SIMD register that the code uses
};
/// @return this build
Build build();

/// @return two or three lines for a person: machine, compiler, flags, mode
std::string machine_text();

}  // namespace flashsteps::bench
