// What the library of compare.py does without: CUDA kernels, and the steps before 05.
#include "common/runner/step.hpp"
#include "steps/05_fa2_loop_swap/kernels.hpp"
#include "steps/06_backward_recompute/kernels.hpp"
#include "steps/07_causal_early_exit/kernels.hpp"
#include "steps/08_gqa/kernels.hpp"
#include "steps/all.hpp"

namespace flashsteps {

const Step& step04::step() {
  static const Step absent{.number = 4, .name = "", .title = "", .idea = "", .claim = "", .forms = {}};
  return absent;
}
gpu::Kernels step05::forward_kernels() { return {}; }
gpu::Kernels step05::forward_tensor_core_kernels() { return {}; }
gpu::Kernels step06::backward_kernels() { return {}; }
gpu::Kernels step06::backward_two_kernels() { return {}; }
gpu::Kernels step07::forward_kernels() { return {}; }
gpu::Kernels step07::forward_tensor_core_kernels() { return {}; }
gpu::Kernels step07::backward_kernels() { return {}; }
gpu::Kernels step08::forward_kernels() { return {}; }
gpu::Kernels step08::forward_tensor_core_kernels() { return {}; }
gpu::Kernels step08::backward_kernels() { return {}; }

}  // namespace flashsteps
