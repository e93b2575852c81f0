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
  bool tile_trace = false;  ///< takes --trace-tiles: its main form is a forward pass in tiles
};

/// Order of the axes in files, in and out.
enum class Layout { bhsd, bshd };
/// The type that is computed in.
enum class Dtype { float32, float64, half, bfloat16 };
/// Where it is computed.
enum class Device { cpu, cuda_on_cpu, cuda };
/// Where Q, K and V come from.
enum class Source { shipped, files, seeded };

/// @return the word that stands for it in the arguments and in the JSON: "float", "double", "half", "bfloat16"
/// @param dtype  one of them
std::string_view word(Dtype dtype);
/// @return the word that stands for it in the arguments and in the JSON: "cpu", "cuda-on-cpu", "cuda"
/// @param device  one of them
std::string_view word(Device device);
/// @return the word that stands for it in the arguments: "bhsd", "bshd"
/// @param layout  one of them
std::string_view word(Layout layout);

/// The arguments as given, checked as far as that is possible without opening a file. Empty means not given.
struct Options {
  std::optional<std::string> q,                 ///< file of Q; all three or none
      k,                                        ///< file of K
      v;                                        ///< file of V
  std::optional<std::string> d_o;               ///< file of dO; only with q, k and v
  Layout layout = Layout::bhsd;                 ///< of the files
  /// @{
  std::optional<std::ptrdiff_t> batch, heads, kv_heads, seq_q, seq_k, head_dim, value_dim;  ///< 0 to kLongestAxis
  /// @}
  std::uint64_t seed = 1;                       ///< of seeded numbers, and of what is sampled
  bool seed_given = false;                      ///< was it typed?
  std::optional<bool> causal;                   ///< true --causal, false --no-causal
  std::optional<double> scale;                  ///< finite in the type that is computed in
  std::optional<std::ptrdiff_t> br,             ///< rows of a Q tile, 1 to kLongestAxis
      bc;                                       ///< rows of a K, V tile, 1 to kLongestAxis
  std::optional<std::ptrdiff_t> sram;           ///< on-chip elements, 1 to kMostElements
  Dtype dtype = Dtype::float32;                 ///< the type that is computed in
  Device device = Device::cpu;                  ///< where it is computed
  std::optional<std::string> output;            ///< folder
  std::optional<std::ptrdiff_t> trace_row;      ///< query row, from 0; whether there is such a row is for the program to check
  std::ptrdiff_t trace_head = 0;                ///< query head, from 0; likewise
  std::optional<std::string> trace_tiles;       ///< file for what happens to one head, tile by tile
  bool trace_kernel = false;                    ///< watch every access of the kernels
  int repeat = 1;                               ///< 1 to 1,000,000
  bool no_color = false;                        ///< --no-color, or NO_COLOR in the environment and not empty
  bool json = false;                            ///< the report as one JSON object

  /// @return files if --q is given, seeded if a size or a seed is given without files, otherwise shipped
  Source source() const;
};

/// The shape of seeded Q, K and V, nothing left open.
struct Sizes {
  /// @{
  std::ptrdiff_t batch, heads, kv_heads, seq_q, seq_k, head_dim, value_dim;  ///< at least 0
  /// @}
};

/// @return the sizes given, and for the others: batch 1, heads 1, kv_heads = heads, seq_q 128, seq_k = seq_q, head_dim 64, value_dim = head_dim
/// @param options  the sizes typed
Sizes seeded_sizes(const Options& options);

/// Reads the arguments of a step's program. With --help it writes the help to `out` and returns nothing: the program then returns 0.
/// @param step decides which arguments are taken
/// @param argc,argv as main got them, the program's name first
/// @param out where the help goes
/// @return the options, or nothing after --help
/// @throws BadInput with one line that names the argument and what would be right
std::optional<Options> parse(const StepFeatures& step, int argc, const char* const* argv, std::ostream& out);

/// The same, with the help on stdout.
/// @param step       decides which arguments are taken
/// @param argc,argv  as main got them
/// @return the options, or nothing after --help
/// @throws BadInput with one line
std::optional<Options> parse(const StepFeatures& step, int argc, const char* const* argv);

}  // namespace flashsteps
