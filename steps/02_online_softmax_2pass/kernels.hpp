#pragma once
// The CUDA kernels of this step.
#include "common/cuda/problem.hpp"

namespace flashsteps::step02 {

/// forward.cu: two sweeps over the keys, fp32
/// @return its compiled shapes
gpu::Kernels forward_kernels();

}  // namespace flashsteps::step02
