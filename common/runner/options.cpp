// CLI11 splits the command line; what a value means, and every message, is ours. This is the only file that includes CLI11: it takes long to compile.

#include "common/runner/options.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <initializer_list>
#include <iostream>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "common/runner/arguments.hpp"

namespace flashsteps {
namespace {

constexpr std::int64_t kMostRepeats = 1'000'000;

template <class E>
struct Word {
  std::string_view word;
  E meaning;
};

constexpr Word<Dtype> kDtypes[] = {{"float", Dtype::float32}, {"double", Dtype::float64}, {"half", Dtype::half}, {"bfloat16", Dtype::bfloat16}};
constexpr Word<Device> kDevices[] = {{"cpu", Device::cpu}, {"cuda-on-cpu", Device::cuda_on_cpu}, {"cuda", Device::cuda}};
constexpr Word<Layout> kLayouts[] = {{"bhsd", Layout::bhsd}, {"bshd", Layout::bshd}};

template <class E>
std::string_view word_for(std::span<const Word<E>> words, E meaning) {
  for (const auto& [word, value] : words) {
    if (value == meaning) return word;
  }
  return "?";
}

/// The arguments as text, each at most once, all of them known and taken by the step.
class Given {
 public:
  Given(const StepFeatures& step, int argc, const char* const* argv);

  bool help = false;

  bool has(const std::string& name) const { return values_.contains(name); }

  /// The first of the names that is given, or "".
  std::string first_of(std::initializer_list<const char*> names) const {
    const auto found = std::find_if(names.begin(), names.end(), [&](const char* name) { return has(name); });
    return found == names.end() ? "" : *found;
  }

  std::optional<std::string> text(const std::string& name) const {
    const auto found = values_.find(name);
    return found == values_.end() ? std::nullopt : std::optional(found->second);
  }

  /// A whole number from `least` to `most`.
  template <class Integer>
  std::optional<Integer> whole(const std::string& name, Integer least, Integer most) const {
    const auto value = text(name);
    if (!value) return std::nullopt;
    Integer number = 0;
    const auto [end, error] = std::from_chars(value->data(), value->data() + value->size(), number);
    if (error != std::errc() || end != value->data() + value->size() || number < least || number > most) {
      throw BadInput(fmt::format("{} {}: must be a whole number from {} to {}", name, *value, least, most));
    }
    return number;
  }

  std::optional<double> finite(const std::string& name) const {
    const auto value = text(name);
    if (!value) return std::nullopt;
    double number = 0;
    const bool plus = value->size() > 1 && value->front() == '+' && value->at(1) != '-';
    const auto [end, error] = std::from_chars(value->data() + (plus ? 1 : 0), value->data() + value->size(), number);
    if (error != std::errc() || end != value->data() + value->size() || !std::isfinite(number)) {
      throw BadInput(fmt::format("{} {}: must be a finite number that a double holds, such as 0.125 or -1e-3", name, *value));
    }
    return number;
  }

  template <class E>
  E one_of(const std::string& name, std::span<const Word<E>> words, E otherwise) const {
    const auto value = text(name);
    if (!value) return otherwise;
    std::string known;
    for (const auto& [word, meaning] : words) {
      if (word == *value) return meaning;
      known += fmt::format("{}{}", known.empty() ? "" : ", ", word);
    }
    throw BadInput(fmt::format("{} {}: must be one of {}", name, *value, known));
  }

