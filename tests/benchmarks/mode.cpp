#include "tests/benchmarks/mode.hpp"

#include <cstdio>

namespace flashsteps::bench {

bool refuses_assertions([[maybe_unused]] const char* program) {
#ifdef NDEBUG
  return false;
#else
  std::fprintf(stderr, "%s: built with assertions on, which cost a third of the speed: build with -DCMAKE_BUILD_TYPE=Release\n", program);
  return true;
#endif
}

}  // namespace flashsteps::bench
