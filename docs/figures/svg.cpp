#include "svg.hpp"

#include <cmath>
#include <fmt/format.h>
#include <stdexcept>

#include "palette.hpp"

namespace flashsteps::figures {
namespace {

std::string escaped(std::string_view words) {
  std::string text;
  for (const char c : words) {
    if (c == '&') text += "&amp;";
    else if (c == '<') text += "&lt;";
    else if (c == '>') text += "&gt;";
    else text += c;
  }
  return text;
}

/// Calls piece(text, is_subscript) for the pieces of a text with `_x` and `_{xy}`.
template <class Piece> void for_pieces(std::string_view words, Piece piece) {
  std::string plain;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] != '_' || i + 1 == words.size()) {
      plain += words[i];
      continue;
    }
    if (!plain.empty()) piece(plain, false);
    plain.clear();
    const std::size_t end = words[i + 1] == '{' ? words.find('}', i) : i + 2;
    piece(std::string(words[i + 1] == '{' ? words.substr(i + 2, end - i - 2) : words.substr(i + 1, 1)), true);
    i = words[i + 1] == '{' ? end : i + 1;
  }
  if (!plain.empty()) piece(plain, false);
}

bool has(std::string_view classes, std::string_view one) { return (" " + std::string(classes) + " ").find(" " + std::string(one) + " ") != std::string::npos; }

std::string prefixed(std::string_view classes) {
  std::string text;
  for (std::size_t i = 0; i < classes.size();) {
    const std::size_t end = std::min(classes.find(' ', i), classes.size());
    text += (text.empty() ? "fs-" : " fs-") + std::string(classes.substr(i, end - i));
    i = end + 1;
  }
  return text.empty() ? "" : fmt::format(" class=\"{}\"", text);
}

double font_size(std::string_view classes) { return has(classes, "title") ? 19 : has(classes, "small") ? 15 : 17; }

std::string coordinates(const std::vector<Point>& points) {
  std::string text;
  for (const Point p : points) text += fmt::format("{}{},{}", text.empty() ? "" : " ", number(p.x), number(p.y));
  return text;
}

}  // namespace

std::string number(double x) {
  const long long hundredths = std::llround(std::floor(x * 100 + 0.5 + 1e-6));
  const long long whole = std::abs(hundredths) / 100, rest = std::abs(hundredths) % 100;
  std::string text = fmt::format("{}{}", hundredths < 0 ? "-" : "", whole);
  if (rest % 10 != 0) text += fmt::format(".{:02}", rest);
  else if (rest != 0) text += fmt::format(".{}", rest / 10);
  return text;
}

double text_width(std::string_view classes, std::string_view words) {
  double ems = 0;
  for_pieces(words, [&](const std::string& piece, bool small) {
    for (const char c : piece) {
      if ((c & 0xC0) == 0x80) continue;  // a byte inside of a character
      double em = 0.62;
      if (has(classes, "mono")) em = 0.602;
      else if (std::string_view("ijlftr.,:;'|()[] -/").find(c) != std::string_view::npos) em = 0.37;
      else if (std::string_view("mwMWN%").find(c) != std::string_view::npos) em = 0.9;
      else if (c >= 'A' && c <= 'Z') em = 0.7;
      ems += small ? 0.72 * em : em;
    }
  });
  return ems * font_size(classes) * (has(classes, "bold") || has(classes, "title") ? 1.1 : 1);
}

Figure::Figure(std::string name, std::string title, std::string description, double height)
    : name_(std::move(name)), title_(std::move(title)), description_(std::move(description)), height_(height) {
  text(20, 36, "title", title_);
}

