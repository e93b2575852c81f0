// Step 03 in one number type.
#include "probe.hpp"
#include "steps/03_fa_1pass/forward.hpp"
#include "number.hpp"

namespace flashsteps {
namespace {

using T = Number;

Forms<T> forms() {
  return {{"one_sweep", [](Job<T>& job) { run_forward<T>(job, step03::one_sweep<T>); }},
          {"one_sweep_normalised", [](Job<T>& job) { run_forward<T>(job, step03::one_sweep_normalised<T>); }}};
}

}  // namespace
}  // namespace flashsteps

STUDENT_FORMS(flashsteps::forms())
