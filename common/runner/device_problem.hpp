#pragma once
// A problem in device memory, and what a kernel makes of it.
#include "common/cuda/buffer.hpp"
#include "common/attention/budget.hpp"
#include "common/cuda/problem.hpp"
#include "common/runner/problem.hpp"
#include <optional>

namespace flashsteps {

/// @return a float rounded to the 16 bits of half or bfloat16, to nearest, ties to even
std::uint16_t to_bits(gpu::Element, float);
/// @return the float that has the value of these 16 bits
float from_bits(gpu::Element, std::uint16_t);
/// @return a float as the type holds it
float rounded(gpu::Element, float);
/// @return how far from exact standard attention with S, P and O in that type may be
Rounding<float> rounding(gpu::Element);
/// @return the same problem with Q, K and V as the type holds them, so that a kernel and its reference get the same numbers
Problem<float> rounded(gpu::Element, const Problem<float>&);

/// Device memory for a problem. Kernels find the layout, the strides and, for tests of odd addresses, `offset` elements before each tensor.
class DeviceProblem {
 public:
  /// Takes the memory and copies Q, K and V, and dO if there are gradients.
  /// @param offset  elements before each tensor, in the type of that tensor
  DeviceProblem(const flashsteps::Problem<float>&, gpu::Element, int offset = 0);

  const gpu::Problem& problem() const { return problem_; }  ///< @return what a kernel is given
  /// O and L from elsewhere, which a backward pass needs.
  void upload_forward(const Output<float>&);
  /// O and L as they lie in device memory; O as float.
  /// @throws std::runtime_error says what went wrong in the kernels
  void download_forward(Output<float>&) const;
  /// dQ, dK and dV.
  /// @throws std::runtime_error says what went wrong in the kernels
  void download_backward(Output<float>&) const;

 private:
  using Floats = gpu::Buffer<float>;
  using Bits = gpu::Buffer<std::uint16_t>;

  gpu::Tensor add(const char* name, const Tensor<float>& shape, gpu::Element element, bool upload);
  void upload(const char* name, const Tensor<float>& numbers);
  void download(const char* name, Tensor<float>& numbers) const;

  struct Array {
    std::string name;
    gpu::Element element;
    std::optional<Floats> floats;
    std::optional<Bits> bits;
  };
  const Array& array(std::string_view name) const;

  int offset_;
  std::vector<Array> arrays_;
  gpu::Problem problem_;
};

/// Runs a kernel on a problem whose numbers its type holds exactly. A backward kernel takes O and L from `out`.
/// The first three arguments are the kernel, one of its compiled shapes, and the problem.
/// @param out     gets the results
/// @param offset  elements before each tensor, for tests of odd addresses
/// @throws std::runtime_error says what went wrong in the kernel
void run_kernel(const Kernel&, const gpu::Compiled&, const flashsteps::Problem<float>&, Output<float>& out, int offset = 0);

/// The kernel of the same kind in the nearest step before, and that step; for a tensor-core kernel the fp32 one where there is no other.
/// @return both, or two times nullptr if there is none
std::pair<const Kernel*, const Step*> kernel_before(const Step&, const Kernel&);
/// O and L as the step, or the one whose forward pass it takes, computes them on the CPU.
/// @param out  gets them
void forward_on_cpu(const Step&, const flashsteps::Problem<float>&, Output<float>& out);

/// The first compiled shape of a kernel that takes these dimensions, and this tile if one is given; nullptr if there is none.
/// @param head_dim,value_dim  d and dv
/// @param br,bc               the tile, if one is given
/// @return the shape, or nullptr
const gpu::Compiled* find_compiled(gpu::Kernels, gpu::Element, Index head_dim, Index value_dim, std::optional<Index> br = {}, std::optional<Index> bc = {});

}  // namespace flashsteps
