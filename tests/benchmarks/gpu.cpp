// Times the kernels of all steps on a GPU, each beside the kernel of the step before. Prints a JSON object; tests/benchmarks/gpu.py makes the
// table of it.
//   gpu_times [TOKENS [WIDTH]]: batch x length and heads x dimension of all problems; 16384 and 2048
#include "common/runner/device_problem.hpp"
#include "steps/all.hpp"
#include "tests/benchmarks/gpu_events.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <set>

namespace flashsteps {
namespace {

using Json = nlohmann::ordered_json;

struct Shape {
  Index batch, heads, kv_heads, n, d;
  bool causal;
};

/// Normal numbers: a million, over and over, for there may be a hundred million elements. No two heads begin at the same.
const std::vector<float>& normal_numbers() {
  static const std::vector<float> numbers = [] {
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    std::vector<float> all(999983);  // a prime
    for (float& x : all) x = normal(random);
    return all;
  }();
  return numbers;
}
Tensor<float> tensor(const Shape& s, Index heads, std::size_t first) {
  Tensor<float> t(s.batch, heads, s.n, s.d, Layout::bhsd, 0.0f);
  const std::vector<float>& numbers = normal_numbers();
  for (std::size_t i = 0; i < t.numbers.size(); ++i) t.numbers[i] = numbers[(first + i) % numbers.size()];
  return t;
}
Problem<float> make_problem(const Shape& s, bool gradients) {
  Problem<float> p;
  p.q = tensor(s, s.heads, 0), p.k = tensor(s, s.kv_heads, 1000), p.v = tensor(s, s.kv_heads, 2000);
  p.gradients = gradients;
  if (gradients) p.d_o = tensor(s, s.heads, 3000);
  p.scale = float(1 / std::sqrt(double(s.d)));
  p.causal = s.causal;
  return p;
}

/// Pairs of a query and a key that it sees.
double pairs(const Shape& s) { return double(s.batch * s.heads) * (s.causal ? double(s.n) * double(s.n + 1) / 2 : double(s.n) * double(s.n)); }
/// Those of the products alone: Q K^T and P V; the backward pass has five products.
double flops(const Shape& s, bool backward) { return pairs(s) * double(s.d) * (backward ? 10 : 4); }

/// Operations of a multiprocessor in a clock, by capability: NVIDIA's tables of throughput. 0: not known, or not the same for all cards of that
/// capability (GeForce cards do tensor-core sums in float at half speed).
int operations(int capability, bool tensor_cores) {
  if (tensor_cores) return capability == 80 ? 2048 : capability == 90 ? 4096 : capability == 100 ? 8192 : 0;
  switch (capability) {
    case 75: case 80: return 2 * 64;
    case 86: case 87: case 89: case 90: case 100: case 120: return 2 * 128;
    default: return 0;
  }
}
double peak_tflops(const Card& c, bool tensor_cores) { return operations(c.capability, tensor_cores) * c.clock_ghz * c.processors / 1e3; }

double median(std::vector<double> all) {
  std::sort(all.begin(), all.end());
  return (all[(all.size() - 1) / 2] + all[all.size() / 2]) / 2;
}
const char* element_name(gpu::Element e) { return e == gpu::Element::float32 ? "float" : e == gpu::Element::half ? "half" : "bfloat16"; }

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double d = std::abs(double(a[i]) - double(b[i]));
    if (!(d <= most)) most = d;  // NaN stays
    if (std::isnan(most)) break;
  }
  return most;
}

/// The first kernel of the step before, of the same kind.
struct Before {
  std::string step, kernel;
  double ms;
  std::vector<float> result;  // O or dQ, where it is of the whole problem: every head with its own K and V, no mask
};

class Times {
 public:
  Times(Index tokens, Index width, const Card& card) : tokens_(tokens), width_(width), card_(card) {}

  /// Appends them to `results`.
  void all(Json& results) {
    for (const Index d : {64, 128})
      for (const Index length : {2048, 4096, 8192, 16384}) {
        if (length > tokens_) continue;
        const Shape whole{tokens_ / length, width_ / d, width_ / d, length, d, false};
        for (const gpu::Element element : {gpu::Element::half, gpu::Element::bfloat16}) chain(results, whole, element, false);
        if (length != 2048 && length != 8192) continue;  // float shows the idea, not the speed
        for (const bool backward : {false, true}) chain(results, whole, gpu::Element::float32, backward);
      }
  }

 private:
  struct OnDevice {
    Problem<float> problem;
    DeviceProblem device;
    OnDevice(const Shape& shape, gpu::Element element, bool gradients) : problem(make_problem(shape, gradients)), device(problem, element) {}
  };

  /// All kernels of one kind, step by step: from 07 on also causal, 08 with a quarter of the heads for K and V.
  void chain(Json& results, const Shape& whole, gpu::Element element, bool backward) {
    std::map<Index, std::unique_ptr<OnDevice>> problems;  // by heads of K and V
    std::map<bool, Before> before;                        // with a mask, and without
    std::set<const gpu::Compiled*> seen;
    for (const Step* step : all_steps()) {
      std::map<bool, Before> first;
      Shape shape = whole;
      if (step->gqa) shape.kv_heads = std::max<Index>(1, shape.heads / 4);
      for (const Kernel& kernel : step->kernels) {
        const gpu::Compiled* compiled = find_compiled(kernel.compiled, element, shape.d, shape.d);
        if (kernel.backward != backward || !compiled || !seen.insert(compiled).second) continue;  // 06 has the forward kernel of 05
        auto& on_device = problems[shape.kv_heads];
        if (!on_device) on_device = std::make_unique<OnDevice>(shape, element, backward);
        for (const bool causal : {false, true}) {
          if (causal && !step->causal) continue;
          shape.causal = causal;
          const auto compared = before.count(causal) ? before.find(causal) : before.find(false);
          std::optional<Before> now = time(results, *step, kernel, *compiled, shape, *on_device, compared == before.end() ? nullptr : &compared->second);
          if (now) first.emplace(causal, std::move(*now));
        }
      }
      for (auto& [causal, kernel] : first) before.insert_or_assign(causal, std::move(kernel));
    }
  }

