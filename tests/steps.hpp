#pragma once
// The algorithms of all steps. In float and double they are compiled once, with the steps' own libraries.
#include "steps/01_safe_softmax_3pass/forward.hpp"
#include "steps/02_online_softmax_2pass/forward.hpp"
#include "steps/03_fa_1pass/forward.hpp"
#include "steps/04_fa1_tiled/forward.hpp"
#include "steps/05_fa2_loop_swap/forward.hpp"
#include "steps/06_backward_recompute/backward.hpp"
#include "steps/06_backward_recompute/backward_row_order.hpp"
#include "steps/06_backward_recompute/backward_standard.hpp"
#include "steps/07_causal_early_exit/backward.hpp"
#include "steps/07_causal_early_exit/forward.hpp"
#include "steps/08_gqa/backward.hpp"
#include "steps/08_gqa/forward.hpp"
#include "steps/all.hpp"

namespace flashsteps {

namespace step01 {
extern template void softmax(const Slow<const float>&, const Slow<float>&, Memory&);
extern template void softmax(const Slow<const double>&, const Slow<double>&, Memory&);
extern template void standard(const Head<float>&, Memory&);
extern template void standard(const Head<double>&, Memory&);
extern template void three_sweeps(const Head<float>&, Memory&);
extern template void three_sweeps(const Head<double>&, Memory&);
}  // namespace step01
namespace step02 {
extern template void softmax(const Slow<const float>&, const Slow<float>&, Memory&);
extern template void softmax(const Slow<const double>&, const Slow<double>&, Memory&);
extern template MaxSum<float> max_sum(const Slow<const float>&, Index, Memory&);
extern template MaxSum<double> max_sum(const Slow<const double>&, Index, Memory&);
extern template void two_sweeps(const Head<float>&, Memory&);
extern template void two_sweeps(const Head<double>&, Memory&);
}  // namespace step02
namespace step03 {
extern template void one_sweep(const Head<float>&, Memory&);
extern template void one_sweep(const Head<double>&, Memory&);
extern template void one_sweep_normalised(const Head<float>&, Memory&);
extern template void one_sweep_normalised(const Head<double>&, Memory&);
}  // namespace step03
namespace step04 {
extern template void forward(const Head<float>&, Memory&);
extern template void forward(const Head<double>&, Memory&);
}  // namespace step04
namespace step05 {
extern template void forward(const Head<float>&, Memory&);
extern template void forward(const Head<double>&, Memory&);
}  // namespace step05
namespace step06 {
extern template void backward(const Head<float>&, const Gradients<float>&, Memory&);
extern template void backward(const Head<double>&, const Gradients<double>&, Memory&);
extern template void backward_standard(const Head<float>&, const Slow<const float>&, const Gradients<float>&, Memory&);
extern template void backward_standard(const Head<double>&, const Slow<const double>&, const Gradients<double>&, Memory&);
extern template void store_probabilities(const Head<float>&, const Slow<float>&, Memory&);
extern template void store_probabilities(const Head<double>&, const Slow<double>&, Memory&);
extern template void backward_row_order(const Head<float>&, const Gradients<float>&, Memory&);
extern template void backward_row_order(const Head<double>&, const Gradients<double>&, Memory&);
}  // namespace step06
namespace step07 {
extern template void forward(const Head<float>&, Memory&);
extern template void forward(const Head<double>&, Memory&);
extern template void backward(const Head<float>&, const Gradients<float>&, Memory&);
extern template void backward(const Head<double>&, const Gradients<double>&, Memory&);
}  // namespace step07
namespace step08 {
extern template void forward(const Head<float>&, Memory&);
extern template void forward(const Head<double>&, Memory&);
extern template void backward(std::span<const Head<float>>, std::span<const Gradients<float>>, Memory&);
extern template void backward(std::span<const Head<double>>, std::span<const Gradients<double>>, Memory&);
}  // namespace step08

/// The forward passes of all steps, by name, in any number type; `masks` says whether a causal head is allowed.
template <class T> struct ForwardForm {
  const char* name;
  void (*run)(const Head<T>&, Memory&);
  bool masks;
};
template <class T> std::vector<ForwardForm<T>> forward_forms() {
  return {{"step01 standard", step01::standard<T>, false},
          {"step01 three sweeps", step01::three_sweeps<T>, false},
          {"step02 two sweeps", step02::two_sweeps<T>, false},
          {"step03 one sweep", step03::one_sweep<T>, false},
          {"step03 one sweep normalised", step03::one_sweep_normalised<T>, false},
          {"step04 column tiles outside", step04::forward<T>, false},
          {"step05 row tiles outside", step05::forward<T>, false},
          {"step07 causal", step07::forward<T>, true},
          {"step08 grouped", step08::forward<T>, true}};
}
/// The backward passes, each for one head.
template <class T> struct BackwardForm {
  const char* name;
  void (*run)(const Head<T>&, const Gradients<T>&, Memory&);
  bool masks;
};
template <class T> std::vector<BackwardForm<T>> backward_forms() {
  constexpr auto standard = [](const Head<T>& head, const Gradients<T>& gradients, Memory& memory) {
    const Workspace<T> p(tensor::p, head.q.rows(), head.k.rows());
    memory.before([&](Memory& elsewhere) { step06::store_probabilities(head, p, elsewhere); });
    step06::backward_standard<T>(head, p, gradients, memory);
  };
  constexpr auto group_of_one = [](const Head<T>& head, const Gradients<T>& gradients, Memory& memory) {
    step08::backward<T>(std::span<const Head<T>>(&head, 1), std::span<const Gradients<T>>(&gradients, 1), memory);
  };
  return {{"step06 standard", standard, false},
          {"step06 column order", step06::backward<T>, false},
          {"step06 row order", step06::backward_row_order<T>, false},
          {"step07 causal", step07::backward<T>, true},
          {"step08 grouped", group_of_one, true}};
}

}  // namespace flashsteps
