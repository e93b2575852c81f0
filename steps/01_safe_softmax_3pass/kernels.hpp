#pragma once
// The CUDA kernels of this step.
#include "common/cuda/problem.hpp"

namespace flashsteps::step01 {

/// standard.cu
gpu::Kernels standard_kernels();
/// forward.cu
gpu::Kernels forward_kernels();

}  // namespace flashsteps::step01