  /// O and L for a backward pass, by the forward kernel of the step or of the nearest one before.
  static void compute_forward(const Step& step, const gpu::Problem& x) {
    for (const Step* s = &step; s; s = s->before)
      for (const Kernel& kernel : s->kernels)
        if (const gpu::Compiled* compiled = find_compiled(kernel.compiled, gpu::Element::float32, x.head_dim, x.value_dim); compiled && !kernel.backward)
          return compiled->start(x);
    throw std::runtime_error("no forward kernel for the backward pass");
  }

  std::optional<Before> time(Json& results, const Step& step, const Kernel& kernel, const gpu::Compiled& compiled, const Shape& shape,
                             const OnDevice& on_device, const Before* before) {
    std::fprintf(stderr, "%s, %s, %s, d %td, %td tokens%s\n", step.name.c_str(), kernel.name.c_str(), element_name(compiled.element), shape.d, shape.n,
                 shape.causal ? ", causal" : "");
    Json result{{"step", step.name}, {"kernel", kernel.name}, {"backward", kernel.backward}, {"element", element_name(compiled.element)},
                {"br", compiled.br}, {"bc", compiled.bc}, {"threads", compiled.threads}, {"shared_bytes", compiled.shared_bytes},
                {"batch", shape.batch}, {"heads", shape.heads}, {"kv_heads", shape.kv_heads}, {"seq", shape.n}, {"head_dim", shape.d}, {"causal", shape.causal}};
    const auto give_up = [&](const std::string& why) {
      result["not_run"] = why;
      results.push_back(result);
      return std::nullopt;
    };
    if (card_.capability < compiled.capability)
      return give_up("needs a card of capability " + std::to_string(compiled.capability / 10) + "." + std::to_string(compiled.capability % 10));
    // With batch x length fixed, time grows with the length
    double& ms_of_token = ms_of_token_[{&compiled, shape.causal}];
    if (const double expected = ms_of_token * double(shape.n); expected > 5000) return give_up("would take about " + std::to_string(int(expected / 1000)) + " s");

    gpu::Problem x = on_device.device.problem();
    x.diagonal = shape.causal ? 0 : x.seq_k;
    Output<float> out(on_device.problem);
    std::vector<double> times;
    try {
      if (kernel.backward) compute_forward(step, x);
      times = milliseconds([&] { compiled.start(x); });
      if (kernel.backward) on_device.device.download_backward(out);
      else on_device.device.download_forward(out);
    } catch (const std::exception& error) {
      forget_error();
      return give_up(error.what());
    }
    const double ms = median(times), tflops = flops(shape, kernel.backward) / ms / 1e9, peak = peak_tflops(card_, kernel.tensor_cores);
    ms_of_token = ms / double(shape.n);
    result["ms"] = ms, result["all_ms"] = times, result["tflops"] = tflops;
    if (peak > 0) result["share_of_peak"] = tflops / peak;

    Before now{step.name, kernel.name, ms, {}};
    if (!shape.causal && shape.heads == shape.kv_heads) now.result = std::move(kernel.backward ? out.dq.numbers : out.o.numbers);
    if (before) {
      result["before"] = {{"step", before->step}, {"kernel", before->kernel}, {"ms", before->ms}, {"times_faster", before->ms / ms}};
      if (!now.result.empty() && !before->result.empty()) {
        const double difference = largest_difference(now.result, before->result);
        result["before"]["largest_difference"] = std::isnan(difference) ? Json("NaN") : Json(difference);  // JSON has no NaN
      }
    }
    results.push_back(result);
    return now;
  }

  Index tokens_, width_;
  Card card_;
  std::map<std::pair<const gpu::Compiled*, bool>, double> ms_of_token_;
};

}  // namespace
}  // namespace flashsteps

int main(int argc, char** argv) {
  using namespace flashsteps;
  Json report;
  const auto print = [&] { std::printf("%s\n", report.dump(1).c_str()); };
  try {
    const Card c = card();
    const auto known = [](double x) { return x > 0 ? Json(x) : Json(nullptr); };
    report = {{"card",
                 {{"name", c.name}, {"capability", c.capability}, {"multiprocessors", c.processors}, {"clock_ghz", known(c.clock_ghz)},
                  {"memory_gb_per_s", known(c.memory_gb_per_s)}, {"memory_bytes", c.memory_bytes}, {"l2_bytes", c.l2_bytes}, {"driver", c.driver},
                  {"runtime", c.runtime}, {"peak_tflops_float", known(peak_tflops(c, false))}, {"peak_tflops_tensor_cores", known(peak_tflops(c, true))}}}};
    report["kernels"] = Json::array();
    Times(argc > 1 ? std::atol(argv[1]) : 16384, argc > 2 ? std::atol(argv[2]) : 2048, c).all(report["kernels"]);
    print();
  } catch (const std::exception& error) {
    // After some errors no call succeeds any more. What was timed before is kept
    report["error"] = error.what();
    if (report.contains("kernels")) print();
    std::fprintf(stderr, "gpu_times: %s\n", error.what());
    return 1;
  }
}
