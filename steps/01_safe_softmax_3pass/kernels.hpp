#pragma once
// The CUDA kernels of this step.
#include "common/cuda/problem.hpp"

namespace flashsteps::step01 {

/// standard.cu: S and P in global memory, fp32
/// @return its compiled shapes
gpu::Kernels standard_kernels();
/// forward.cu: three sweeps over the keys, fp32
/// @return its compiled shapes
gpu::Kernels forward_kernels();

}  // namespace flashsteps::step01
