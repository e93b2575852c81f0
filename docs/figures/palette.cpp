#include "palette.hpp"

#include <cmath>
#include <fmt/format.h>
#include <stdexcept>
#include <string_view>
#include <vector>

namespace flashsteps::figures {
namespace {

struct Colour {
  std::string_view name;
  unsigned light, dark;
};
constexpr Colour colours[] = {
    {"paper", 0xffffff, 0x14181f},       {"panel", 0xf3f5f8, 0x1e242d}, {"ink", 0x1b2027, 0xe7ebf0},        {"muted", 0x566070, 0xa6b0bd},
    {"rule", 0xd3d9e1, 0x39424f},        {"blue", 0x1f5fa8, 0x86bcf5},  {"blue-soft", 0xdbe9f8, 0x1c3a5c},  {"orange", 0xa34d00, 0xf2ab62},
    {"orange-soft", 0xfbe6cd, 0x553513}, {"green", 0x22703f, 0x7fcf9d}, {"green-soft", 0xd8efdf, 0x1b4630}, {"violet", 0x6d3fa0, 0xc9a9f0},
    {"violet-soft", 0xebe0f7, 0x402c5c},
};
constexpr std::string_view hues[] = {"blue", "orange", "green", "violet"};

unsigned colour(std::string_view name, bool dark) {
  for (const Colour& c : colours)
    if (c.name == name) return dark ? c.dark : c.light;
  throw std::logic_error(fmt::format("the palette has no colour '{}'", name));
}

std::string properties(bool dark) {
  std::string text;
  for (const Colour& c : colours) text += fmt::format("--fs-{}:#{:06x};", c.name, dark ? c.dark : c.light);
  return text;
}

/// Relative luminance of a colour in sRGB (WCAG 2).
double luminance(unsigned rgb) {
  const auto linear = [](unsigned byte) {
    const double c = byte / 255.0;
    return c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
  };
  return 0.2126 * linear(rgb >> 16 & 255) + 0.7152 * linear(rgb >> 8 & 255) + 0.0722 * linear(rgb & 255);
}
double contrast(unsigned a, unsigned b) {
  const double x = luminance(a), y = luminance(b);
  return (std::max(x, y) + 0.05) / (std::min(x, y) + 0.05);
}

}  // namespace

std::string style_block() {
  std::string css;
  css += fmt::format(":where(.fs-figure){{{}}}\n", properties(false));
  css += fmt::format("@media (prefers-color-scheme:dark){{:where(.fs-figure){{{}}}}}\n", properties(true));
  css += fmt::format(":where(html.light-mode .fs-figure){{{}}}\n", properties(false));
  css += fmt::format(":where(html.dark-mode .fs-figure){{{}}}\n", properties(true));
  css +=
      ".fs-figure text{font:17px sans-serif;fill:var(--fs-ink)}\n"
      ".fs-figure .fs-title{font-size:19px;font-weight:bold}\n"
      ".fs-figure .fs-small{font-size:15px}\n"
      ".fs-figure .fs-mono{font-family:monospace}\n"
      ".fs-figure .fs-bold{font-weight:bold}\n"
      ".fs-figure .fs-muted{fill:var(--fs-muted)}\n"
      ".fs-figure .fs-on-solid{fill:var(--fs-paper)}\n"
      ".fs-figure .fs-paper{fill:var(--fs-paper)}\n"
      ".fs-figure .fs-panel{fill:var(--fs-panel)}\n"
      ".fs-figure .fs-rule{fill:none;stroke:var(--fs-rule);stroke-width:1.5}\n"
      ".fs-figure .fs-grid{fill:none;stroke:var(--fs-rule);stroke-width:0.75}\n"
      ".fs-figure .fs-ink-line{fill:none;stroke:var(--fs-ink);stroke-width:2}\n"
      ".fs-figure .fs-muted-line{fill:none;stroke:var(--fs-muted);stroke-width:1.5}\n"
      ".fs-figure .fs-ink-area{fill:var(--fs-ink)}\n"
      ".fs-figure .fs-muted-area{fill:var(--fs-muted)}\n"
      ".fs-figure .fs-empty{fill:var(--fs-paper);stroke:var(--fs-muted);stroke-width:1.5}\n"
      ".fs-figure .fs-dash{stroke-dasharray:7 5}\n"
      ".fs-figure .fs-dot{stroke-dasharray:2 5;stroke-linecap:round}\n"
      ".fs-figure .fs-thick{stroke-width:3}\n";
  for (const std::string_view h : hues)
    css += fmt::format(
        ".fs-figure .fs-{0}-text{{fill:var(--fs-{0})}}\n"
        ".fs-figure .fs-{0}{{fill:var(--fs-{0})}}\n"
        ".fs-figure .fs-{0}-soft{{fill:var(--fs-{0}-soft);stroke:var(--fs-{0});stroke-width:1.5}}\n"
        ".fs-figure .fs-{0}-line{{fill:none;stroke:var(--fs-{0});stroke-width:2.5}}\n"
        ".fs-figure .fs-{0}-outline{{fill:var(--fs-paper);stroke:var(--fs-{0});stroke-width:1.5}}\n"
        ".fs-figure .fs-{0}-ring{{fill:var(--fs-paper);stroke:var(--fs-{0});stroke-width:2.5}}\n",
        h);
  return css;
}

void check_contrast() {
  struct Pair {
    std::string above, below;
    double least;
  };
  std::vector<Pair> pairs;
  for (const char* ground : {"paper", "panel"}) {
    pairs.push_back({"ink", ground, 7});
    pairs.push_back({"muted", ground, 4.5});
    for (const std::string_view h : hues) pairs.push_back({std::string(h), ground, 4.5});
  }
  for (const std::string_view h : hues) {
    const std::string hue(h);
    pairs.push_back({"ink", hue + "-soft", 7});
    pairs.push_back({"muted", hue + "-soft", 4.5});
    pairs.push_back({hue, hue + "-soft", 4.5});
    pairs.push_back({"paper", hue, 4.5});  // on-solid
  }
  std::string wrong;
  for (const bool dark : {false, true})
    for (const Pair& p : pairs) {
      const double c = contrast(colour(p.above, dark), colour(p.below, dark));
      if (c < p.least) wrong += fmt::format("\n  {} on {} ({}): {:.2f} is less than {}", p.above, p.below, dark ? "dark" : "light", c, p.least);
    }
  if (!wrong.empty()) throw std::logic_error("contrast is too small:" + wrong);
}

}  // namespace flashsteps::figures
