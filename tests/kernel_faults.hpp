#pragma once
// What the tests of known faults do on the device itself (kernel_faults.cu), and how often they repeat a run.
#include "common/cuda/problem.hpp"
#include <cstdint>
#include <functional>

namespace flashsteps {

/// A mistake that is put into the results of a kernel which made none. "off": an amount is added to one element.
enum class Change { none, nothing_written, o_off, lse_off, o_unwritten, o_from_run_to_run };
void change_result(const gpu::Problem&, Change, float amount);

/// Where row i of a head begins and where its element x lies, in elements from the beginning of the tensor, as kernels compute it.
struct Offsets { std::int64_t row, element; };
Offsets offsets_on_device(const gpu::Tensor&, int b, int h, int i, int x);

}  // namespace flashsteps
