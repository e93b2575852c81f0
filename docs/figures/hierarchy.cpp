// Slow memory, the chip, and what every step moves between them.
#include <cmath>
#include <fmt/format.h>

#include "common/runner/report.hpp"
#include "common/runner/tile_choice.hpp"
#include "figures.hpp"

namespace flashsteps::figures {
namespace {

std::string amount(Index n) { return n > 0 ? with_commas(n) : "–"; }
/// As in the ladder: three digits.
std::string ratio(double x) { return fmt::format("{:.{}f}", x, x < 0.995 ? 3 : x < 10 ? 2 : 1); }

const Cost& cost_of(const std::vector<Cost>& costs, int step, std::string_view form) {
  for (const Cost& cost : costs)
    if (cost.step->number == step && cost.form->name == form) return cost;
  throw std::logic_error(fmt::format("step {} has no form '{}'", step, form));
}

}  // namespace

Figure memory_hierarchy() {
  const std::vector<Cost> costs = default_costs();
  const HeadSizes x = default_sizes();
  const Index matrix = default_heads * x.nq * x.d, scores = default_heads * x.nq * x.nk, vector = default_heads * x.nq;
  const auto moved_by = [&](int step, std::string_view form) { return with_commas(flashsteps::moved(cost_of(costs, step, form).traffic)); };
  const double row = 25, table = 416;
  Figure f(
      "memory-hierarchy", "Two levels of memory, and what each step moves",
      fmt::format(
          "A small box, the chip, with room for {} elements, above a wide one, slow memory. Arrows between them: load, store and atomic add. Slow memory holds "
          "Q, K, V and O of {} elements each and L of {}; in standard attention also S and P of {} each. A table gives for each form of each step what is "
          "read, "
          "written and added on the shipped input, and what it holds on chip. In all, standard attention moves {} elements, three sweeps {}, "
          "FlashAttention-1 {} and FlashAttention-2 {}.",
          with_commas(default_capacity), with_commas(matrix), with_commas(vector), with_commas(scores), moved_by(1, "standard"), moved_by(1, "three sweeps"),
          moved_by(4, "column tiles outside"), moved_by(5, "row tiles outside")),
      table + row * double(costs.size()) + 78);

  f.rect(150, 62, 340, 92, "blue-soft", 8);
  f.text(320, 90, "bold", "chip: fast memory", Anchor::middle);
  f.text(320, 115, "", fmt::format("M = {} elements", with_commas(default_capacity)), Anchor::middle);
  f.text(320, 138, "small muted", fmt::format("{} KiB of float; tiles live here", default_capacity * Index(sizeof(float)) / 1024), Anchor::middle);
  f.arrow({190, 240}, {190, 158}, "ink-line", "ink-area");
  f.text(202, 194, "bold", "load");
  f.text(202, 214, "small muted", "read");
  f.arrow({310, 158}, {310, 240}, "ink-line", "ink-area");
  f.text(322, 194, "bold", "store");
  f.text(322, 214, "small muted", "written");
  f.arrow({430, 158}, {430, 240}, "ink-line dash", "ink-area");
  f.text(442, 194, "bold", "atomic add");
  f.text(442, 214, "small muted", "added");
  f.rect(20, 244, 600, 112, "panel", 8);
  f.text(320, 272, "bold", "slow memory (HBM)", Anchor::middle);
  f.text(320, 297, "", fmt::format("Q, K, V, O: {} elements each; L: {}", with_commas(matrix), with_commas(vector)), Anchor::middle);
  f.text(320, 320, "", fmt::format("S, P, in standard attention only: {} each", with_commas(scores)), Anchor::middle);
  f.text(320, 343, "small muted", fmt::format("{} heads of {} queries and keys, d = {}; as large as needed", default_heads, x.nq, x.d), Anchor::middle);

  const double right[] = {336, 432, 532, 620};
  const char* titles[] = {"read", "written", "added", "on chip"};
  f.text(20, table - 16, "small bold", "step");
  for (int c = 0; c < 4; ++c) f.text(right[c], table - 16, "small bold", titles[c], Anchor::end);
  double y = table;
  for (const Cost& cost : costs) {
    if (&cost == &costs.front() || cost.step != (&cost)[-1].step) f.line({20, y - 6}, {620, y - 6}, "rule");
    y += row;
    f.text(20, y - 13, "small", cost.label);
    const Index numbers[] = {cost.traffic.reads, cost.traffic.writes, cost.traffic.atomics, cost.on_chip};
    for (int c = 0; c < 4; ++c) f.text(right[c], y - 13, c == 3 ? "small mono muted" : "small mono", amount(numbers[c]), Anchor::end);
  }
  f.line({20, y - 6}, {620, y - 6}, "rule");
  f.lines(20, y + 24, "small muted",
          {"Elements over all heads; on chip: the most that one piece of work holds.", "07 and 08 with the causal mask; 08 with 4 heads of K and V."});
  return f;
}

Figure ladder_traffic() {
  const std::vector<Cost> costs = default_costs();
  const double row = 29, left = 240, right = 540;
  const auto x = [&](double ratio) { return left + (right - left) * (std::log10(ratio) + 1) / 3; };  // 0.1 to 100
  std::string spoken;
  for (const Cost& cost : costs) spoken += fmt::format("{}{}: {}", spoken.empty() ? "" : "; ", cost.label, ratio(cost.to_standard));
  Figure f("ladder-traffic", "Traffic compared with standard attention",
           "Bars on a logarithmic scale, one for each form of each step: elements moved on the shipped input over those of standard attention, for the "
           "backward pass over "
           "those of the standard backward pass. " +
               spoken + ".",
           176 + row * (double(costs.size()) + 2));
  const double top = 96, bottom = top + row * (double(costs.size()) + 1.9);
  f.text(x(1) - 12, 72, "small blue-text", "less than standard", Anchor::end);
  f.text(x(1) + 12, 72, "small orange-text", "more than standard");
  for (const double tick : {0.1, 1.0, 10.0, 100.0}) {
    f.line({x(tick), top - 12}, {x(tick), bottom}, tick == 1 ? "ink-line" : "rule");
    f.text(x(tick), bottom + 24, "small muted", fmt::format("{:g}", tick), Anchor::middle);
  }
  // The forms of one pass, what they are compared with first
  const auto of_pass = [&](bool backward) {
    std::vector<Cost> some;
    for (const Cost& cost : costs)
      if (cost.form->backward() == backward) some.insert(cost.to_standard == 1 ? some.begin() : some.end(), cost);
    return some;
  };
  f.text((left + right) / 2, bottom + 50, "small", "elements moved ÷ those of standard attention", Anchor::middle);
  double y = top;
  for (const bool backward : {false, true}) {
    f.text(20, y + 8, "small bold", backward ? "backward" : "forward");
    y += row;
    for (const Cost& cost : of_pass(backward)) {
      const double end = x(cost.to_standard);
      f.text(20, y + 6, "small", cost.label);
      if (cost.to_standard == 1) f.circle({x(1), y}, 7, "ink-area");
      else if (cost.to_standard < 1) f.rect(end, y - 9, x(1) - end, 18, "blue", 2);
      else f.rect(x(1), y - 9, end - x(1), 18, "orange", 2);
      f.text(620, y + 6, "mono bold", cost.to_standard == 1 ? "1" : ratio(cost.to_standard), Anchor::end);
      y += row;
    }
  }
  return f;
}

}  // namespace flashsteps::figures