void Figure::rect(double x, double y, double w, double h, std::string_view classes, double radius) {
  body_ += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"{}{}/>\n", number(x), number(y), number(w), number(h),
                       radius > 0 ? fmt::format(" rx=\"{}\"", number(radius)) : "", prefixed(classes));
}
void Figure::hatched(double x, double y, double w, double h) {
  hatch_ = true;
  body_ += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"url(#{}-hatch)\"/>\n", number(x), number(y), number(w), number(h), name_);
}
void Figure::circle(Point centre, double radius, std::string_view classes) {
  body_ += fmt::format("<circle cx=\"{}\" cy=\"{}\" r=\"{}\"{}/>\n", number(centre.x), number(centre.y), number(radius), prefixed(classes));
}
void Figure::line(Point a, Point b, std::string_view classes) {
  body_ += fmt::format("<path d=\"M{} {}L{} {}\"{}/>\n", number(a.x), number(a.y), number(b.x), number(b.y), prefixed(classes));
}
void Figure::polyline(const std::vector<Point>& points, std::string_view classes) {
  body_ += fmt::format("<polyline points=\"{}\"{}/>\n", coordinates(points), prefixed(classes));
}
void Figure::polygon(const std::vector<Point>& points, std::string_view classes) {
  body_ += fmt::format("<polygon points=\"{}\"{}/>\n", coordinates(points), prefixed(classes));
}
void Figure::arrow(Point a, Point b, std::string_view classes, std::string_view head, bool both) {
  const double length = std::hypot(b.x - a.x, b.y - a.y), dx = (b.x - a.x) / length, dy = (b.y - a.y) / length;
  const auto tip = [&](Point p, double s) {
    polygon({p, {p.x - s * 12 * dx - 5 * dy, p.y - s * 12 * dy + 5 * dx}, {p.x - s * 12 * dx + 5 * dy, p.y - s * 12 * dy - 5 * dx}}, head);
  };
  const double from = both ? 10 : 0;
  line({a.x + from * dx, a.y + from * dy}, {b.x - 10 * dx, b.y - 10 * dy}, classes);
  tip(b, 1);
  if (both) tip(a, -1);
}

void Figure::text(double x, double y, std::string_view classes, std::string_view words, Anchor anchor) {
  std::string inside;
  bool lowered = false;
  for_pieces(words, [&](const std::string& piece, bool small) {
    const char* shift = small && !lowered ? " dy=\"0.25em\"" : "";
    if (small) inside += fmt::format("<tspan font-size=\"72%\"{}>{}</tspan>", shift, escaped(piece));
    else if (lowered) inside += fmt::format("<tspan dy=\"-0.18em\">{}</tspan>", escaped(piece));
    else inside += escaped(piece);
    lowered = small;
  });
  const char* anchors[] = {"", " text-anchor=\"middle\"", " text-anchor=\"end\""};
  body_ += fmt::format("<text x=\"{}\" y=\"{}\"{}{}>{}</text>\n", number(x), number(y), anchors[int(anchor)], prefixed(classes), inside);
  const double w = text_width(classes, words), left = x - (anchor == Anchor::start ? 0 : anchor == Anchor::middle ? w / 2 : w), size = font_size(classes);
  boxes_.push_back({left, left + w, y - 0.76 * size, y + 0.2 * size, std::string(words)});
}

void Figure::upright(double x, double y, std::string_view classes, std::string_view words) {
  body_ += fmt::format("<text transform=\"translate({} {}) rotate(-90)\"{}>{}</text>\n", number(x), number(y), prefixed(classes), escaped(words));
  const double size = font_size(classes);
  boxes_.push_back({x - 0.76 * size, x + 0.2 * size, y - text_width(classes, words), y, std::string(words)});
}

double Figure::lines(double x, double y, std::string_view classes, const std::vector<std::string>& words, double step) {
  for (const std::string& line : words) {
    text(x, y, classes, line);
    y += step;
  }
  return y;
}

std::string Figure::svg() const {
  std::string wrong;
  for (std::size_t a = 0; a < boxes_.size(); ++a) {
    const Box& x = boxes_[a];
    if (x.left < 4 || x.right > width - 4 || x.top < 4 || x.bottom > height_ - 4)
      wrong += fmt::format("\n  \"{}\" reaches outside: {:.0f} to {:.0f}", x.words, x.left, x.right);
    for (std::size_t b = 0; b < a; ++b) {
      const Box& y = boxes_[b];
      if (x.left < y.right && y.left < x.right && x.top < y.bottom && y.top < x.bottom) wrong += fmt::format("\n  \"{}\" lies over \"{}\"", x.words, y.words);
    }
  }
  if (!wrong.empty()) throw std::logic_error(name_ + ":" + wrong);
  std::string text =
      fmt::format("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" class=\"fs-figure\" role=\"img\" aria-labelledby=\"{}-title {}-desc\">\n",
                  number(width), number(height_), name_, name_);
  text += fmt::format("<title id=\"{}-title\">{}</title>\n<desc id=\"{}-desc\">{}</desc>\n", name_, escaped(title_), name_, escaped(description_));
  text += "<style>\n" + style_block() + "</style>\n";
  if (hatch_)
    text += fmt::format(
        "<pattern id=\"{}-hatch\" width=\"9\" height=\"9\" patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\">"
        "<path d=\"M0 0V9\" class=\"fs-rule\" style=\"stroke-width:4\"/></pattern>\n",
        name_);
  text += fmt::format("<rect width=\"{}\" height=\"{}\" rx=\"10\" class=\"fs-paper\"/>\n", number(width), number(height_));
  return text + body_ + "</svg>\n";
}

}  // namespace flashsteps::figures
