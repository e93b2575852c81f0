// Traffic against the size of the tiles, the head dimension and the length.
#include <cmath>
#include <fmt/format.h>

#include "chart.hpp"
#include "common/runner/report.hpp"
#include "common/runner/tile_choice.hpp"
#include "figures.hpp"
#include "steps/all.hpp"

namespace flashsteps::figures {
namespace {

HeadSizes square(Index n, Index d, Index br, Index bc) { return {.nq = n, .nk = n, .d = d, .dv = d, .br = br, .bc = bc, .diagonal = n}; }

const Form& standard() { return step01::step().form("standard"); }

}  // namespace

Figure traffic_block_size() {
  const Index n = 1024, d = 64, least = 16;
  const Form &fa1 = step04::step().main(), &fa2 = step05::step().main();
  Curve one{{}, "04, against B_c", "orange", "", '-'}, two{{}, "05, against B_r", "blue", "dash", '-'};
  const double reference = double(moved(standard(), square(n, d, 1, 1)));
  std::string spoken;
  const std::vector<Index> sizes = {16, 32, 64, 128, 256, 512};
  for (const Index b : sizes) {
    one.points.push_back({double(b), double(moved(fa1, square(n, d, least, b)))});
    two.points.push_back({double(b), double(moved(fa2, square(n, d, b, least)))});
    spoken += fmt::format("; {}: {} and {}", b, with_commas(Index(one.points.back().y)), with_commas(Index(two.points.back().y)));
  }
  Figure f(
      "traffic-block-size", "Traffic against the size of the tiles",
      fmt::format("Elements moved for one head of {} queries and keys, d = {}, against the tile size that counts: B_c for FlashAttention-1 (step 04), B_r for "
                  "FlashAttention-2 (step 05); the other size has no influence. Both halve with each doubling. Standard attention moves {}{}.",
                  n, d, with_commas(Index(reference)), spoken),
      532);
  Chart chart(f, 74, 106, 444, 400, {14, 585}, {3e5, 2e7});
  chart.titles("rows of a tile", "millions of elements moved");
  std::vector<Tick> x, y;
  for (const Index b : sizes) x.push_back({double(b), fmt::format("{}", b)});
  chart.ticks(x, {{5e5, "0.5"}, {1e6, "1"}, {2e6, "2"}, {5e6, "5"}, {1e7, "10"}});
  chart.curves({one, two, {{{16, reference}, {512, reference}}, "01 standard", "violet", "dot", '-'}});
  for (std::size_t s = 0; s < sizes.size(); ++s) {
    const bool fits_one = fa1.on_chip(square(n, d, least, sizes[s])) <= default_capacity,
               fits_two = fa2.on_chip(square(n, d, sizes[s], least)) <= default_capacity;
    chart.marker(one.points[s], fits_one ? 'o' : 'r', "orange");
    chart.marker(two.points[s], fits_two ? 'o' : 'r', "blue");
  }
  f.text(20, 62, "small muted", fmt::format("One head of {} queries and keys, d = {}.", with_commas(n), d));
  f.circle({27, 481}, 5.5, "ink-area");
  f.text(42, 486, "small muted", fmt::format("fits into {} elements with {} rows of the other tile", with_commas(default_capacity), least));
  f.circle({27, 504}, 5.5, "empty");
  f.text(42, 509, "small muted", "does not fit");
  return f;
}

Figure traffic_head_dim() {
  const Index n = 2048, capacity = 98304, flat = 16;  // 192 KiB of half; B_c of tall tiles
  const Form &fa1 = step04::step().main(), &fa2 = step05::step().main();
  // Tiles for a head dimension: of Algorithm 1; the largest square that fits; the tallest that fits
  const auto paper = [&](Index d) {
    const Index bc = tile_count(capacity, 4 * d);
    return square(n, d, std::min(bc, d), bc);  // where that is too much, B_r gives way, which has no influence
  };
  const auto largest_square = [&](Index d) { return fitting(fa2, square(n, d, n, n), capacity); };
  const auto tall = [&](Index d) { return fitting(fa2, square(n, d, n, flat), capacity); };
  const auto ratio = [&](const Form& form, const HeadSizes& x) { return double(moved(form, x)) / double(moved(standard(), x)); };
  const auto crossover = [&](const Form& form, auto sizes) {
    Index d = 16;
    while (ratio(form, sizes(d)) < 1) ++d;
    return d;
  };
  Curve one{{}, "04, paper's tiles", "orange", "", 'o'}, two{{}, "05, square tiles", "blue", "dash", 's'}, three{{}, "05, tall tiles", "green", "dot", 't'};
  std::vector<Tick> x;
  for (const Index d : {16, 32, 64, 128, 256, 512}) {
    one.points.push_back({double(d), ratio(fa1, paper(d))});
    two.points.push_back({double(d), ratio(fa2, largest_square(d))});
    three.points.push_back({double(d), ratio(fa2, tall(d))});
    x.push_back({double(d), fmt::format("{}", d)});
  }
  const Index at[] = {crossover(fa1, paper), crossover(fa2, largest_square), crossover(fa2, tall)};
  Figure f("traffic-head-dim", "Traffic against the head dimension",
           fmt::format(
               "Elements moved over those of standard attention, for {} queries and keys and {} elements on chip, against the head dimension. All curves rise. "
               "From d = {} on FlashAttention-1 with the paper's tiles moves as much as standard attention or more; FlashAttention-2 with the largest square "
               "tiles that fit from d = {}, with the tallest tiles from d = {}.",
               n, with_commas(capacity), at[0], at[1], at[2]),
           562);
  Chart chart(f, 74, 106, 444, 400, {14, 585}, {0.01, 20});
  chart.titles("head dimension d", "traffic ÷ standard attention");
  chart.ticks(x, {{0.01, "0.01"}, {0.1, "0.1"}, {1, "1"}, {10, "10"}});
  f.line(chart.place({14, 1}), chart.place({585, 1}), "ink-line");
  f.text(chart.place({14, 1}).x + 8, chart.place({14, 1}).y - 9, "small", "as much as standard");
  chart.curves({one, two, three});
  const char* colours[] = {"orange", "blue", "green"};
  const char* names[] = {"04, paper's tiles", "05, square", "05, tall"};
  f.text(20, 486, "small bold", "As much as standard from");
  double left = 20;
  for (int c = 0; c < 3; ++c) {
    f.circle(chart.place({double(at[c]), 1}), 6, std::string(colours[c]) + "-ring");
    const std::string words = fmt::format("d = {}  ({})", at[c], names[c]);
    f.circle({left + 6, 507}, 6, std::string(colours[c]) + "-ring");
    f.text(left + 18, 512, "small", words);
    left += 36 + text_width("small", words);
  }
  f.text(20, 62, "small muted", fmt::format("N = {}, {} elements on chip ({} KiB of half).", with_commas(n), with_commas(capacity), capacity * 2 / 1024));
  f.text(20, 542, "small muted", fmt::format("Square: the largest that fits. Tall: B_c = {}, as many rows as fit.", flat));
  return f;
}

Figure traffic_length() {
  const Index d = 64;
  struct Line {
    const Form* form;
    std::string label, colour, dash;
    char marker;
    bool causal = false;
  };
  const Step &six = step06::step(), &seven = step07::step();
  const std::vector<Line> forward = {{&step01::step().form("three sweeps"), "01 three sweeps", "orange", "", 'o'},
                                     {&step02::step().main(), "02 two sweeps", "orange", "dash", 's'},
                                     {&step03::step().main(), "03 one sweep", "orange", "dot", 't'},
                                     {&standard(), "01 standard", "violet", "", 'd'},
                                     {&step04::step().main(), "04 FlashAttention-1", "green", "dash", 's'},
                                     {&step05::step().main(), "05 FlashAttention-2", "blue", "", 'o'},
                                     {&seven.forward(), "07, 08 causal", "blue", "dot", 't', true}};
  const std::vector<Line> backward = {{&six.form("standard"), "06 standard", "violet", "", 'd'},
                                      {&six.form("row order"), "06 row order", "green", "dash", 's'},
                                      {&six.form("column order"), "06 column order", "blue", "", 'o'},
                                      {seven.backward(), "07 causal", "blue", "dot", 't', true}};
  const std::vector<Index> lengths = {128, 512, 2048, 8192};
  std::string spoken;
  const auto curves_of = [&](const std::vector<Line>& lines) {
    std::vector<Curve> curves;
    for (const Line& line : lines) {
      Curve curve{{}, line.label, line.colour, line.dash, line.marker};
      for (const Index n : lengths) {
        HeadSizes x = square(n, d, default_tile, default_tile);
        if (line.causal) x.diagonal = 0;
        curve.points.push_back({double(n), double(moved(*line.form, x))});
      }
      spoken += fmt::format("; {}: {}", line.label, with_commas(Index(curve.points.back().y)));
      curves.push_back(curve);
    }
    return curves;
  };
  const std::vector<Curve> first = curves_of(forward), second = curves_of(backward);
  Figure f("traffic-length", "Traffic against the length",
           fmt::format("Elements moved for one head, d = {}, tiles of {} by {}, against the number N of queries and keys: all grow with the square of N for "
                       "large N. At N = {}{}.",
                       d, default_tile, default_tile, lengths.back(), spoken),
           924);
  std::vector<Tick> x, y;
  for (const Index n : lengths) x.push_back({double(n), with_commas(n)});
  for (const int e : {4, 6, 8, 10}) y.push_back({std::pow(10.0, e), power_of_ten(e)});
  f.text(20, 62, "small muted", fmt::format("Elements moved for one head, d = {}, tiles of {} × {}.", d, default_tile, default_tile));
  Chart upper(f, 74, 106, 440, 436, {110, 9500}, {1e4, 4e10});
  upper.titles("N", "forward");
  upper.ticks(x, y);
  upper.curves(first);
  Chart lower(f, 74, 550, 440, 840, {110, 9500}, {5e4, 1.2e9});
  lower.titles("N", "backward");
  y.clear();
  for (const int e : {5, 6, 7, 8, 9}) y.push_back({std::pow(10.0, e), power_of_ten(e)});
  lower.ticks(x, y);
  lower.curves(second);
  return f;
}

}  // namespace flashsteps::figures
