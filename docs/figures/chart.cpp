#include "chart.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace flashsteps::figures {

std::string power_of_ten(int exponent) {
  static const char* const digits[] = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
  std::string text;
  for (const char c : std::to_string(std::abs(exponent))) text += digits[c - '0'];
  return std::string("10") + (exponent < 0 ? "⁻" : "") + text;
}

Chart::Chart(Figure& figure, double left, double top, double right, double bottom, Axis x, Axis y)
    : f_(figure), left_(left), top_(top), right_(right), bottom_(bottom), x_(x), y_(y) {}

Point Chart::place(Point p) const {
  const auto share = [](double v, Axis a) { return std::log10(v / a.low) / std::log10(a.high / a.low); };
  return {left_ + (right_ - left_) * share(p.x, x_), bottom_ - (bottom_ - top_) * share(p.y, y_)};
}

void Chart::ticks(const std::vector<Tick>& x, const std::vector<Tick>& y) {
  for (const Tick& tick : y) {
    const double at = place({x_.low, tick.at}).y;
    f_.line({left_, at}, {right_, at}, "rule");
    f_.text(left_ - 9, at + 5, "small muted", tick.label, Anchor::end);
  }
  for (const Tick& tick : x) {
    const double at = place({tick.at, y_.low}).x;
    f_.line({at, bottom_}, {at, bottom_ + 6}, "muted-line");
    f_.text(at, bottom_ + 25, "small muted", tick.label, Anchor::middle);
  }
  f_.line({left_, bottom_}, {right_, bottom_}, "muted-line");
}

void Chart::titles(const std::string& x, const std::string& y) {
  f_.text((left_ + right_) / 2, bottom_ + 51, "small", x, Anchor::middle);
  f_.text(20, top_ - 15, "small", y);
}

void Chart::marker(Point at, char marker, std::string_view colour) {
  const Point p = place(at);
  const std::string area(colour);
  const double r = 5.5;
  if (marker == 'o') f_.circle(p, r, area);
  if (marker == 'r') f_.circle(p, r, area + "-ring");
  if (marker == 's') f_.rect(p.x - r, p.y - r, 2 * r, 2 * r, area);
  if (marker == 't') f_.polygon({{p.x, p.y - 7}, {p.x + 7, p.y + 5}, {p.x - 7, p.y + 5}}, area);
  if (marker == 'd') f_.polygon({{p.x, p.y - 7.5}, {p.x + 7.5, p.y}, {p.x, p.y + 7.5}, {p.x - 7.5, p.y}}, area);
}

void Chart::curves(const std::vector<Curve>& curves) {
  struct Label {
    const Curve* curve;
    Point from;
    double y;
  };
  std::vector<Label> labels;
  for (const Curve& curve : curves) {
    std::vector<Point> points;
    for (const Point p : curve.points) points.push_back(place(p));
    f_.polyline(points, curve.colour + "-line" + (curve.dash.empty() ? "" : " " + curve.dash));
    for (const Point p : curve.points) marker(p, curve.marker, curve.colour);
    labels.push_back({&curve, points.back(), points.back().y});
  }
  std::sort(labels.begin(), labels.end(), [](const Label& a, const Label& b) { return a.y < b.y; });
  // Labels that stand too close push each other apart, up and down by the same amount
  const double apart = 21;
  for (int round = 0; round < 200; ++round)
    for (std::size_t n = 1; n < labels.size(); ++n) {
      const double missing = apart - (labels[n].y - labels[n - 1].y);
      if (missing > 0) labels[n - 1].y -= missing / 2, labels[n].y += missing / 2;
    }
  for (const Label& label : labels) {
    const double x = right_ + 26;
    if (std::abs(label.y - label.from.y) > 3) f_.polyline({{label.from.x + 9, label.from.y}, {x - 5, label.y}}, "rule");
    f_.text(x, label.y + 5, "small " + label.curve->colour + "-text", label.curve->label);
  }
}

}  // namespace flashsteps::figures
