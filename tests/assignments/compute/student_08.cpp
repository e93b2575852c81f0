// Step 08 in one number type.
#include "probe.hpp"
#include "steps/08_gqa/backward.hpp"
#include "steps/08_gqa/forward.hpp"
#include "number.hpp"

namespace flashsteps {
namespace {

using T = Number;

// The key-value head of each query head
void kv_head(Job<T>& job) {
  Matrix<T>& index = job.out("index", job.options.heads, 1);
  for (Index h = 0; h < job.options.heads; ++h) index.numbers[h] = T(step08::kv_head(h, job.options.heads, job.options.kv_heads));
}

Forms<T> forms() {
  return {{"kv_head", kv_head},
          {"forward", [](Job<T>& job) { run_forward<T>(job, step08::forward<T>, step08::kv_head); }},
          {"backward", [](Job<T>& job) {
             run_backward(job, [&](const std::vector<Head<T>>& heads, const std::vector<Gradients<T>>& gradients) { step08::backward<T>(std::span<const Head<T>>(heads), std::span<const Gradients<T>>(gradients), job.memory); });
           }}};
}

}  // namespace
}  // namespace flashsteps

STUDENT_FORMS(flashsteps::forms())
