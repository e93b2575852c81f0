// The figure of the benchmark: time and memory against N.
#include "docs/figures/chart.hpp"
#include "tests/benchmarks/bench_report.hpp"
#include "tests/benchmarks/machine.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace flashsteps::bench {
namespace {

using figures::Axis;
using figures::Chart;
using figures::Curve;
using figures::Figure;
using figures::Point;
using figures::Tick;

/// How a form is drawn; forms that a label stands for together are drawn alike.
struct Look {
  const char *home, *form;
  bool backward, causal;
  const char *label, *colour, *dash;
  char marker;
};
// 07 and 08 without a mask do the work of 05 and 06: with it they show what they are for
constexpr Look looks[] = {{"01_safe_softmax_3pass", "standard", false, false, "01 standard", "violet", "", 'd'},
                          {"01_safe_softmax_3pass", "three sweeps", false, false, "01 sweeps", "orange", "", 'o'},
                          {"02_online_softmax_2pass", "two sweeps", false, false, "02", "orange", "dash", 's'},
                          {"03_fa_1pass", "one sweep", false, false, "03", "orange", "dot", 't'},
                          {"03_fa_1pass", "one sweep, normalised", false, false, "03 norm.", "orange", "dot", 'r'},
                          {"04_fa1_tiled", "column tiles outside", false, false, "04", "green", "", 's'},
                          {"05_fa2_loop_swap", "row tiles outside", false, false, "05", "blue", "", 'o'},
                          {"07_causal_early_exit", "forward", false, true, "07 causal", "blue", "dot", 't'},
                          {"08_gqa", "forward", false, true, "08 causal", "blue", "dash", 'r'},
                          {"06_backward_recompute", "standard", true, false, "06 standard", "violet", "dash", 'd'},
                          {"06_backward_recompute", "row order", true, false, "06 rows", "green", "dash", 's'},
                          {"06_backward_recompute", "column order", true, false, "06 columns", "blue", "dash", 's'},
                          {"07_causal_early_exit", "backward", true, true, "07 causal, b.", "green", "dot", 't'},
                          {"08_gqa", "backward", true, true, "08 causal, b.", "green", "dot", 'r'}};

/// One curve for each look that has a point.
template <class Value> std::vector<Curve> curves_of(const std::vector<const Case*>& cases, Value value) {
  std::vector<Curve> curves;
  for (const Look& look : looks) {
    Curve curve{{}, look.label, look.colour, look.dash, look.marker};
    for (const Case* c : cases)
      if (c->form->home == look.home && c->form->name == look.form && c->causal == look.causal && c->form->backward() == look.backward && value(*c) > 0)
        curve.points.push_back({double(c->n), value(*c)});
    if (!curve.points.empty()) curves.push_back(curve);
  }
  return curves;
}

/// Curves of the same height, within a part, become one: the longest, with the labels of all.
std::vector<Curve> joined(const std::vector<Curve>& curves, double part) {
  std::vector<Curve> all;
  for (const Curve& curve : curves) {
    const auto same = [&](const Curve& other) {
      const std::size_t n = std::min(curve.points.size(), other.points.size());
      for (std::size_t x = 0; x < n; ++x)
        if (!(std::abs(std::log(curve.points[x].y / other.points[x].y)) <= part) || curve.points[x].x != other.points[x].x) return false;
      return true;
    };
    const auto found = std::find_if(all.begin(), all.end(), same);
    if (found == all.end()) {
      all.push_back(curve);
      continue;
    }
    if (curve.points.size() > found->points.size()) found->points = curve.points;
    found->label += ", " + curve.label;
  }
  return all;
}

/// What a label may take: 170 units, about 20 letters.
void shorten(std::vector<Curve>& curves, const std::string& after) {
  for (Curve& curve : curves) {
    while (figures::text_width("small", curve.label + after) > 168 && curve.label.rfind(", ") != std::string::npos) {
      curve.label.erase(curve.label.rfind(", "));
      if (!curve.label.ends_with("…")) curve.label += " …";
    }
    curve.label += after;
  }
}

Axis around(const std::vector<Curve>& curves) {
  double low = std::numeric_limits<double>::infinity(), high = 0;
  for (const Curve& curve : curves)
    for (const Point& p : curve.points) low = std::min(low, p.y), high = std::max(high, p.y);
  return {low / 2, high * 2};
}

std::vector<Tick> powers(Axis axis, int factor) {
  std::vector<Tick> ticks;
  for (int e = int(std::ceil(std::log10(axis.low))); e <= int(std::floor(std::log10(axis.high))); ++e)
    if (e % factor == 0) ticks.push_back({std::pow(10.0, e), figures::power_of_ten(e)});
  return ticks;
}

}  // namespace

