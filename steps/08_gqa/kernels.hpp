#pragma once
// The CUDA kernels of this step.
#include "common/cuda/problem.hpp"

namespace flashsteps::step08 {

/// forward.cu
gpu::Kernels forward_kernels();
/// forward_tensor_core.cu
gpu::Kernels forward_tensor_core_kernels();
/// backward.cu
gpu::Kernels backward_kernels();

}  // namespace flashsteps::step08
