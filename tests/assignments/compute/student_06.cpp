// Step 06 in one number type.
#include "probe.hpp"
#include "steps/06_backward_recompute/backward.hpp"
#if __has_include("steps/06_backward_recompute/backward_row_order.hpp")
#include "steps/06_backward_recompute/backward_row_order.hpp"
#endif
#if __has_include("steps/06_backward_recompute/backward_standard.hpp")
#include "steps/06_backward_recompute/backward_standard.hpp"
#endif
#include "number.hpp"

namespace flashsteps {
namespace {

using T = Number;

template <class Step> void run(Job<T>& job, Step step) {
  run_backward(job, [&](const std::vector<Head<T>>& heads, const std::vector<Gradients<T>>& gradients) { step(heads.front(), gradients.front(), job.memory); });
}

Forms<T> forms() {
  return {
#if __has_include("steps/06_backward_recompute/backward_row_order.hpp")
      {"backward_row_order", [](Job<T>& job) { run(job, step06::backward_row_order<T>); }},
#endif
#if __has_include("steps/06_backward_recompute/backward_standard.hpp")
      {"backward_standard",
       [](Job<T>& job) {
         run(job, [](const Head<T>& head, const Gradients<T>& gradients, Memory& memory) {
           const Workspace<T> p(tensor::p, head.q.rows(), head.k.rows());
           memory.before([&](Memory& elsewhere) { step06::store_probabilities<T>(head, p, elsewhere); });
           step06::backward_standard<T>(head, p, gradients, memory);
         });
       }},
#endif
      {"backward", [](Job<T>& job) { run(job, step06::backward<T>); }}};
}

}  // namespace
}  // namespace flashsteps

STUDENT_FORMS(flashsteps::forms())
