#pragma once
// A small writer of SVG: one figure, its primitives, and the promises that every figure keeps (no text over text, none outside).

#include <string>
#include <string_view>
#include <vector>

namespace flashsteps::figures {

/// Width of every figure in its own units. On a phone of 360 pixels one unit is 0.56 pixels: text is 15 units high or more.
inline constexpr double width = 640;

enum class Anchor { start, middle, end };

/// A point in the figure's units.
struct Point {
  double x, y;
};

/// A figure. Classes are given without their prefix `fs-`, as in "small muted"; what they look like is said in palette.cpp alone.
class Figure {
 public:
  /// @param name the file's name without .svg; prefix of every id
  /// @param title a few words, also shown at the top
  /// @param description what the figure shows, with its key numbers, for who cannot see it
  Figure(std::string name, std::string title, std::string description, double height);

  void rect(double x, double y, double w, double h, std::string_view classes, double radius = 0);
  /// A rectangle of slanted lines: what is skipped or idle.
  void hatched(double x, double y, double w, double h);
  void circle(Point centre, double radius, std::string_view classes);
  void line(Point a, Point b, std::string_view classes);
  void polyline(const std::vector<Point>& points, std::string_view classes);
  void polygon(const std::vector<Point>& points, std::string_view classes);
  /// A line from a to b with a head at b (and at a). Heads take the class `head`.
  void arrow(Point a, Point b, std::string_view classes, std::string_view head, bool both = false);
  /// Text with its baseline at y. `_x` and `_{xy}` set a subscript.
  void text(double x, double y, std::string_view classes, std::string_view words, Anchor anchor = Anchor::start);
  /// Text that reads upwards from (x, y).
  void upright(double x, double y, std::string_view classes, std::string_view words);
  /// Lines of text, one below the other; returns the baseline after the last.
  double lines(double x, double y, std::string_view classes, const std::vector<std::string>& words, double step = 22);

  const std::string& name() const { return name_; }
  double height() const { return height_; }
  /// The whole file.
  /// @throws std::logic_error if text lies over text or outside of the figure
  std::string svg() const;

 private:
  struct Box {
    double left, right, top, bottom;
    std::string words;
  };
  std::string name_, title_, description_;
  double height_;
  std::string body_;
  std::vector<Box> boxes_;
  bool hatch_ = false;
};

/// How wide a text is, about: a wide font is assumed (DejaVu Sans).
double text_width(std::string_view classes, std::string_view words);
/// A number with at most two decimals, the same on every machine: a last bit more or less does not move it over a rounding limit.
std::string number(double x);

}  // namespace flashsteps::figures
