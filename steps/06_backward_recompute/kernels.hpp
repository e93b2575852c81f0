#pragma once
// The CUDA kernels of this step.
#include "common/cuda/problem.hpp"

namespace flashsteps::step06 {

/// backward.cu: column order, with atomic additions to dQ
/// @return its compiled shapes
gpu::Kernels backward_kernels();
/// backward_two_kernels.cu: row order for dQ, column order for dK and dV, without atomics
/// @return its compiled shapes
gpu::Kernels backward_two_kernels();

}  // namespace flashsteps::step06
