// The contract of the programs' arguments: what each step takes, what it refuses, and with which line.

#include <cstdlib>
#include <iterator>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "common/runner/options.hpp"
#include "tests/catch.hpp"

namespace {

using namespace flashsteps;
using Words = std::vector<std::string>;

StepFeatures step(int number) {
  const std::vector<std::string> names = {"",
                                          "01_safe_softmax_3pass",
                                          "02_online_softmax_2pass",
                                          "03_fa_1pass",
                                          "04_fa1_tiled",
                                          "05_fa2_loop_swap",
                                          "06_backward_recompute",
                                          "07_causal_early_exit",
                                          "08_gqa"};
  return {.number = number,
          .name = names.at(static_cast<std::size_t>(number)),
          .title = "a title",
          .idea = "an idea.",
          .tiles = number >= 4,
          .causal = number >= 7,
          .gqa = number >= 8,
          .backward = number >= 6};
}

std::optional<Options> parsed(int number, const Words& words, std::ostream& out) {
  std::vector<const char*> argv = {"program"};
  for (const std::string& word : words) argv.push_back(word.c_str());
  return parse(step(number), static_cast<int>(argv.size()), argv.data(), out);
}

Options taken(int number, const Words& words) {
  std::ostringstream out;
  const auto options = parsed(number, words, out);
  REQUIRE(options.has_value());
  CHECK(out.str() == "");
  return *options;
}

/// Checks that the arguments are refused in one line that has every part in it.
void refused(int number, const Words& words, const Words& parts) {
  std::string typed, message;
  for (const std::string& word : words) typed += " " + word;
  CAPTURE(number, typed);
  std::ostringstream out;
  try {
    parsed(number, words, out);
    FAIL_CHECK("taken");
  } catch (const BadInput& error) {
    message = error.what();
  }
  CAPTURE(message);
  CHECK(message.find('\n') == std::string::npos);
  CHECK(message.size() < 250);
  CHECK(out.str() == "");
  for (const std::string& part : parts) {
    CAPTURE(part);
    CHECK(message.find(part) != std::string::npos);
  }
}

}  // namespace

TEST_CASE("No arguments mean the shipped input and the documented defaults", "[options]") {
  unsetenv("NO_COLOR");
  for (int number = 1; number <= 8; ++number) {
    const Options options = taken(number, {});
    CHECK(options.source() == Source::shipped);
    CHECK((options.seed == 1 && !options.seed_given));
    CHECK((!options.causal && !options.scale && !options.br && !options.bc && !options.sram && !options.output && !options.trace_row));
    CHECK((options.dtype == Dtype::float32 && options.device == Device::cpu && options.layout == Layout::bhsd));
    CHECK((options.repeat == 1 && options.trace_head == 0 && !options.json && !options.no_color));
  }
}

TEST_CASE("Every argument arrives where it belongs", "[options]") {
  const Options options = taken(8, {"--batch", "2", "--heads=6", "--kv-heads", "3", "--seq-q", "5", "--seq-k", "0", "--head-dim", "7", "--value-dim", "9",  //
                                    "--seed", "18446744073709551615", "--causal", "--scale", "-0.5", "--br", "16", "--bc", "8", "--sram", "1000",             //
                                    "--dtype", "double", "--device", "cpu", "--output", "out", "--trace", "3", "--trace-head", "2",                   //
                                    "--repeat", "4", "--no-color", "--json", "--layout", "bshd"});
  CHECK(options.source() == Source::seeded);
  const Sizes sizes = seeded_sizes(options);
  CHECK((sizes.batch == 2 && sizes.heads == 6 && sizes.kv_heads == 3 && sizes.seq_q == 5 && sizes.seq_k == 0 && sizes.head_dim == 7 && sizes.value_dim == 9));
  CHECK((options.seed == 18446744073709551615U && options.seed_given));
  CHECK((options.causal == true && options.scale == -0.5 && options.br == 16 && options.bc == 8 && options.sram == 1000));
  CHECK((options.dtype == Dtype::float64 && options.device == Device::cpu && options.layout == Layout::bshd));
  CHECK((options.output == "out" && options.trace_row == 3 && options.trace_head == 2 && options.repeat == 4 && options.no_color && options.json));
  CHECK(taken(7, {"--no-causal"}).causal == false);
  const Options kernels = taken(5, {"--device", "cuda-on-cpu", "--dtype", "half", "--trace-kernel"});
  CHECK((kernels.device == Device::cuda_on_cpu && kernels.dtype == Dtype::half && kernels.trace_kernel && !options.trace_kernel));
  CHECK((taken(1, {"--device", "cuda", "--dtype", "bfloat16"}).dtype == Dtype::bfloat16));
  CHECK((word(Dtype::float32) == "float" && word(Device::cuda_on_cpu) == "cuda-on-cpu" && word(Layout::bshd) == "bshd"));
}

