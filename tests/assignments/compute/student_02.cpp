// Step 02 in one number type.
#include "probe.hpp"
#include "steps/02_online_softmax_2pass/forward.hpp"
#include "number.hpp"

namespace flashsteps {
namespace {

using T = Number;

void give(Job<T>& job, const step02::MaxSum<T>& sum) {
  job.out("m", 1, 1).numbers = {sum.m};
  job.out("l", 1, 1).numbers = {sum.l};
}
// The pairs (m, l) that are the rows of x, merged one after the other
void merge_all(Job<T>& job) {
  job.out("m", 1, 1), job.out("l", 1, 1);
  const Matrix<T>& x = job.in("x");
  step02::MaxSum<T> sum;
  for (Index i = 0; i < x.rows; ++i) sum = step02::merge<T>(sum, {x.numbers[2 * i], x.numbers[2 * i + 1]});
  give(job, sum);
}
void max_sum(Job<T>& job) {
  job.out("m", 1, 1), job.out("l", 1, 1);
  Matrix<T>& x = job.in("x");
  give(job, step02::max_sum<T>({tensor::x, x.numbers.data(), x.rows, 1}, job.options.bc, job.memory));
}

Forms<T> forms() {
  return {{"softmax", [](Job<T>& job) { run_softmax<T>(job, step02::softmax<T>); }},
          {"merge", merge_all},
          {"max_sum", max_sum},
          {"two_sweeps", [](Job<T>& job) { run_forward<T>(job, step02::two_sweeps<T>); }}};
}

}  // namespace
}  // namespace flashsteps

STUDENT_FORMS(flashsteps::forms())