 private:
  std::map<std::string, std::string> values_;  // flags have an empty value
};

/// Refuses what CLI11 found no argument for.
[[noreturn]] void refuse_unknown(const std::vector<Argument>& arguments, const std::string& text) {
  const std::string name = text.substr(0, text.find('='));
  const bool is_option = name.size() > 1 && name[0] == '-' && name.find_first_not_of("-0123456789.") != std::string::npos;
  if (!is_option) throw BadInput(fmt::format("unexpected argument '{}': every argument has a name that begins with --; see --help", text));
  throw BadInput(fmt::format("{}: no such argument; the nearest is {} (see --help)", name, nearest(arguments, name)));
}

Given::Given(const StepFeatures& step, int argc, const char* const* argv) {
  const std::vector<Argument> arguments = arguments_of(step);
  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  for (const Argument& argument : arguments) {
    if (argument.value.empty()) {
      app.add_flag(argument.name);
    } else {
      app.add_option(argument.name)->expected(1)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    }
  }

  const std::vector<std::string> texts(argv + std::min(argc, 1), argv + argc);
  for (const std::string& text : texts) {
    const auto is_flag = [&](const Argument& a) { return a.value.empty() && text.starts_with(a.name + "="); };
    if (std::any_of(arguments.begin(), arguments.end(), is_flag)) throw BadInput(fmt::format("{}: takes no value", text.substr(0, text.find('='))));
  }
  std::vector<std::string> backwards(texts.rbegin(), texts.rend());  // as CLI11 wants them
  try {
    app.parse(backwards);
  } catch (const CLI::ParseError& error) {
    // Every option takes one value, so a value can only be missing at the very end
    const std::string name = texts.empty() ? "" : texts.back().substr(0, texts.back().find('='));
    const auto last = std::find_if(arguments.begin(), arguments.end(), [&](const Argument& a) { return a.name == name && !a.value.empty(); });
    throw BadInput(last == arguments.end() ? error.what() : fmt::format("{}: needs a value, {}", last->name, last->value));
  }

  const std::vector<std::string> unknown = app.remaining();
  help = app.count("--help") > 0 || std::find(unknown.begin(), unknown.end(), "-h") != unknown.end();
  if (help) return;
  for (const Argument& argument : arguments) {
    const CLI::Option& option = *app.get_option(argument.name);
    if (option.count() == 0) continue;
    if (!argument.taken && !argument.only.empty()) throw BadInput(fmt::format("{} belongs to the steps {} (this is {})", argument.name, argument.only, step.name));
    if (!argument.taken) {
      throw BadInput(fmt::format("{} belongs to the steps from {} on: {} (this is {})", argument.name, argument.since.substr(0, 2), argument.since, step.name));
    }
    if (option.count() > 1) throw BadInput(fmt::format("{}: given {} times; once is enough", argument.name, option.count()));
    const std::string value = argument.value.empty() ? "" : option.results().front();
    if (!argument.value.empty() && (value.empty() || value.starts_with("--"))) {
      throw BadInput(fmt::format("{}: needs a value, {}{}", argument.name, argument.value, value.empty() ? "" : ", before " + value));
    }
    values_[argument.name] = value;
  }
  if (!unknown.empty()) refuse_unknown(arguments, unknown.front());
}

/// Files and sizes do not mix, and Q, K and V come together.
void check_sources(const Given& given) {
  const std::string file = given.first_of({"--q", "--k", "--v", "--do"});
  if (file.empty()) return;
  const std::string size = given.first_of({"--batch", "--heads", "--kv-heads", "--seq-q", "--seq-k", "--head-dim", "--value-dim"});
  if (!size.empty()) throw BadInput(fmt::format("{} and {} do not go together: the shape comes either from files or from sizes", file, size));
  for (const char* name : {"--q", "--k", "--v"}) {
    if (!given.has(name)) throw BadInput(fmt::format("{} is given but {} is missing: --q, --k and --v come together", file, name));
  }
}

/// Not everything that the CPU does is done by kernels, and the other way round.
void check_device(const Given& given, const Options& options) {
  const bool kernels = options.device != Device::cpu, narrow = options.dtype == Dtype::half || options.dtype == Dtype::bfloat16;
  const std::string dtype = std::string(word(options.dtype)), device = std::string(word(options.device));
  if (narrow && !kernels) throw BadInput(fmt::format("--dtype {} is for kernels: add --device cuda-on-cpu; on the CPU take float or double", dtype));
  if (options.dtype == Dtype::float64 && kernels) throw BadInput(fmt::format("--dtype double with --device {}: kernels compute in float, half or bfloat16", device));
  if (narrow && options.d_o) throw BadInput(fmt::format("--do with --dtype {}: every backward kernel takes float", dtype));
  if (options.trace_kernel && options.device != Device::cuda_on_cpu) throw BadInput("--trace-kernel needs --device cuda-on-cpu");
  for (const char* name : {"--trace", "--trace-tiles", "--sram"})
    if (kernels && given.has(name)) throw BadInput(fmt::format("{} is for --device cpu{}", name, std::string_view(name) == "--sram" ? ": the tiles of kernels are compiled" : ""));
}

void check_heads(const StepFeatures& step, std::ptrdiff_t heads, std::ptrdiff_t kv_heads) {
  if (heads == kv_heads) return;
  const std::string both = fmt::format("--heads {} with --kv-heads {}", heads, kv_heads);
  if (!step.gqa) throw BadInput(fmt::format("{}: they are equal before step {} (this is {})", both, kGqaStep, step.name));
  if (kv_heads > heads) throw BadInput(both + ": there may not be more K, V heads than query heads");
  if (kv_heads == 0) throw BadInput(both + ": query heads need at least one K, V head");
  if (heads % kv_heads != 0) {
    throw BadInput(fmt::format("{}: {} is not a multiple of {}, and every K, V head serves equally many query heads", both, heads, kv_heads));
  }
}

/// Holds each tensor to kMostElements, an axis of 0 counted as 1.
void check_elements(const Sizes& sizes) {
  const auto check = [](std::string_view tensor, std::initializer_list<std::pair<std::string_view, std::ptrdiff_t>> axes) {
    std::ptrdiff_t product = 1;
    std::string typed;
    bool too_many = false;
    for (const auto& [name, length] : axes) {
      const std::ptrdiff_t factor = std::max<std::ptrdiff_t>(length, 1);
      too_many = too_many || product > kMostElements / factor;
      if (!too_many) product *= factor;
      typed += fmt::format("{}{} {}", typed.empty() ? "" : " ", name, length);
    }
    if (too_many) throw BadInput(fmt::format("{}: {} would have more than {} elements, the most that is taken", typed, tensor, kMostElements));
  };
  const auto& [batch, heads, kv_heads, seq_q, seq_k, head_dim, value_dim] = sizes;
  check("Q", {{"--batch", batch}, {"--heads", heads}, {"--seq-q", seq_q}, {"--head-dim", head_dim}});
  check("K", {{"--batch", batch}, {"--kv-heads", kv_heads}, {"--seq-k", seq_k}, {"--head-dim", head_dim}});
  check("V", {{"--batch", batch}, {"--kv-heads", kv_heads}, {"--seq-k", seq_k}, {"--value-dim", value_dim}});
  check("O", {{"--batch", batch}, {"--heads", heads}, {"--seq-q", seq_q}, {"--value-dim", value_dim}});
}

bool no_color_in_environment() {
  const char* const value = std::getenv("NO_COLOR");
  return value != nullptr && *value != '\0';
}

}  // namespace

std::string_view word(Dtype dtype) { return word_for<Dtype>(kDtypes, dtype); }
std::string_view word(Device device) { return word_for<Device>(kDevices, device); }
std::string_view word(Layout layout) { return word_for<Layout>(kLayouts, layout); }

Source Options::source() const {
  if (q) return Source::files;
  return batch || heads || kv_heads || seq_q || seq_k || head_dim || value_dim || seed_given ? Source::seeded : Source::shipped;
}

Sizes seeded_sizes(const Options& options) {
  const std::ptrdiff_t heads = options.heads.value_or(1), seq_q = options.seq_q.value_or(128), head_dim = options.head_dim.value_or(64);
  return {.batch = options.batch.value_or(1),
          .heads = heads,
          .kv_heads = options.kv_heads.value_or(heads),
          .seq_q = seq_q,
          .seq_k = options.seq_k.value_or(seq_q),
          .head_dim = head_dim,
          .value_dim = options.value_dim.value_or(head_dim)};
}

std::optional<Options> parse(const StepFeatures& step, int argc, const char* const* argv, std::ostream& out) {
  const Given given(step, argc, argv);
  if (given.help) {
    out << help_text(step);
    return std::nullopt;
  }
  check_sources(given);
  const auto length = [&](const std::string& name, std::ptrdiff_t least) { return given.whole<std::ptrdiff_t>(name, least, kLongestAxis); };

  Options options;
  options.q = given.text("--q");
  options.k = given.text("--k");
  options.v = given.text("--v");
  options.d_o = given.text("--do");
  options.layout = given.one_of<Layout>("--layout", kLayouts, options.layout);
  options.batch = length("--batch", 0);
  options.heads = length("--heads", 0);
  options.kv_heads = length("--kv-heads", 0);
  options.seq_q = length("--seq-q", 0);
  options.seq_k = length("--seq-k", 0);
  options.head_dim = length("--head-dim", 0);
  options.value_dim = length("--value-dim", 0);
  options.seed_given = given.has("--seed");
  options.seed = given.whole<std::uint64_t>("--seed", 0, UINT64_MAX).value_or(options.seed);
  options.scale = given.finite("--scale");
  options.br = length("--br", 1);
  options.bc = length("--bc", 1);
  options.sram = given.whole<std::ptrdiff_t>("--sram", 1, kMostElements);
  options.dtype = given.one_of<Dtype>("--dtype", kDtypes, options.dtype);
  options.device = given.one_of<Device>("--device", kDevices, options.device);
  options.output = given.text("--output");
  options.trace_row = length("--trace", 0);
  options.trace_head = length("--trace-head", 0).value_or(options.trace_head);
  options.repeat = static_cast<int>(given.whole<std::int64_t>("--repeat", 1, kMostRepeats).value_or(options.repeat));
  options.trace_tiles = given.text("--trace-tiles");
  options.trace_kernel = given.has("--trace-kernel");
  options.no_color = given.has("--no-color") || no_color_in_environment();
  options.json = given.has("--json");

  if (given.has("--causal") && given.has("--no-causal")) throw BadInput("--causal and --no-causal contradict each other; give one of them");
  if (given.has("--causal") || given.has("--no-causal")) options.causal = given.has("--causal");
  if (given.has("--trace-head") && !given.has("--trace") && !given.has("--trace-tiles")) {
    throw BadInput(fmt::format("--trace-head needs --trace ROW{}, to follow in that head", step.tile_trace ? " or --trace-tiles FILE" : ""));
  }
  if (options.scale && options.dtype != Dtype::float64 && !std::isfinite(static_cast<float>(*options.scale))) {
    throw BadInput(fmt::format("--scale {}: is not finite as a float; --dtype double takes it", *given.text("--scale")));
  }
  check_device(given, options);
  if (options.source() == Source::seeded) {
    const Sizes sizes = seeded_sizes(options);
    check_heads(step, sizes.heads, sizes.kv_heads);
    check_elements(sizes);
  }
  return options;
}

std::optional<Options> parse(const StepFeatures& step, int argc, const char* const* argv) { return parse(step, argc, argv, std::cout); }

}  // namespace flashsteps
