#include "common/runner/arguments.hpp"

#include <algorithm>
#include <numeric>
#include <tuple>

#include <fmt/format.h>

namespace flashsteps {
namespace {

/// How many letters must be put in, left out or replaced to make one of the other (Levenshtein).
std::size_t edits(std::string_view from, std::string_view to) {
  std::vector<std::size_t> row(to.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t(0));
  for (std::size_t i = 0; i < from.size(); ++i) {
    std::size_t diagonal = row[0]++;
    for (std::size_t j = 0; j < to.size(); ++j) {
      const std::size_t replaced = diagonal + (from[i] == to[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

std::string_view bare(std::string_view name) { return name.substr(std::min(name.find_first_not_of('-'), name.size())); }

}  // namespace

std::vector<Argument> arguments_of(const StepFeatures& step) {
  const std::string files = "Input from files", sizes = "Input from sizes, seeded normal numbers, instead of files", problem = "The problem";
  const std::string tiles = "Tiles", run = "How it runs", results = "Results";
  return {
      {files, "--q", "FILE", "Q: .npy, axes [batch, heads, seq, dim], float16, float32 or float64"},
      {files, "--k", "FILE", "K; Q, K and V come together"},
      {files, "--v", "FILE", "V; its dim may differ"},
      {files, "--do", "FILE", "dO, the gradient of O; without it seeded normal numbers", step.backward, kBackwardStep},
      {files, "--layout", "ORDER", "order of the axes in the files, in and out: bhsd (default) or bshd"},

      {sizes, "--batch", "N", "default 1"},
      {sizes, "--heads", "N", "query heads, default 1"},
      {sizes, "--kv-heads", "N",
       step.gqa ? "K, V heads, a divisor of --heads; default --heads" : fmt::format("K, V heads; the same as --heads before step {}", kGqaStep)},
      {sizes, "--seq-q", "N", "queries, default 128"},
      {sizes, "--seq-k", "N", "keys and values, default --seq-q"},
      {sizes, "--head-dim", "N", "features of Q and K, default 64"},
      {sizes, "--value-dim", "N", "features of V and O, default --head-dim"},
      {sizes, "--seed", "N", step.backward ? "default 1; with files it seeds dO only" : "default 1"},

      {problem, "--causal", "", "mask the future, bottom-right; default only on the shipped input", step.causal, kCausalStep},
      {problem, "--no-causal", "", "no mask, on the shipped input too", step.causal, kCausalStep},
      {problem, "--scale", "X", "any finite number, default 1/sqrt(head_dim)"},

      {tiles, "--br", "N", "rows of a Q tile, default 64; kernels have compiled tiles", step.tiles, kTiledStep},
      {tiles, "--bc", "N", "rows of a K, V tile, default 64", step.tiles, kTiledStep},
      {tiles, "--sram", "ELEMENTS", "elements that fit on chip, default 49152", step.tiles, kTiledStep},

      {run, "--dtype", "TYPE", "float (default) or double; half and bfloat16 for the kernels that take them"},
      {run, "--device", "DEVICE", "cpu (default); cuda-on-cpu: the kernels, on the CPU; cuda: the kernels, on a GPU"},
      {run, "--trace-kernel", "", "with cuda-on-cpu: watch every access of the kernels, and count bytes, sectors and bank passes"},
      {run, "--repeat", "N", "time N runs, default 1"},

      {results, "--output", "DIR", step.backward ? "write o, lse, dq, dk and dv there, as .npy" : "write o and lse there, as .npy"},
      {results, "--trace", "ROW", "follow m, l and o of this query row, from 0, in batch 0"},
      {results, "--trace-tiles", "FILE", "what happens to one head, tile by tile, as JSON for the tile player", step.tile_trace, {}, kTileTraceSteps},
      {results, "--trace-head", "HEAD", step.tile_trace ? "the head for --trace and --trace-tiles, default 0" : "the head for --trace, default 0"},
      {results, "--json", "", "one JSON object on stdout and nothing else"},
      {results, "--no-color", "", "plain text; so does NO_COLOR in the environment"},
      {results, "--help", "", "this text"},
  };
}

std::string help_text(const StepFeatures& step) {
  std::string text = fmt::format("Example: ./build/{} --heads 4{} --seq-q 500 --head-dim 64{}{}\n", step.name, step.gqa ? " --kv-heads 2" : "",
                                 step.tiles ? " --br 64 --bc 32" : "", step.causal ? " --causal" : "");
  text += fmt::format("Without arguments it runs on the Q, K and V that ship with the project.\n\nStep {:02}, {}: {}\n", step.number, step.title, step.idea);
  std::string group;
  for (const Argument& argument : arguments_of(step)) {
    if (!argument.taken) continue;
    if (argument.group != group) text += fmt::format("\n{}:\n", argument.group);
    group = argument.group;
    text += fmt::format("  {:<20}{}\n", argument.name + (argument.value.empty() ? "" : " " + argument.value), argument.help);
  }
  return text + "\nExit status: 0 equal, 1 not equal, 2 wrong arguments or input, 77 no GPU where one was asked for.\n";
}

std::string nearest(const std::vector<Argument>& arguments, std::string_view name) {
  const auto distance = [&](const Argument& argument) {
    const bool contains = !bare(name).empty() && bare(argument.name).find(bare(name)) != std::string_view::npos;
    return std::tuple(!argument.taken, !contains, edits(bare(name), bare(argument.name)));
  };
  return std::min_element(arguments.begin(), arguments.end(), [&](const auto& a, const auto& b) { return distance(a) < distance(b); })->name;
}

}  // namespace flashsteps
