#include "tests/benchmarks/bench_report.hpp"

#include "common/runner/report.hpp"
#include "tests/benchmarks/machine.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace flashsteps::bench {
namespace {

using Json = nlohmann::ordered_json;

std::string bytes(double n) {
  const char* const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  int unit = 0;
  for (; n >= 1024 && unit < 4; ++unit) n /= 1024;
  return fmt::format("{:.3g} {}", n, units[unit]);
}
std::string two_digits(const Step& step) { return fmt::format("{:02}", step.number); }
std::string pass(const Case& c) { return c.form->backward() ? "backward" : "forward"; }

Json case_json(const Case& c, const Peaks& peaks) {
  Json j = {{"step", c.step->name}, {"form", c.form->name}, {"pass", pass(c)},       {"causal", c.causal}, {"element", word(c.dtype)}, {"n", c.n}, {"d", c.d},
            {"threads", c.threads}, {"heads", c.heads},     {"kv_heads", c.kv_heads}};
  if (!c.ran()) {
    j["not_run"] = c.not_run;
    return j;
  }
  const auto [least, most] = std::minmax_element(c.seconds.begin(), c.seconds.end());
  j["br"] = c.form->tiled ? Json(c.tiles.br) : Json(nullptr), j["bc"] = c.form->tiled ? Json(c.tiles.bc) : Json(nullptr);
  j["runs"] = c.seconds.size(), j["seconds"] = c.median(), j["least_seconds"] = *least, j["most_seconds"] = *most;
  j["flop"] = c.flop(), j["gflops"] = c.gflops(), j["share_of_peak"] = c.gflops() / peaks.at({c.dtype, c.threads});
  j["moved_bytes"] = c.moved * c.element(), j["bytes_per_element"] = c.bytes_per_element(), j["extra_bytes"] = c.extra_bytes;
  if (c.before && c.before->ran())
    j["before"] = {
        {"step", c.before->step->name}, {"form", c.before->form->name}, {"causal", c.before->causal}, {"times_faster", c.before->median() / c.median()}};
  return j;
}

}  // namespace

std::string problem_line(const Case& c) {
  return fmt::format("{}, d {}, N {}, {} thread{}, {} head{}", word(c.dtype), c.d, c.n, c.threads, c.threads == 1 ? "" : "s", c.heads, c.heads == 1 ? "" : "s");
}

std::string case_line(const Case& c, const Peaks& peaks) {
  const std::string name = fmt::format("  {} {:<22} {:<8} {:<6}", two_digits(*c.step), c.form->name, pass(c), c.causal ? "causal" : "full");
  if (!c.ran()) return fmt::format("{} skipped: {}", name, c.not_run);
  std::string line = fmt::format("{} {:>9} {:7.1f} GF/s {:5.1f} % of peak {:8.4g} B/element {:>9} extra", name, duration(c.median()), c.gflops(),
                                 100 * c.gflops() / peaks.at({c.dtype, c.threads}), c.bytes_per_element(), bytes(double(c.extra_bytes)));
  if (c.before && c.before->ran()) line += fmt::format(" {:7.2f} x {} {}", c.before->median() / c.median(), two_digits(*c.before->step), c.before->form->name);
  return line;
}

std::string bench_json(const std::deque<Case>& cases, const Peaks& peaks) {
  const Machine m = machine();
  const Build b = build();
  Json j = {
      {"machine", {{"processor", m.processor}, {"cores", m.cores}, {"memory_bytes", m.memory}, {"l1_bytes", m.l1}, {"l2_bytes", m.l2}, {"l3_bytes", m.l3}}},
      {"build", {{"compiler", b.compiler}, {"flags", b.flags}, {"mode", b.mode}, {"assertions", false}, {"packet_bytes", b.packet}}},
      {"flop", {{"forward", "4 N^2 d a head"}, {"backward", "10 N^2 d a head"}, {"causal", "N (N + 1) / 2 pairs in the place of N^2"}}},
      {"peaks", Json::array()},
      {"cases", Json::array()}};
  for (const auto& [key, gflops] : peaks) j["peaks"].push_back({{"element", word(key.first)}, {"threads", key.second}, {"gflops", gflops}});
  for (const Case& c : cases)
    if (c.ran() || !c.not_run.empty()) j["cases"].push_back(case_json(c, peaks));
  return j.dump(1) + "\n";
}

}  // namespace flashsteps::bench
