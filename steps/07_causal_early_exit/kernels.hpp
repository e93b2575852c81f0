#pragma once
// The CUDA kernels of this step.
#include "common/cuda/problem.hpp"

namespace flashsteps::step07 {

/// forward.cu: fp32
/// @return its compiled shapes
gpu::Kernels forward_kernels();
/// forward_tensor_core.cu: half and bfloat16
/// @return its compiled shapes
gpu::Kernels forward_tensor_core_kernels();
/// backward.cu: column order, with atomic additions to dQ
/// @return its compiled shapes
gpu::Kernels backward_kernels();

}  // namespace flashsteps::step07
