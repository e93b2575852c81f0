// Step 07 in one number type.
#include "probe.hpp"
#include "steps/07_causal_early_exit/backward.hpp"
#include "steps/07_causal_early_exit/forward.hpp"
#include "number.hpp"

namespace flashsteps {
namespace {

using T = Number;

// The kind of each tile: the rows of x are i.begin, i.end, j.begin, j.end and the diagonal
void kinds(Job<T>& job) {
  const Matrix<T>& x = job.in("x");
  Matrix<T>& kind = job.out("kind", x.rows, 1);
  const auto at = [&](Index row, Index col) { return Index(x.numbers[row * x.cols + col]); };
  for (Index n = 0; n < x.rows; ++n) kind.numbers[n] = T(int(kind_of_tile({at(n, 0), at(n, 1)}, {at(n, 2), at(n, 3)}, at(n, 4))));
}

Forms<T> forms() {
  return {{"kind_of_tile", kinds},
          {"forward", [](Job<T>& job) { run_forward<T>(job, step07::forward<T>); }},
          {"backward", [](Job<T>& job) {
             run_backward(job, [&](const std::vector<Head<T>>& heads, const std::vector<Gradients<T>>& gradients) { step07::backward<T>(heads.front(), gradients.front(), job.memory); });
           }}};
}

}  // namespace
}  // namespace flashsteps

STUDENT_FORMS(flashsteps::forms())
