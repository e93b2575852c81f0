#include "common/runner/program.hpp"

#include "common/cuda/device.hpp"
#include "common/runner/evaluate.hpp"
#include "common/runner/report.hpp"

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <new>
#include <string>
#include <unistd.h>

namespace flashsteps {
namespace {

constexpr int exit_equal = 0, exit_not_equal = 1, exit_bad_input = 2, exit_no_gpu = 77;

/// Is colour wanted on stdout?
bool colorful(const Options& options) {
  const char* terminal = std::getenv("TERM");
  return !options.no_color && isatty(STDOUT_FILENO) && terminal && std::string(terminal) != "dumb";
}

/// The program of the next step, beside this one.
std::string next_program(const std::vector<const Step*>& steps, int number, const std::string& called) {
  if (number >= int(steps.size())) return "";
  const std::size_t slash = called.rfind('/');
  return (slash == std::string::npos ? "" : called.substr(0, slash + 1)) + steps[number]->name;
}

/// Goes on as the program of the same name in a folder beside this one, whose kernels are compiled in another way; returns if it is not there.
void become(const char* folder, const std::string& name, const char* const* argv) {
  std::error_code error;
  const std::filesystem::path here = std::filesystem::read_symlink("/proc/self/exe", error);
  execv((here.parent_path() / folder / name).c_str(), const_cast<char* const*>(argv));
}

int run(const std::vector<const Step*>& steps, int number, int argc, const char* const* argv) {
  const Step& step = *steps[number - 1];
  const StepFeatures features{step.number, step.name, step.title, step.idea, step.number >= 4, step.causal, step.gqa, step.has_backward(),
                              step.main().tiled && !step.main().backward()};
  const std::optional<Options> options = parse(features, argc, argv);
  if (!options) return exit_equal;
  if (options->device == Device::cuda && !gpu::is_for_gpu()) become("cuda", step.name, argv);
  if (options->device == Device::cuda && !(gpu::is_for_gpu() && gpu::device())) {
    std::fprintf(stderr, "%s: --device cuda: there is no GPU here that this program can use; --device cuda-on-cpu runs the same kernels\n", step.name.c_str());
    return exit_no_gpu;
  }
  if (options->device == Device::cuda_on_cpu && gpu::is_for_gpu()) throw BadInput("--device cuda-on-cpu: this program is made for a GPU; take build/" + step.name);
  if (options->trace_kernel && !gpu::can_trace()) {
    become("traced", step.name, argv);
    throw BadInput("--trace-kernel: the program traced/" + step.name + " is not there, beside this one");
  }

  const Outcome outcome = options->device == Device::cpu ? evaluate(step, *options) : evaluate_kernels(steps, step, *options);
  const std::string report = options->json ? json_report(outcome) + "\n" : text_report(outcome, next_program(steps, number, argv[0]), colorful(*options));
  if (std::fwrite(report.data(), 1, report.size(), stdout) != report.size() || std::fflush(stdout) != 0) throw BadInput("stdout: the report could not be written");
  return outcome.equal() ? exit_equal : exit_not_equal;
}

}  // namespace

int run_program(const std::vector<const Step*>& steps, int number, int argc, const char* const* argv) {
  const auto complain = [&](const std::string& line) {
    std::fprintf(stderr, "%s: %s\n", steps[number - 1]->name.c_str(), line.c_str());
    return exit_bad_input;
  };
  try {
    return run(steps, number, argc, argv);
  } catch (const BadInput& error) {
    return complain(error.what());
  } catch (const std::bad_alloc&) {
    return complain("there is not enough memory for this input");
  } catch (const std::exception& error) {
    return complain(error.what());
  }
}

}  // namespace flashsteps
