#pragma once
// A chart with two logarithmic axes.

#include "svg.hpp"

namespace flashsteps::figures {

/// From one number to another, both above 0.
struct Axis {
  double low, high;
};
struct Tick {
  double at;
  std::string label;
};
/// A curve: its colour is one of the palette, its dashes and marker tell it apart without colour.
struct Curve {
  std::vector<Point> points;  ///< in numbers, not in the figure's units
  std::string label, colour, dash;
  char marker = 'o';  ///< o disc, r ring, s square, t triangle, d diamond, - none
};

/// A chart inside of a figure.
class Chart {
 public:
  Chart(Figure& figure, double left, double top, double right, double bottom, Axis x, Axis y);
  void ticks(const std::vector<Tick>& x, const std::vector<Tick>& y);
  void titles(const std::string& x, const std::string& y);
  /// Draws curves, each with its label right of its last point; labels keep apart.
  void curves(const std::vector<Curve>& curves);
  void marker(Point at, char marker, std::string_view colour);
  /// Where a point of numbers stands in the figure.
  Point place(Point p) const;

 private:
  Figure& f_;
  double left_, top_, right_, bottom_;
  Axis x_, y_;
};

/// 10 to a power, as text.
std::string power_of_ten(int exponent);

}  // namespace flashsteps::figures
