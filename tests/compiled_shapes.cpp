// What the steps say of their compiled kernels, one a line: folder, tensor cores?, backward?, element, Br, Bc, dim, threads, bytes of shared
// memory, capability, name. tests/ptxas.py puts it beside what nvcc says.
#include "steps/all.hpp"
#include <cstdio>

int main() {
  using namespace flashsteps;
  for (const Step* step : all_steps())
    for (const Kernel& kernel : step->kernels)
      for (const gpu::Compiled& c : kernel.compiled)
        std::printf("%s %d %d %s %d %d %d %d %zu %d %s\n", step->name.c_str(), kernel.tensor_cores, kernel.backward,
                    c.element == gpu::Element::float32 ? "float" : c.element == gpu::Element::half ? "__half" : "__nv_bfloat16", c.br, c.bc, c.dim, c.threads,
                    c.shared_bytes, c.capability, kernel.name.c_str());
}