TEST_CASE("Sizes that are left out follow those that are given", "[options]") {
  const Sizes sizes = seeded_sizes(taken(8, {"--heads", "4", "--seq-q", "10", "--head-dim", "3"}));
  CHECK((sizes.batch == 1 && sizes.heads == 4 && sizes.kv_heads == 4 && sizes.seq_q == 10 && sizes.seq_k == 10 && sizes.head_dim == 3 && sizes.value_dim == 3));
  const Sizes seed_only = seeded_sizes(taken(1, {"--seed", "0"}));
  CHECK((seed_only.batch == 1 && seed_only.heads == 1 && seed_only.kv_heads == 1));
  CHECK((seed_only.seq_q == 128 && seed_only.seq_k == 128 && seed_only.head_dim == 64 && seed_only.value_dim == 64));
}

TEST_CASE("Files come together and without sizes", "[options]") {
  const Options options = taken(6, {"--q", "a", "--k", "b", "--v", "c", "--do", "d", "--seed", "3"});
  CHECK(options.source() == Source::files);
  CHECK((options.q == "a" && options.k == "b" && options.v == "c" && options.d_o == "d" && options.seed_given));
  refused(1, {"--q", "a", "--k", "b"}, {"--q is given but --v is missing"});
  refused(1, {"--v", "a"}, {"--v is given but --q is missing"});
  refused(1, {"--q", "a", "--v", "c"}, {"--k is missing"});
  refused(6, {"--do", "d"}, {"--do is given but --q is missing"});
  refused(1, {"--q", "a", "--k", "b", "--v", "c", "--batch", "1"}, {"--q and --batch do not go together"});
  refused(6, {"--do", "d", "--seq-q", "1"}, {"--do and --seq-q do not go together"});
}

TEST_CASE("An earlier step refuses what a later one brings, and names it", "[options]") {
  for (int number = 1; number <= 8; ++number) {
    for (const std::string name : {"--br", "--bc", "--sram"}) {
      if (number < 4) refused(number, {name, "8"}, {name + " belongs to the steps from 04 on: 04_fa1_tiled", step(number).name});
      if (number >= 4) CHECK_NOTHROW(taken(number, {name, "8"}));
    }
    for (const std::string name : {"--causal", "--no-causal"}) {
      if (number < 7) refused(number, {name}, {name, "07_causal_early_exit"});
      if (number >= 7) CHECK_NOTHROW(taken(number, {name}));
    }
    if (number < 6) refused(number, {"--q", "a", "--k", "b", "--v", "c", "--do", "d"}, {"--do", "06_backward_recompute"});
    if (number < 8) refused(number, {"--heads", "4", "--kv-heads", "2"}, {"--heads 4 with --kv-heads 2", "08_gqa"});
    CHECK_NOTHROW(taken(number, {"--heads", "4", "--kv-heads", "4"}));
  }
}

TEST_CASE("Heads are shared evenly or refused with both numbers", "[options]") {
  CHECK_NOTHROW(taken(8, {"--heads", "6", "--kv-heads", "2"}));
  CHECK_NOTHROW(taken(8, {"--heads", "0", "--kv-heads", "0"}));
  CHECK_NOTHROW(taken(8, {"--heads", "0"}));
  refused(8, {"--heads", "6", "--kv-heads", "4"}, {"--heads 6 with --kv-heads 4", "not a multiple"});
  refused(8, {"--heads", "2", "--kv-heads", "4"}, {"--heads 2 with --kv-heads 4", "more"});
  refused(8, {"--kv-heads", "4"}, {"--heads 1 with --kv-heads 4"});
  refused(8, {"--heads", "2", "--kv-heads", "0"}, {"--heads 2 with --kv-heads 0"});
  refused(8, {"--heads", "0", "--kv-heads", "2"}, {"--heads 0 with --kv-heads 2"});
}

