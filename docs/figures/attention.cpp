// Attention maps of the shipped transformer: the definition, in double, from the shipped Q and K.
#include <cmath>
#include <fmt/format.h>
#include <fstream>

#include "common/runner/npy.hpp"
#include "figures.hpp"

namespace flashsteps::figures {
namespace {

constexpr Index count = 24;

std::vector<std::string> tokens() {
  const std::string path = FLASHSTEPS_SOURCE_DIR "/common/data/minilm/tokens.txt";
  std::ifstream file(path);
  std::vector<std::string> all;
  for (std::string line; std::getline(file, line);) all.push_back(line);
  if (all.empty()) throw BadInput(path + ": cannot be read");
  return all;
}

/// The weights of all rows of one head: softmax of the scaled scores over all keys.
std::vector<std::vector<double>> weights(int layer, Index h) {
  const auto read = [&](char name) { return read_npy<float>(fmt::format(FLASHSTEPS_SOURCE_DIR "/common/data/minilm/layer{}_{}.npy", layer, name), 4); };
  const Npy<float> q = read('q'), k = read('k');
  const Index n = q.shape[2], d = q.shape[3];
  const RawHead<float> head{{q.numbers.data() + h * n * d, d}, {k.numbers.data() + h * n * d, d}, {}, {}, {}, n, n, d, 0, float(1 / std::sqrt(double(d))), n};
  std::vector<std::vector<double>> rows;
  for (Index i = 0; i < n; ++i) rows.push_back(define_row<double>(head, i).p);
  return rows;
}

/// Thousandths. A weight on the limit between two would make the figure depend on the last bit.
int thousandths(double w) {
  const double scaled = 1000 * w, limit = std::abs(scaled - std::floor(scaled) - 0.5);
  if (limit < 1e-7) throw std::logic_error("an attention weight lies between two thousandths");
  return int(std::floor(scaled + 0.5));
}

std::string rounded(double w) { return fmt::format("{:.3f}", thousandths(w) / 1000.0); }

struct Map {
  int layer;
  Index head, first;
};

Figure attention_map(const Map& map) {
  const std::vector<std::string> words = tokens();
  const auto w = weights(map.layer, map.head);
  const Index n = Index(words.size());
  double inside = 0, before = 0;
  std::string text;
  for (Index i = map.first; i < map.first + count; ++i) {
    text += (text.empty() ? "" : " ") + words[i];
    for (Index j = map.first; j < map.first + count; ++j) inside += w[i][j] / double(count);
  }
  // The key that these rows look at most, and the row that looks at it most
  const auto mean = [&](Index j) {
    double sum = 0;
    for (Index i = map.first; i < map.first + count; ++i) sum += w[i][j];
    return sum / double(count);
  };
  Index top_i = map.first, top_j = map.first;
  for (Index j = map.first; j < map.first + count; ++j)
    if (mean(j) > mean(top_j)) top_j = j;
  for (Index i = map.first; i < map.first + count; ++i)
    if (w[i][top_j] > w[top_i][top_j]) top_i = i;
  for (Index i = map.first + 1; i < map.first + count; ++i) before += w[i][i - 1] / double(count - 1);
  const std::string favourite =
      fmt::format("\"{}\" gets most: {} of a row's weight on average, at most {}.", words[top_j], rounded(mean(top_j)), rounded(w[top_i][top_j]));
  const std::string what = before > 0.9
                               ? fmt::format("From the second row on, more than {:.3f} of the weight is on the token before.", std::floor(1000 * before) / 1000)
                               : favourite;
  const std::string name = fmt::format("attention-layer{}", map.layer);
  Figure f(name, fmt::format("Layer {}, head {}: where each token looks", map.layer, map.head),
           fmt::format("Attention weights of head {} in layer {} of all-MiniLM-L6-v2 for {} tokens of the Gettysburg Address: {}. Rows are queries, columns "
                       "keys; the area of a square "
                       "is the weight. {} The weights are a softmax over all {} keys without a mask; {} of a row's weight lies inside of the map on average.",
                       map.head, map.layer, count, text, what, n, rounded(inside)),
           758);
  f.text(20, 62, "small muted", what);
  const double cell = 19.5, left = 112, top = 176, side = cell * count, extra = left + side + 10;
  f.rect(left, top, side, side, "panel");
  f.rect(extra, top, cell, side, "panel");
  for (Index i = 0; i < count; ++i) {
    f.line({left, top + cell * double(i)}, {left + side, top + cell * double(i)}, "grid");
    f.line({left + cell * double(i), top}, {left + cell * double(i), top + side}, "grid");
    f.text(left - 8, top + cell * (double(i) + 0.5) + 5, "small", words[map.first + i], Anchor::end);
    f.upright(left + cell * (double(i) + 0.5) + 5, top - 8, "small", words[map.first + i]);
  }
  f.upright(extra + cell / 2 + 5, top - 8, "small muted", "elsewhere");
  const auto square = [&](double x, double y, int weight) {
    if (weight == 0) return;
    const double s = (cell - 1) * std::sqrt(weight / 1000.0);
    f.rect(x + (cell - s) / 2, y + (cell - s) / 2, s, s, "blue");
  };
  for (Index i = 0; i < count; ++i) {
    double rest = 0;
    for (Index j = 0; j < n; ++j)
      if (j < map.first || j >= map.first + count) rest += w[map.first + i][j];
    for (Index j = 0; j < count; ++j) square(left + cell * double(j), top + cell * double(i), thousandths(w[map.first + i][map.first + j]));
    square(extra, top + cell * double(i), thousandths(rest));
  }
  double x = left;
  f.text(20, top + side + 36, "small muted", "weight");
  for (const int weight : {1000, 500, 100, 10}) {
    square(x, top + side + 20, weight);
    const std::string label = fmt::format("{}", weight / 1000.0);
    f.text(x + cell + 6, top + side + 36, "small muted", label);
    x += cell + 30 + text_width("small", label);
  }
  f.lines(20, top + side + 66, "small muted",
          {fmt::format("Rows: queries. Columns: keys. Softmax over all {} keys, no mask;", n),
           fmt::format("\"elsewhere\" is the weight on the other {} keys.", n - count)});
  return f;
}

}  // namespace

Figure attention_layer0() { return attention_map({0, 2, 307}); }
Figure attention_layer5() { return attention_map({5, 2, 0}); }

}  // namespace flashsteps::figures
