// Step 01 in one number type.
#include "probe.hpp"
#include "steps/01_safe_softmax_3pass/forward.hpp"
#include "number.hpp"

namespace flashsteps {
namespace {

using T = Number;

Forms<T> forms() {
  return {{"softmax", [](Job<T>& job) { run_softmax<T>(job, step01::softmax<T>); }},
          {"standard", [](Job<T>& job) { run_forward<T>(job, step01::standard<T>); }},
          {"three_sweeps", [](Job<T>& job) { run_forward<T>(job, step01::three_sweeps<T>); }}};
}

}  // namespace
}  // namespace flashsteps

STUDENT_FORMS(flashsteps::forms())
