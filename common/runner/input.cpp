// Where Q, K, V and dO come from: the files that ship with the project, files of the user, or a seed.
#include "common/runner/npy.hpp"
#include "common/runner/problem.hpp"

#include <filesystem>
#include <fmt/format.h>
#include <random>

namespace flashsteps {
namespace {

/// The folder of the shipped data: beside the build folder that the program stands in, or where the sources were when it was built.
std::filesystem::path data_folder() {
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  for (const std::filesystem::path& root : {program.parent_path().parent_path(), std::filesystem::path(FLASHSTEPS_SOURCE_DIR)}) {
    const std::filesystem::path folder = root / "common" / "data" / "minilm";
    if (std::filesystem::exists(folder / "layer0_q.npy", error)) return folder;
  }
  throw BadInput("the default input common/data/minilm/layer0_q.npy is not there: give --q, --k and --v, or sizes such as --seq-q 256");
}

template <class T> Tensor<T> read_tensor(const std::string& path, Layout layout) {
  Npy<T> file = read_npy<T>(path, 4);
  Tensor<T> x;
  x.layout = layout;
  x.batch = file.shape[0], x.cols = file.shape[3];
  x.heads = file.shape[layout == Layout::bhsd ? 1 : 2], x.rows = file.shape[layout == Layout::bhsd ? 2 : 1];
  x.numbers = std::move(file.numbers);
  return x;
}

template <class T> Tensor<T> draw_tensor(std::mt19937_64& random, Index batch, Index heads, Index rows, Index cols, Layout layout) {
  Tensor<T> x(batch, heads, rows, cols, layout, T(0));
  std::normal_distribution<double> normal;
  for (Index b = 0; b < batch; ++b)
    for (Index h = 0; h < heads; ++h)
      for (Index i = 0; i < rows; ++i)
        for (Index c = 0; c < cols; ++c) x.at(b, h, i, c) = T(normal(random));
  return x;
}

/// The same numbers in another order of the axes.
template <class T> Tensor<T> in_layout(const Tensor<T>& x, Layout layout) {
  Tensor<T> y(x.batch, x.heads, x.rows, x.cols, layout, T(0));
  for (Index b = 0; b < x.batch; ++b)
    for (Index h = 0; h < x.heads; ++h)
      for (Index i = 0; i < x.rows; ++i)
        for (Index c = 0; c < x.cols; ++c) y.at(b, h, i, c) = x.at(b, h, i, c);
  return y;
}

/// One key-value head for `group` heads: their mean (Ainslie and others, section 2.1).
template <class T> Tensor<T> mean_pool(const Tensor<T>& x, Index group) {
  Tensor<T> pooled(x.batch, x.heads / group, x.rows, x.cols, x.layout, T(0));
  for (Index b = 0; b < x.batch; ++b)
    for (Index h = 0; h < pooled.heads; ++h)
      for (Index i = 0; i < x.rows; ++i)
        for (Index c = 0; c < x.cols; ++c) {
          double sum = 0;
          for (Index g = 0; g < group; ++g) sum += double(x.at(b, h * group + g, i, c));
          pooled.at(b, h, i, c) = T(sum / double(group));
        }
  return pooled;
}

/// Must two lengths be the same?
void expect_same(Index a, const char* name_a, Index b, const char* name_b, const char* what) {
  if (a != b) throw BadInput(fmt::format("{} of {} is {} and of {} {}: they must be the same", what, name_a, a, name_b, b));
}

template <class T> void check_shapes(const Problem<T>& p, const Step& step) {
  expect_same(p.q.batch, "q", p.k.batch, "k", "batch");
  expect_same(p.q.batch, "q", p.v.batch, "v", "batch");
  expect_same(p.k.heads, "k", p.v.heads, "v", "the number of heads");
  expect_same(p.k.rows, "k", p.v.rows, "v", "the sequence length");
  expect_same(p.q.cols, "q", p.k.cols, "k", "head_dim");
  const Index heads = p.heads(), kv_heads = p.kv_heads();
  if (heads != kv_heads && !step.gqa)
    throw BadInput(fmt::format("q has {} heads and k, v have {}: different numbers belong to step 08_gqa", heads, kv_heads));
  if (heads != kv_heads && (kv_heads == 0 || heads % kv_heads != 0 || kv_heads > heads))
    throw BadInput(fmt::format("{} query heads do not divide among {} key-value heads: the first number must be a multiple of the second", heads, kv_heads));
}

}  // namespace

template <class T> Problem<T> make_problem(const Step& step, const Options& options) {
  Problem<T> p;
  std::mt19937_64 random(options.seed);
  switch (options.source()) {
    case Source::files:
      p.q = read_tensor<T>(*options.q, options.layout);
      p.k = read_tensor<T>(*options.k, options.layout);
      p.v = read_tensor<T>(*options.v, options.layout);
      p.source = fmt::format("{}, {}, {}", *options.q, *options.k, *options.v);
      break;
    case Source::seeded: {
      const Sizes x = seeded_sizes(options);
      p.q = draw_tensor<T>(random, x.batch, x.heads, x.seq_q, x.head_dim, options.layout);
      p.k = draw_tensor<T>(random, x.batch, x.kv_heads, x.seq_k, x.head_dim, options.layout);
      p.v = draw_tensor<T>(random, x.batch, x.kv_heads, x.seq_k, x.value_dim, options.layout);
      p.source = fmt::format("standard normal numbers, seed {}", options.seed);
      break;
    }
    case Source::shipped: {
      const std::filesystem::path folder = data_folder();
      p.q = in_layout(read_tensor<T>((folder / "layer0_q.npy").string(), Layout::bhsd), options.layout);
      p.k = in_layout(read_tensor<T>((folder / "layer0_k.npy").string(), Layout::bhsd), options.layout);
      p.v = in_layout(read_tensor<T>((folder / "layer0_v.npy").string(), Layout::bhsd), options.layout);
      p.source = "Q, K, V of layer 0 of all-MiniLM-L6-v2 on the Gettysburg Address";
      if (step.gqa) {
        p.k = mean_pool(p.k, 3), p.v = mean_pool(p.v, 3);
        p.source += ", K and V mean-pooled over groups of 3 heads";
      }
    }
  }
  check_shapes(p, step);
  p.causal = options.causal.value_or(options.source() == Source::shipped && step.causal);
  if (p.head_dim() == 0 && !options.scale) throw BadInput("head_dim is 0, so 1 / sqrt(head_dim) is no scale: give --scale");
  p.scale = options.scale ? T(*options.scale) : T(1 / std::sqrt(double(p.head_dim())));
  p.gradients = step.has_backward();
  if (p.gradients) {
    if (options.d_o) {
      p.d_o = read_tensor<T>(*options.d_o, options.layout);
      expect_same(p.d_o.batch, "do", p.q.batch, "q", "batch");
      expect_same(p.d_o.heads, "do", p.q.heads, "q", "the number of heads");
      expect_same(p.d_o.rows, "do", p.q.rows, "q", "the sequence length");
      expect_same(p.d_o.cols, "do", p.v.cols, "v", "value_dim");
    } else {
      p.d_o = draw_tensor<T>(random, p.batch(), p.heads(), p.seq_q(), p.value_dim(), options.layout);
    }
  }
  return p;
}

template Problem<float> make_problem(const Step&, const Options&);
template Problem<double> make_problem(const Step&, const Options&);

}  // namespace flashsteps
