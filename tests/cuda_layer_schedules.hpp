#pragma once
// Every order and landing in which the CPU layer can run a kernel, and what messages should say.
#include "common/cuda_on_cpu/settings.hpp"
#include "tests/catch.hpp"
#include <cstdint>
#include <fstream>
#include <string>

namespace flashsteps::cuda_layer {

using cuda_on_cpu::Landing;
using cuda_on_cpu::Order;
using cuda_on_cpu::settings;

/// The settings as they were, at the end of the scope.
struct Restore {
  cuda_on_cpu::Settings before = settings();
  ~Restore() { settings() = before; }
};

/// Calls f() in 3 orders (random twice) x 3 landings x 1 or 2 OS threads.
template <class F> void in_every_schedule(F f) {
  const Restore restore;
  for (const Order order : {Order::forward, Order::reverse, Order::random})
    for (const Landing landing : {Landing::late, Landing::early, Landing::random})
      for (const int os_threads : {1, 2})
        for (const std::uint64_t seed : {1, 2}) {
          if (seed > 1 && order != Order::random && landing != Landing::random) continue;
          settings().order = order;
          settings().landing = landing;
          settings().os_threads = settings().trace ? 1 : os_threads;
          settings().seed = seed;
          INFO("order " << int(order) << ", landing " << int(landing) << ", threads " << os_threads << ", seed " << seed);
          f();
        }
}

/// What f() throws; "" if nothing.
template <class F> std::string message_of(F f) {
  try {
    f();
  } catch (const std::exception& e) { return e.what(); }
  return "";
}

/// file.cu:12 of the line of the source that ends with the comment "LINE name".
inline std::string line_of(const std::string& name) {
  std::ifstream source(FLASHSTEPS_SOURCE_DIR "/tests/cuda_layer_faults.cu");
  std::string line;
  for (int number = 1; std::getline(source, line); ++number)
    if (line.ends_with("// LINE " + name)) return "cuda_layer_faults.cu:" + std::to_string(number);
  return "no line " + name;
}

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace flashsteps::cuda_layer
