// Step 05 in one number type.
#include "probe.hpp"
#include "steps/05_fa2_loop_swap/forward.hpp"
#if __has_include("steps/05_fa2_loop_swap/traffic.hpp")
#include "steps/05_fa2_loop_swap/traffic.hpp"
#endif
#include "number.hpp"

namespace flashsteps {
namespace {

using T = Number;

Forms<T> forms() {
  return {
#if __has_include("steps/05_fa2_loop_swap/traffic.hpp")
      {"traffic", [](Job<T>& job) { job.formula = step05::traffic({job.seq_q(), job.seq_k(), job.in("k").cols, job.in("v").cols, job.options.br, job.options.bc}); }},
#endif
      {"forward", [](Job<T>& job) { run_forward<T>(job, step05::forward<T>); }}};
}

}  // namespace
}  // namespace flashsteps

STUDENT_FORMS(flashsteps::forms())
