// The student's kernel of step 05: the only file with code of a submission in kernel_05.
#include "kernel.hpp"
#include "kernel_probe.hpp"
#include "steps/05_fa2_loop_swap/forward.cu"

namespace flashsteps::kernel_run {

gpu::Kernels kernels() { return step05::forward_kernels(); }

template <int Br, int Bc, int D> std::vector<Array> arrays_of() {
  using S = step05::Storage<Br, Bc, D>;
  return {{"q", offsetof(S, q), sizeof(S::q), sizeof(S::q[0])}, {"k", offsetof(S, k), sizeof(S::k), sizeof(S::k[0])},
          {"v", offsetof(S, v), sizeof(S::v), sizeof(S::v[0])}, {"p", offsetof(S, p), sizeof(S::p), sizeof(S::p[0])}};
}
std::vector<Array> arrays(const gpu::Compiled& compiled) {
  if (compiled.dim == 32 && compiled.br == 32) return arrays_of<32, 32, 32>();
  if (compiled.dim == 32 && compiled.br == 16) return arrays_of<16, 64, 32>();
  if (compiled.dim == 32 && compiled.br == 64) return arrays_of<64, 16, 32>();
  if (compiled.dim == 64 && compiled.br == 32) return arrays_of<32, 32, 64>();
  return {};
}

}  // namespace flashsteps::kernel_run