TEST_CASE("Numbers are whole, in range and complete", "[options]") {
  for (const std::string bad : {"-1", "1.5", "1e3", "x", "3x", " 3", "+3", "0x10", "1073741825", "4294967296", "99999999999999999999999", "nan", "-"}) {
    for (const std::string name : {"--batch", "--heads", "--kv-heads", "--seq-q", "--seq-k", "--head-dim", "--value-dim", "--br", "--bc", "--trace"}) {
      refused(8, {name, bad}, {name + " " + bad + ": must be a whole number from "});
    }
  }
  for (const std::string name : {"--br", "--bc", "--sram", "--repeat"}) refused(8, {name, "0"}, {name + " 0: must be a whole number from 1 to "});
  for (const std::string name : {"--batch", "--seq-q", "--seq-k", "--head-dim", "--value-dim", "--trace"}) CHECK_NOTHROW(taken(1, {name, "0"}));
  CHECK(taken(4, {"--br", "1073741824", "--bc", "1073741824"}).br == 1073741824);
  refused(1, {"--seed", "-1"}, {"--seed -1", "0 to 18446744073709551615"});
  refused(1, {"--seed", "18446744073709551616"}, {"--seed"});
  refused(1, {"--repeat", "1000001"}, {"from 1 to 1000000"});
}

TEST_CASE("Tensors beyond the largest are refused", "[options]") {
  CHECK_NOTHROW(taken(1, {"--seq-q", "1048576", "--head-dim", "1048576", "--seq-k", "1"}));
  refused(1, {"--seq-q", "1048576", "--head-dim", "1048577", "--seq-k", "1"}, {"Q would have more than 1099511627776 elements", "--seq-q 1048576"});
  refused(1, {"--seq-k", "1073741824", "--head-dim", "1", "--value-dim", "1025"}, {"V would have more than"});
  refused(1, {"--batch", "1073741824", "--heads", "1073741824", "--seq-q", "1073741824", "--head-dim", "1073741824"}, {"Q would have"});
  refused(1, {"--batch", "0", "--heads", "1073741824", "--seq-q", "1073741824", "--head-dim", "1"}, {"Q would have"});
}

TEST_CASE("The scale is any finite number", "[options]") {
  CHECK(taken(1, {"--scale", "0"}).scale == 0.0);
  CHECK(taken(1, {"--scale", "-1.5e-3"}).scale == -1.5e-3);
  CHECK(taken(1, {"--scale=-2"}).scale == -2.0);
  CHECK(taken(1, {"--scale", "+.25"}).scale == 0.25);
  CHECK(taken(1, {"--scale", "1e300", "--dtype", "double"}).scale == 1e300);
  for (const std::string bad : {"nan", "inf", "-inf", "Infinity", "1e999", "one", "1,5", "1.5 ", "+-1", "+", "-"}) {
    refused(1, {"--scale", bad}, {"--scale " + bad, "finite number"});
  }
  refused(1, {"--scale", "1e300"}, {"--scale 1e300", "--dtype double"});
}

TEST_CASE("A wrong word lists the right ones", "[options]") {
  refused(1, {"--dtype", "float32"}, {"--dtype float32: must be one of float, double, half, bfloat16"});
  refused(1, {"--dtype", "half"}, {"--dtype half is for kernels: add --device cuda-on-cpu; on the CPU take float or double"});
  refused(1, {"--dtype", "double", "--device", "cuda"}, {"--dtype double with --device cuda: kernels compute in float, half or bfloat16"});
  refused(1, {"--trace-kernel"}, {"--trace-kernel needs --device cuda-on-cpu"});
  refused(5, {"--device", "cuda-on-cpu", "--sram", "100"}, {"--sram is for --device cpu: the tiles of kernels are compiled"});
  refused(1, {"--device", "cuda-on-cpu", "--trace", "0"}, {"--trace is for --device cpu"});
  refused(1, {"--device", "gpu"}, {"--device gpu: must be one of cpu, cuda-on-cpu, cuda"});
  refused(1, {"--layout", "BHSD"}, {"--layout BHSD: must be one of bhsd, bshd"});
}

