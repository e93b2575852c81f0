// The figure of the benchmark: time and memory against N.
#include "docs/figures/chart.hpp"
#include "tests/benchmarks/bench_report.hpp"
#include "tests/benchmarks/machine.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <stdexcept>

namespace flashsteps::bench {
namespace {

using figures::Axis;
using figures::Chart;
using figures::Curve;
using figures::Figure;
using figures::Point;
using figures::Tick;

constexpr double label_width = 168;  ///< room right of a chart

/// How a form is drawn.
struct Look {
  const char *home, *form;
  bool backward, causal;
  const char *label, *brief, *colour, *dash;
  char marker;
};
// 07 and 08 without a mask do the work of 05 and 06: with it they show what they are for
constexpr Look looks[] = {{"01_safe_softmax_3pass", "standard", false, false, "01 standard", "01s", "violet", "", 'd'},
                          {"01_safe_softmax_3pass", "three sweeps", false, false, "01 sweeps", "01", "orange", "", 'o'},
                          {"02_online_softmax_2pass", "two sweeps", false, false, "02", "02", "orange", "dash", 's'},
                          {"03_fa_1pass", "one sweep", false, false, "03", "03", "orange", "dot", 't'},
                          {"03_fa_1pass", "one sweep, normalised", false, false, "03 normalised", "03n", "orange", "dot", 'r'},
                          {"04_fa1_tiled", "column tiles outside", false, false, "04", "04", "green", "", 's'},
                          {"05_fa2_loop_swap", "row tiles outside", false, false, "05", "05", "blue", "", 'o'},
                          {"07_causal_early_exit", "forward", false, true, "07 causal", "07", "blue", "dot", 't'},
                          {"08_gqa", "forward", false, true, "08 causal", "08", "blue", "dash", 'r'},
                          {"06_backward_recompute", "standard", true, false, "06 standard, b.", "06s b.", "violet", "dash", 'd'},
                          {"06_backward_recompute", "row order", true, false, "06 rows, b.", "06r b.", "green", "dash", 's'},
                          {"06_backward_recompute", "column order", true, false, "06 columns, b.", "06c b.", "blue", "dash", 's'},
                          {"07_causal_early_exit", "backward", true, true, "07 causal, b.", "07 b.", "green", "dot", 't'},
                          {"08_gqa", "backward", true, true, "08 causal, b.", "08 b.", "green", "dot", 'r'}};

/// A curve, and its label beside others.
struct Named {
  Curve curve;
  std::string brief;
};

/// One curve for each look that has a point. Those of the same height, within a part, become one: the longest, with the labels of all.
template <class Value> std::vector<Curve> curves_of(const std::vector<const Case*>& cases, Value value, double part) {
  std::vector<Named> all;
  for (const Look& look : looks) {
    Curve curve{{}, look.label, look.colour, look.dash, look.marker};
    for (const Case* c : cases)
      if (c->form->home == look.home && c->form->name == look.form && c->causal == look.causal && c->form->backward() == look.backward && value(*c) > 0)
        curve.points.push_back({double(c->n), value(*c)});
    if (curve.points.empty()) continue;
    const auto same = [&](const Named& other) {
      const std::size_t n = std::min(curve.points.size(), other.curve.points.size());
      for (std::size_t x = 0; x < n; ++x)
        if (!(std::abs(std::log(curve.points[x].y / other.curve.points[x].y)) < part) || curve.points[x].x != other.curve.points[x].x) return false;
      return true;
    };
    const auto found = std::find_if(all.begin(), all.end(), same);
    if (found == all.end()) {
      all.push_back({curve, look.brief});
      continue;
    }
    if (curve.points.size() > found->curve.points.size()) found->curve.points = curve.points;
    std::string together = found->brief + ", " + look.brief;
    if (figures::text_width("small", together + " …") > label_width) together = found->brief.ends_with("…") ? found->brief : found->brief + " …";
    found->curve.label = found->brief = together;
  }
  std::vector<Curve> curves;
  for (const Named& named : all) curves.push_back(named.curve);
  return curves;
}

Axis around(const std::vector<Curve>& curves) {
  double low = std::numeric_limits<double>::infinity(), high = 0;
  for (const Curve& curve : curves)
    for (const Point& p : curve.points) low = std::min(low, p.y), high = std::max(high, p.y);
  return {low / 2, high * 2};
}

/// Powers of ten, not more than about eight.
std::vector<Tick> powers(Axis axis) {
  const int first = int(std::ceil(std::log10(axis.low))), last = int(std::floor(std::log10(axis.high)));
  std::vector<Tick> ticks;
  for (int e = first; e <= last; e += 1 + (last - first) / 8) ticks.push_back({std::pow(10.0, e), figures::power_of_ten(e)});
  return ticks;
}

/// What is drawn, one chart below the other.
struct Part {
  std::string title;
  std::vector<Curve> curves;
};

/// Draws the figure with room between the charts for labels that push each other out of theirs.
/// @throws std::logic_error if there is not enough
std::string draw(const std::vector<Part>& parts, const std::vector<const Case*>& shown, const std::string& setting, const std::string& spoken, double room) {
  Index least = shown.front()->n, most = least;
  for (const Case* c : shown) least = std::min(least, c->n), most = std::max(most, c->n);
  const Axis lengths{double(least) / 1.2, double(most) * 1.2};
  std::vector<Tick> x;
  for (Index n = least; n <= most; n *= 2) x.push_back({double(n), n >= 1024 && n % 1024 == 0 ? fmt::format("{}k", n / 1024) : fmt::format("{}", n)});

  const auto height = [](const Part& part) { return std::max(260.0, 21.0 * double(part.curves.size()) + 40); };
  double all = 106 + 40;
  for (const Part& part : parts) all += height(part) + room;
  Figure f("bench", "Time and memory of all steps", fmt::format("Measured against the number N of queries and keys, {}{}.", setting, spoken), all);
  f.text(20, 62, "small muted", machine().processor.substr(0, 60));
  f.text(20, 84, "small muted", setting + ". 07 and 08: causal; b.: backward.");
  double top = 106 + room / 2;
  for (const Part& part : parts) {
    Chart chart(f, 74, top, 440, top + height(part), lengths, around(part.curves));
    chart.titles("N", part.title);
    chart.ticks(x, powers(around(part.curves)));
    chart.curves(part.curves);
    top += height(part) + room;
  }
  return f.svg();
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
  std::vector<Part> parts{{"seconds", curves_of(
                                          shown, [](const Case& c) { return c.median(); }, 0)},
                          {"bytes moved", curves_of(
                                              shown, [](const Case& c) { return double(c.moved * c.element()); }, 0.05)},
                          {"bytes allocated besides inputs and outputs", curves_of(
                                                                             shown, [](const Case& c) { return double(c.extra_bytes); }, 0.3)}};
  std::erase_if(parts, [](const Part& part) { return part.curves.empty(); });
  if (parts.empty()) return "";

  const std::string setting = fmt::format("{}, d = {}, {} thread{}, {} head{}", word(first->dtype), first->d, first->threads, first->threads == 1 ? "" : "s",
                                          first->heads, first->heads == 1 ? "" : "s");
  std::string spoken;
  for (const Curve& curve : parts.front().curves) spoken += fmt::format("; {}: {:.3g} s at N = {}", curve.label, curve.points.back().y, curve.points.back().x);
  for (double room = 110;; room *= 1.5) {
    try {
      return draw(parts, shown, setting, spoken, room);
    } catch (const std::logic_error&) {
      if (room > 1000) throw;
    }
  }
}

}  // namespace flashsteps::bench
