#include "common/cuda_on_cpu/half.hpp"
#include "tests/half_toolkit_body.hpp"

flashsteps::Conversions flashsteps::ours() { return conversions; }
