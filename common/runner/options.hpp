#pragma once
// The arguments of the steps' programs: one parser for all eight, a plain struct for the rest of the house.

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>

#include "common/runner/bad_input.hpp"

namespace flashsteps {

/// What the parser has to know about a step.
struct StepFeatures {
  int number = 0;         ///< 1 to 8
  std::string name;       ///< folder and program, such as "05_fa2_loop_swap"
  std::string title;      ///< a few words
  std::string idea;       ///< one sentence: what is new
  bool tiles = false;     ///< takes --br, --bc, --sram: from 04 on
  bool causal = false;    ///< takes --causal, --no-causal: from 07 on
  bool gqa = false;       ///< takes a --kv-heads that differs from --heads: 08
  bool backward = false;  ///< takes --do: from 06 on
};

enum class Layout { bhsd, bshd };                            ///< order of the axes in files, in and out
enum class Dtype { float32, float64, half, bfloat16 };       ///< the type that is computed in
enum class Device { cpu, cuda_on_cpu, cuda };                ///< where it is computed
enum class Source { shipped, files, seeded };                ///< where Q, K and V come from

/// @return the word that stands for it in the arguments and in the JSON: "float", "double", "half", "bfloat16"
std::string_view word(Dtype dtype);
/// @return the word that stands for it in the arguments and in the JSON: "cpu", "cuda-on-cpu", "cuda"
std::string_view word(Device device);
/// @return the word that stands for it in the arguments: "bhsd", "bshd"
std::string_view word(Layout layout);

/// The arguments as given, checked as far as that is possible without opening a file. Empty means not given.
struct Options {
  std::optional<std::string> q, k, v;           ///< files; all three or none
  std::optional<std::string> d_o;               ///< file of dO; only with q, k and v
  Layout layout = Layout::bhsd;
  std::optional<std::ptrdiff_t> batch, heads, kv_heads, seq_q, seq_k, head_dim, value_dim;  ///< 0 to kLongestAxis
  std::uint64_t seed = 1;
  bool seed_given = false;
  std::optional<bool> causal;                   ///< true --causal, false --no-causal
  std::optional<double> scale;                  ///< finite in the type that is computed in
  std::optional<std::ptrdiff_t> br, bc;         ///< rows of a Q tile and of a K, V tile, 1 to kLongestAxis
  std::optional<std::ptrdiff_t> sram;           ///< on-chip elements, 1 to kMostElements
  Dtype dtype = Dtype::float32;
  Device device = Device::cpu;
  std::optional<std::string> output;            ///< folder
  std::optional<std::ptrdiff_t> trace_row;      ///< query row, from 0; whether there is such a row is for the program to check
  std::ptrdiff_t trace_head = 0;                ///< query head, from 0; likewise
  bool trace_kernel = false;                    ///< watch every access of the kernels
  int repeat = 1;                               ///< 1 to 1,000,000
  bool no_color = false;                        ///< --no-color, or NO_COLOR in the environment and not empty
  bool json = false;

  /// @return files if --q is given, seeded if a size or a seed is given without files, otherwise shipped
  Source source() const;
};

/// The shape of seeded Q, K and V, nothing left open.
struct Sizes {
  std::ptrdiff_t batch, heads, kv_heads, seq_q, seq_k, head_dim, value_dim;
};

/// @return the sizes given, and for the others: batch 1, heads 1, kv_heads = heads, seq_q 128, seq_k = seq_q, head_dim 64, value_dim = head_dim
Sizes seeded_sizes(const Options& options);

/// Reads the arguments of a step's program. With --help it writes the help to `out` and returns nothing: the program then returns 0.
/// @param step decides which arguments are taken
/// @param argc,argv as main got them, the program's name first
/// @param out where the help goes
/// @return the options, or nothing after --help
/// @throws BadInput with one line that names the argument and what would be right
std::optional<Options> parse(const StepFeatures& step, int argc, const char* const* argv, std::ostream& out);

/// The same, with the help on stdout.
std::optional<Options> parse(const StepFeatures& step, int argc, const char* const* argv);

}  // namespace flashsteps
