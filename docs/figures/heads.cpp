// Which head of K and V a query head reads.
#include <fmt/format.h>

#include "common/runner/report.hpp"
#include "figures.hpp"
#include "steps/all.hpp"

namespace flashsteps::figures {

Figure head_maps() {
  constexpr Index heads = 8, d = 128;
  const Step& step = step08::step();
  const struct {
    const char* name;
    const char* words;
    Index kv_heads;
  } maps[] = {{"MHA", "multi-head: each its own", 8}, {"GQA", "grouped-query: groups of 4", 2}, {"MQA", "multi-query: all share one", 1}};
  Figure f(
      "head-maps", "Which head of K and V a query head reads",
      fmt::format(
          "Three maps from {} query heads to heads of K and V. Multi-head attention: query head h reads head h. Grouped-query attention with 2 heads of K and "
          "V: "
          "query heads 0 to 3 read head 0, 4 to 7 read head 1. Multi-query attention: all read head 0. A token's K and V in half precision take, with d = {}, "
          "{}, {} and {} bytes a layer.",
          heads, d, 2 * maps[0].kv_heads * d * 2, 2 * maps[1].kv_heads * d * 2, 2 * maps[2].kv_heads * d * 2),
      700);
  static const char* const classes[] = {"blue-soft", "orange-soft", "green-soft", "violet-soft"};
  static const char* const lines[] = {"blue-line", "orange-line", "green-line", "violet-line"};
  double y = 76;
  for (const auto& map : maps) {
    const double x = 124, pitch = 62, box = 48, low = y + 100;
    f.text(20, y + 4, "bold", map.name);
    f.text(78, y + 4, "small muted", map.words);
    f.text(20, y + 46, "small", "queries");
    f.text(20, low + 30, "small", "K, V");
    const auto centre = [&](Index kv) {
      Index first = heads, last = 0;
      for (Index h = 0; h < heads; ++h)
        if (step.kv_head(h, heads, map.kv_heads) == kv) first = std::min(first, h), last = std::max(last, h);
      return x + pitch * double(first + last) / 2 + box / 2;
    };
    for (Index h = 0; h < heads; ++h) {
      const Index kv = step.kv_head(h, heads, map.kv_heads);
      f.polyline({{x + pitch * double(h) + box / 2, y + 58}, {centre(kv), low + 8}}, lines[kv % 4]);
      f.rect(x + pitch * double(h), y + 22, box, 36, classes[kv % 4], 3);
      f.text(x + pitch * double(h) + box / 2, y + 46, "small", fmt::format("{}", h), Anchor::middle);
    }
    for (Index kv = 0; kv < map.kv_heads; ++kv) {
      f.rect(centre(kv) - box / 2, low + 6, box, 36, classes[kv % 4], 3);
      f.text(centre(kv), low + 30, "small bold", fmt::format("{}", kv), Anchor::middle);
    }
    f.text(620, y + 4, "small muted", fmt::format("{} bytes a token", with_commas(2 * map.kv_heads * d * 2)), Anchor::end);
    y += 190;
  }
  f.text(20, y + 10, "small muted", fmt::format("K and V of one token and layer in half precision, d = {}.", d));
  f.text(20, y + 32, "small muted", "Heads of a group stand side by side: found by index, not copied.");
  return f;
}

}  // namespace flashsteps::figures
