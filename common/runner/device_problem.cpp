#include "common/runner/device_problem.hpp"

#include "common/cuda_on_cpu/half.hpp"
#include "common/runner/execute.hpp"
#include "common/runner/tile_choice.hpp"

#include <algorithm>

namespace flashsteps {

std::uint16_t to_bits(gpu::Element element, float x) {
  return element == gpu::Element::half ? cuda_on_cpu::half_from_float(x) : cuda_on_cpu::bfloat16_from_float(x);
}
float from_bits(gpu::Element element, std::uint16_t bits) {
  return element == gpu::Element::half ? cuda_on_cpu::half_to_float(bits) : cuda_on_cpu::bfloat16_to_float(bits);
}
float rounded(gpu::Element element, float x) { return element == gpu::Element::float32 ? x : from_bits(element, to_bits(element, x)); }

Rounding<float> rounding(gpu::Element element) {
  switch (element) {
    case gpu::Element::half: return {0x1p-11, [](float x) { return rounded(gpu::Element::half, x); }};
    case gpu::Element::bfloat16: return {0x1p-8, [](float x) { return rounded(gpu::Element::bfloat16, x); }};
    default: return {};
  }
}

Problem<float> rounded(gpu::Element element, const Problem<float>& p) {
  Problem<float> q = p;
  for (Tensor<float>* t : {&q.q, &q.k, &q.v})
    for (float& x : t->numbers) x = rounded(element, x);
  return q;
}

DeviceProblem::DeviceProblem(const Problem<float>& p, gpu::Element element, int offset) : offset_(offset) {
  const auto float32 = gpu::Element::float32;
  const Output<float> out(p);
  problem_.q = add("q", p.q, element, true);
  problem_.k = add("k", p.k, element, true);
  problem_.v = add("v", p.v, element, true);
  problem_.o = add("o", out.o, element, false);
  problem_.lse = add("lse", out.lse, float32, false);
  if (p.gradients) {
    problem_.d_o = add("do", p.d_o, float32, true);
    problem_.dq = add("dq", out.dq, float32, false);
    problem_.dk = add("dk", out.dk, float32, false);
    problem_.dv = add("dv", out.dv, float32, false);
  }
  problem_.batch = int(p.batch()), problem_.heads = int(p.heads()), problem_.kv_heads = int(p.kv_heads());
  problem_.seq_q = int(p.seq_q()), problem_.seq_k = int(p.seq_k()), problem_.head_dim = int(p.head_dim()), problem_.value_dim = int(p.value_dim());
  problem_.scale = p.scale;
  problem_.diagonal = int(p.diagonal());
}

gpu::Tensor DeviceProblem::add(const char* name, const Tensor<float>& shape, gpu::Element element, bool with_numbers) {
  const std::size_t n = shape.numbers.size() + std::size_t(offset_);
  Array& array = arrays_.emplace_back();
  array.name = name, array.element = element;
  gpu::Tensor tensor;
  if (element == gpu::Element::float32) tensor.data = array.floats.emplace(n, name).data() + offset_;
  else tensor.data = array.bits.emplace(n, name).data() + offset_;
  tensor.row = shape.row_stride();
  tensor.head = shape.heads > 1 ? shape.offset(0, 1) : 0;
  tensor.batch = shape.batch > 1 ? shape.offset(1, 0) : 0;
  if (with_numbers) upload(name, shape);
  return tensor;
}

const DeviceProblem::Array& DeviceProblem::array(std::string_view name) const {
  return *std::find_if(arrays_.begin(), arrays_.end(), [&](const Array& a) { return a.name == name; });
}

void DeviceProblem::upload(const char* name, const Tensor<float>& x) {
  Array& a = const_cast<Array&>(array(name));
  if (a.floats) {
    std::vector<float> numbers(std::size_t(offset_), 0.0f);
    numbers.insert(numbers.end(), x.numbers.begin(), x.numbers.end());
    return a.floats->upload(numbers);
  }
  std::vector<std::uint16_t> bits(std::size_t(offset_), 0);
  for (const float number : x.numbers) bits.push_back(to_bits(a.element, number));
  a.bits->upload(bits);
}

void DeviceProblem::download(const char* name, Tensor<float>& x) const {
  const Array& a = array(name);
  if (a.floats) {
    const std::vector<float> numbers = a.floats->download();
    std::copy(numbers.begin() + offset_, numbers.end(), x.numbers.begin());
    return;
  }
  const std::vector<std::uint16_t> bits = a.bits->download();
  for (std::size_t i = 0; i < x.numbers.size(); ++i) x.numbers[i] = from_bits(a.element, bits[i + std::size_t(offset_)]);
}

void DeviceProblem::upload_forward(const Output<float>& out) { upload("o", out.o), upload("lse", out.lse); }
void DeviceProblem::download_forward(Output<float>& out) const { download("o", out.o), download("lse", out.lse); }
void DeviceProblem::download_backward(Output<float>& out) const { download("dq", out.dq), download("dk", out.dk), download("dv", out.dv); }

void run_kernel(const Kernel& kernel, const gpu::Compiled& compiled, const Problem<float>& p, Output<float>& out, int offset) {
  DeviceProblem device(p, compiled.element, offset);
  if (kernel.backward) device.upload_forward(out);
  compiled.start(device.problem());
  gpu::synchronize();
  if (kernel.backward) device.download_backward(out);
  else device.download_forward(out);
}

std::pair<const Kernel*, const Step*> kernel_before(const Step& step, const Kernel& kernel) {
  for (const Step* before = step.before; before; before = before->before) {
    const Kernel* found = nullptr;
    for (const Kernel& k : before->kernels)
      if (k.backward == kernel.backward && (!k.tensor_cores || kernel.tensor_cores) && (!found || k.tensor_cores)) found = &k;
    if (found) return {found, before};
  }
  return {nullptr, nullptr};
}

void forward_on_cpu(const Step& step, const Problem<float>& p, Output<float>& out) {
  const Step* s = &step;
  while (s->forward().backward()) s = s->before;
  Memory memory;
  execute_once(s->forward(), p, out, {default_tile, default_tile}, step.kv_head, memory);
}

const gpu::Compiled* find_compiled(gpu::Kernels kernels, gpu::Element element, Index head_dim, Index value_dim, std::optional<Index> br, std::optional<Index> bc) {
  const gpu::Compiled* found = nullptr;
  for (const gpu::Compiled& c : kernels) {
    const bool fits = c.element == element && std::max(head_dim, value_dim) <= c.dim && (!br || *br == c.br) && (!bc || *bc == c.bc);
    if (fits && (!found || c.dim < found->dim)) found = &c;
  }
  return found;
}

}  // namespace flashsteps
