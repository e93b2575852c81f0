// Step 04 in one number type.
#include "probe.hpp"
#include "steps/04_fa1_tiled/forward.hpp"
#include "number.hpp"

namespace flashsteps {
namespace {

using T = Number;

Forms<T> forms() {
  return {{"forward", [](Job<T>& job) { run_forward<T>(job, step04::forward<T>); }}};
}

}  // namespace
}  // namespace flashsteps

STUDENT_FORMS(flashsteps::forms())