TEST_CASE("Unknown arguments are refused with the nearest one", "[options]") {
  const std::vector<std::pair<std::string, std::string>> pairs = {
      {"--seqq", "--seq-q"}, {"--dim", "--head-dim"},   {"--kvheads", "--kv-heads"}, {"--head", "--heads"}, {"--seqk=5", "--seq-k"},
      {"-json", "--json"},   {"--casual", "--causal"}, {"--outptu", "--output"},    {"-br", "--br"},       {"--no-colour", "--no-color"},
      {"--b", "--br"}};
  for (const auto& [typed, meant] : pairs) refused(8, {typed}, {typed.substr(0, typed.find('=')) + ": no such argument; the nearest is " + meant + " "});
  refused(8, {"--seqq", "5", "--json"}, {"--seqq: no such argument"});
  refused(1, {"file.npy"}, {"unexpected argument 'file.npy'"});
  refused(1, {"--json", "-5"}, {"unexpected argument '-5'"});
  refused(1, {"--batch", "1", "2"}, {"unexpected argument '2'"});
  refused(1, {"--", "x"}, {"unexpected argument"});
  refused(1, {""}, {"unexpected argument ''"});
  refused(1, {"-"}, {"unexpected argument '-'"});
  refused(1, {"--q[0]"}, {"--q[0]"});
}

TEST_CASE("Values that are missing, empty or doubled are refused", "[options]") {
  refused(4, {"--br"}, {"--br: needs a value, N"});
  refused(4, {"--json", "--output"}, {"--output: needs a value, DIR"});
  refused(4, {"--br", "--bc", "8"}, {"--br: needs a value, N, before --bc"});
  refused(4, {"--output", ""}, {"--output: needs a value"});
  refused(4, {"--output="}, {"--output: needs a value"});
  refused(4, {"--br", "4", "--br", "4"}, {"--br: given 2 times"});
  refused(4, {"--json", "--json"}, {"--json: given 2 times"});
  refused(4, {"--output=", "--json"}, {"--output: needs a value"});
  for (const std::string flag : {"--json=true", "--json=false", "--json=", "--help=x"}) refused(4, {flag}, {flag.substr(0, 6) + ": takes no value"});
  refused(7, {"--causal", "--no-causal"}, {"--causal and --no-causal"});
  refused(1, {"--trace-head", "1"}, {"--trace-head needs --trace"});
}

TEST_CASE("The environment can turn colour off", "[options]") {
  setenv("NO_COLOR", "1", 1);
  CHECK(taken(1, {}).no_color);
  setenv("NO_COLOR", "", 1);
  CHECK_FALSE(taken(1, {}).no_color);
  unsetenv("NO_COLOR");
}

TEST_CASE("The help begins with an example that the step takes, and lists what it takes", "[options]") {
  for (int number = 1; number <= 8; ++number) {
    for (const Words& words : std::vector<Words>{{"--help"}, {"-h"}, {"--nonsense", "--help"}, {"--batch", "x", "--help"}}) {
      std::ostringstream out;
      CHECK_FALSE(parsed(number, words, out).has_value());
      const std::string text = out.str();
      CAPTURE(text);
      CHECK(text.find("Example: ./build/" + step(number).name) == 0);
      CHECK(text.find("an idea.") != std::string::npos);
      for (const std::string name :
           {"--q", "--k", "--v", "--layout", "--batch", "--seed", "--scale", "--dtype", "--device", "--repeat", "--output", "--trace", "--json"}) {
        CHECK(text.find("\n  " + name + " ") != std::string::npos);
      }
      CHECK((text.find("\n  --br ") != std::string::npos) == (number >= 4));
      CHECK((text.find("\n  --do ") != std::string::npos) == (number >= 6));
      CHECK((text.find("\n  --causal ") != std::string::npos) == (number >= 7));
      std::istringstream example(text.substr(0, text.find('\n')));
      Words typed((std::istream_iterator<std::string>(example)), {});
      typed.erase(typed.begin(), typed.begin() + 2);
      CHECK_NOTHROW(taken(number, typed));
    }
  }
}
