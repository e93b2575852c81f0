#include "tests/kernel_schedules.hpp"
#include "tests/cuda_layer_schedules.hpp"

namespace flashsteps {

void in_schedules(Schedules which, const std::function<void()>& run) {
  using namespace cuda_layer;
  const Restore restore;
  const auto in = [&](Order order, Landing landing, std::uint64_t seed) {
    settings().order = order, settings().landing = landing, settings().seed = seed;
    INFO("order " << int(order) << ", landing " << int(landing) << ", seed " << seed);
    run();
  };
  in(Order::forward, Landing::late, 1);
  if (which == Schedules::few) {
    in(Order::random, Landing::random, 1);
    in(Order::random, Landing::random, 2);
    return;
  }
  for (const Order order : {Order::forward, Order::reverse, Order::random})
    for (const Landing landing : {Landing::late, Landing::early, Landing::random})
      if (order != Order::forward || landing != Landing::late) in(order, landing, 3);
}

}  // namespace flashsteps