std::string bench_svg(const std::deque<Case>& cases) {
  // Float, fewest threads, d = 64 if there is one
  const Case* first = nullptr;
  for (const Case& c : cases)
    if (c.ran() && (!first || (c.dtype == first->dtype && c.threads == first->threads && first->d != 64 && c.d == 64))) first = &c;
  if (!first) return "";
  std::vector<const Case*> shown;
  for (const Case& c : cases)
    if (c.ran() && c.dtype == first->dtype && c.threads == first->threads && c.d == first->d) shown.push_back(&c);
  std::vector<Curve> time = curves_of(shown, [](const Case& c) { return c.median(); });
  std::vector<Curve> traffic = joined(curves_of(shown, [](const Case& c) { return double(c.moved * c.element()); }), 0.02);
  std::vector<Curve> extra = joined(curves_of(shown, [](const Case& c) { return double(c.extra_bytes); }), 0.35);
  if (time.empty()) return "";
  shorten(time, ""), shorten(traffic, ""), shorten(extra, "");
  for (Curve& curve : extra) curve.dash = "dot", curve.marker = 'r';

  Index least = first->n, most = first->n;
  for (const Case* c : shown) least = std::min(least, c->n), most = std::max(most, c->n);
  const Axis lengths{double(least) / 1.2, double(most) * 1.2};
  std::vector<Tick> x;
  for (Index n = least; n <= most; n *= 2) x.push_back({double(n), n % 1024 == 0 && n > 512 ? fmt::format("{}k", n / 1024) : fmt::format("{}", n)});
  std::vector<Curve> memory = traffic;
  memory.insert(memory.end(), extra.begin(), extra.end());

  const auto height = [](const std::vector<Curve>& curves) { return std::max(300.0, 21.0 * double(curves.size()) + 60); };
  const double top = 128, middle = top + height(time), second = middle + 128, bottom = second + height(memory);
  const std::string setting = fmt::format("{}, d = {}, {} thread{}, {} head{}", word(first->dtype), first->d, first->threads, first->threads == 1 ? "" : "s", first->heads,
                                          first->heads == 1 ? "" : "s");
  std::string spoken;
  for (const Curve& curve : time) spoken += fmt::format("; {}: {:.3g} s at N = {}", curve.label, curve.points.back().y, curve.points.back().x);
  Figure f("bench", "Time and memory of all steps", fmt::format("Measured against the number N of queries and keys, {}{}.", setting, spoken), bottom + 100);
  f.text(20, 62, "small muted", setting + ". b.: backward.");
  std::string processor = machine().processor;
  f.text(20, 84, "small muted", processor.substr(0, 60));
  Chart upper(f, 74, top, 440, middle, lengths, around(time));
  upper.titles("N", "seconds");
  upper.ticks(x, powers(around(time), 1));
  upper.curves(time);
  Chart lower(f, 74, second, 440, bottom, lengths, around(memory));
  lower.titles("N", "bytes moved (filled), memory taken besides (dotted, rings)");
  lower.ticks(x, powers(around(memory), 2));
  lower.curves(memory);
  return f.svg();
}

}  // namespace flashsteps::bench
