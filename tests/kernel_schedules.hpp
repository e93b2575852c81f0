#pragma once
// In which ways a kernel is run. On the CPU layer the test chooses the schedule (kernel_schedules.cpp); a GPU has its own
// (kernel_schedules_gpu.cpp).
#include <functional>

namespace flashsteps {

enum class Schedules {
  few,  ///< the forward order with late landing, and two seeded random ones
  all   ///< every order and every landing
};
/// Calls run() in each; the first is the forward order with late landing.
void in_schedules(Schedules, const std::function<void()>& run);

}  // namespace flashsteps
