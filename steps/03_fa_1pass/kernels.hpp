#pragma once
// The CUDA kernels of this step.
#include "common/cuda/problem.hpp"

namespace flashsteps::step03 {

/// forward.cu: one sweep over the keys, fp32
/// @return its compiled shapes
gpu::Kernels forward_kernels();

}  // namespace flashsteps::step03
