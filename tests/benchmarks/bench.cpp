// Times every step, forward and backward: make bench.
//   bench [OPTIONS]   --help lists them
// Prints a line for each case and writes bench.json and bench.svg. Exit status: 0; 1 a result is wrong or a file cannot be written; 2 wrong use,
// or a build with assertions.
#include "common/runner/bad_input.hpp"
#include "common/runner/whole_file.hpp"
#include "tests/benchmarks/bench_report.hpp"
#include "tests/benchmarks/bench_run.hpp"
#include "tests/benchmarks/machine.hpp"
#include "tests/benchmarks/mode.hpp"
#include "tests/benchmarks/peak.hpp"

#include <algorithm>
#include <benchmark/benchmark.h>
#include <cstdio>
#include <fmt/format.h>
#include <map>

namespace flashsteps::bench {
namespace {

constexpr const char* explanation =
    R"(Time is the median of the runs of a case, as its step's program takes it. GF/s: 4 N^2 d operations a head forward, 10 N^2 d backward; under a
causal mask N (N + 1) / 2 pairs in the place of N^2. Share of peak: of the multiply-adds in registers on as many threads. B/element: bytes that the
form moves by its own count, over N d a head. extra: the most memory that it allocates at once besides inputs and outputs. Last, how many times
faster than the step before on the same Q, K, V: for 07 causal than 05 and 06 without a mask.)";

/// Prints the line of a case when Google Benchmark has done with it.
class Lines : public benchmark::BenchmarkReporter {
 public:
  /// @param cases  in the order in which they run
  /// @param peaks  for the shares
  Lines(const std::deque<Case>& cases, const Peaks& peaks) : peaks_(peaks) {
    for (const Case& c : cases) by_name_[c.name()] = &c;
  }
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>& runs) override {
    const Case& c = *by_name_.at(runs.front().run_name.function_name);
    ++printed_;
    skipped_ += !c.ran();
    const std::string problem = problem_line(c);
    if (problem != problem_) fmt::print("{}\n", problem_ = problem);
    fmt::print("{}\n", case_line(c, peaks_));
    std::fflush(stdout);
  }
  int printed() const { return printed_; }  ///< @return cases that ran or were skipped
  int skipped() const { return skipped_; }  ///< @return those that were skipped

 private:
  const Peaks& peaks_;
  std::map<std::string, const Case*> by_name_;
  std::string problem_;
  int printed_ = 0, skipped_ = 0;
};

Peaks measure_peaks(const std::deque<Case>& cases) {
  Peaks peaks;
  for (const Case& c : cases) {
    double& gflops = peaks[{c.dtype, c.threads}];
    if (gflops == 0) gflops = c.dtype == Dtype::float64 ? peak<double>(c.threads) : peak<float>(c.threads);
  }
  return peaks;
}

void register_case(Case& c, Runner& runner, double least_seconds) {
  benchmark::RegisterBenchmark(c.name().c_str(),
                               [&c, &runner](benchmark::State& state) {
                                 if (c.not_run = runner.why_not(c); !c.not_run.empty()) {
                                   state.SkipWithError(c.not_run.c_str());
                                   return;
                                 }
                                 c.seconds.clear();
                                 for ([[maybe_unused]] auto _ : state) {
                                   c.seconds.push_back(runner.once(c));
                                   state.SetIterationTime(c.seconds.back());
                                 }
                               })
      ->UseManualTime()
      ->MinTime(least_seconds);
}

int run(int argc, char** argv) {
  const std::optional<BenchOptions> options = parse_bench(argc, argv);
  if (!options) return 0;
  std::deque<Case> cases = make_cases(*options);
  if (options->list) {
    for (const Case& c : cases) fmt::print("{}\n", c.name());
    return 0;
  }
  WholeFile json(options->folder + "/bench.json"), svg(options->folder + "/bench.svg");
  Runner runner(*options);
  fmt::print("{}", machine_text());
  const std::vector<std::string> wrong = Runner::wrong_results(cases);
  for (const std::string& line : wrong) fmt::print(stderr, "bench: {}\n", line);
  if (!wrong.empty()) return 1;
  fmt::print("Results: every form agrees with the definition, within its budget\n");

  const Peaks peaks = measure_peaks(cases);
  for (const auto& [key, gflops] : peaks)
    fmt::print("Multiply-adds in registers, {}, {} thread{}: {:.1f} GF/s\n", word(key.first), key.second, key.second == 1 ? "" : "s", gflops);
  fmt::print("{}\n", explanation);

  Lines lines(cases, peaks);
  for (Case& c : cases) register_case(c, runner, options->least_seconds);
  benchmark::RunSpecifiedBenchmarks(&lines);
  if (lines.printed() == 0) {
    fmt::print(stderr, "bench: no case was run\n");
    return 0;
  }
  json.write(bench_json(cases, peaks));
  json.commit();
  if (const std::string figure = bench_svg(cases); !figure.empty()) {
    svg.write(figure);
    svg.commit();
  }
  fmt::print("{} cases timed, {} skipped: {}/bench.json, {}/bench.svg\n", lines.printed() - lines.skipped(), lines.skipped(), options->folder, options->folder);
  return 0;
}

}  // namespace
}  // namespace flashsteps::bench

int main(int argc, char** argv) {
  using namespace flashsteps;
  if (bench::refuses_assertions("bench")) return 2;
  try {
    // Google Benchmark would print its own help
    if (!std::any_of(argv + 1, argv + argc, [](const char* word) { return std::string_view(word) == "--help"; })) benchmark::Initialize(&argc, argv);
    return bench::run(argc, argv);
  } catch (const BadInput& error) {
    fmt::print(stderr, "bench: {}\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench: {}\n", error.what());
    return 1;
  }
}
