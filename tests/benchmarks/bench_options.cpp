#include "tests/benchmarks/bench_options.hpp"

#include "common/runner/bad_input.hpp"
#include "common/runner/parallel.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <limits>

namespace flashsteps::bench {
namespace {

const char* const help =
    R"(bench: times every step, forward and backward, beside the step before

  --seconds S    skip a case that is estimated to take longer than S seconds (default 3)
  --full         skip no case for its time
  --n LIST       lengths, such as 512,1024 (default 512 to 16384)
  --d LIST       head dimensions (default 32,64,128,256)
  --threads LIST numbers of threads (default 1 and all)
  --group G      query heads that share K and V in step 08 (default 1: the problem of step 07)
  --double       time step 05 in double too
  --least S      repeat a case until S seconds have passed (default 0.1)
  --memory BYTES memory that a case may take (default: what is free)
  --out FOLDER   where bench.json and bench.svg go (default: here)
  --list         print the names of the cases and stop

and the options of Google Benchmark, such as --benchmark_filter='05_.*d:64/', an expression that the names of the cases must match
)";

template <class Number> Number number(const std::string& name, std::string_view text, Number least, Number most) {
  Number x{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), x);
  if (error != std::errc() || end != text.data() + text.size() || !(x >= least && x <= most))
    throw BadInput(fmt::format("{} {}: a number from {} to {} is needed", name, text, least, most));
  return x;
}

template <class Number> std::vector<Number> list(const std::string& name, std::string_view text, Number least, Number most) {
  std::vector<Number> all;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    all.push_back(number(name, text.substr(begin, end - begin), least, most));
    if (all.size() > 1 && !(all[all.size() - 2] < all.back())) throw BadInput(fmt::format("{} {}: the numbers must rise", name, text));
    begin = end + 1;
  }
  return all;
}

}  // namespace

std::optional<BenchOptions> parse_bench(int argc, const char* const* argv) {
  BenchOptions options;
  if (std::any_of(argv + 1, argv + argc, [](const char* word) { return std::string_view(word) == "--help"; })) {
    fmt::print("{}", help);
    return {};
  }
  for (int a = 1; a < argc; ++a) {
    const std::string name = argv[a];
    const auto value = [&]() -> std::string {
      if (a + 1 >= argc) throw BadInput(fmt::format("{} needs a value", name));
      return argv[++a];
    };
    if (name == "--seconds") options.seconds = number(name, value(), 0.0, 1e9);
    else if (name == "--full") options.seconds = std::numeric_limits<double>::infinity();
    else if (name == "--n") options.lengths = list<Index>(name, value(), 1, 1 << 20);
    else if (name == "--d") options.head_dims = list<Index>(name, value(), 1, 4096);
    else if (name == "--threads") options.threads = list<int>(name, value(), 1, 4096);
    else if (name == "--group") options.group = number<Index>(name, value(), 1, 4096);
    else if (name == "--double") options.in_double = true;
    else if (name == "--least") options.least_seconds = number(name, value(), 1e-6, 1e9);
    else if (name == "--memory") options.memory = number<Index>(name, value(), 0, std::numeric_limits<Index>::max());
    else if (name == "--list") options.list = true;
    else if (name == "--out") options.folder = value();
    else throw BadInput(fmt::format("{}: there is no such option; --help lists them", name));
  }
  if (options.threads.empty()) {
    options.threads = {1};
    if (threads() > 1) options.threads.push_back(threads());
  }
  return options;
}

}  // namespace flashsteps::bench
