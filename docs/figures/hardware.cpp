// A tile split over four warps, and thread blocks on the multiprocessors of an A100.
#include <fmt/format.h>

#include "common/runner/report.hpp"
#include "figures.hpp"
#include "steps/all.hpp"

namespace flashsteps::figures {
namespace {

constexpr const char* warp_classes[] = {"blue-soft", "orange-soft", "green-soft", "violet-soft"};
constexpr int warps = 4;

/// Elements through shared memory for one tile [Br x Bc] (5.4): every partial result is written once; a maximum is read by all warps.
struct Shared {
  Index operands, written, read;
};
Shared split_k(Index br, Index bc, Index d, Index dv) { return {warps * br * d + bc * (d + dv), warps * br * (dv + 2), warps * br * (dv + warps + 1)}; }
Shared split_q(Index br, Index bc, Index d, Index dv) { return {br * d + warps * bc * (d + dv), 0, 0}; }

/// A matrix cut into four slices, one a warp, or seen whole by all.
void slices(Figure& f, double x, double y, double w, double h, bool by_rows, const char* label) {
  for (int i = 0; i < warps; ++i) {
    const double sx = by_rows ? x : x + w * i / warps, sy = by_rows ? y + h * i / warps : y, sw = by_rows ? w : w / warps, sh = by_rows ? h / warps : h;
    f.rect(sx, sy, sw, sh, warp_classes[i]);
    f.text(sx + sw / 2, sy + sh / 2 + 5, "small", fmt::format("{}", i), Anchor::middle);
  }
  f.text(x + w / 2, y - 9, "small bold", label, Anchor::middle);
}
void whole(Figure& f, double x, double y, double w, double h, const char* label) {
  f.rect(x, y, w, h, "empty");
  f.text(x + w / 2, y + h / 2 + 5, "small muted", "all", Anchor::middle);
  f.text(x + w / 2, y - 9, "small bold", label, Anchor::middle);
}

void numbers(Figure& f, double x, double y, const Shared& s) {
  const auto row = [&](const char* words, Index n, bool bold) {
    f.text(x, y, bold ? "small bold" : "small", words);
    f.text(x + 278, y, bold ? "small mono bold" : "small mono", n ? with_commas(n) : "0", Anchor::end);
    y += 24;
  };
  row("operands read", s.operands, false);
  row("partial results written", s.written, false);
  row("and read", s.read, false);
  f.line({x, y - 15}, {x + 278, y - 15}, "rule");
  y += 4;
  row("in all", s.operands + s.written + s.read, true);
}

}  // namespace

Figure split_k_split_q() {
  const Index b = 128, d = 64;
  const Shared k = split_k(b, b, d, d), q = split_q(b, b, d, d);
  Figure f(
      "split-k-split-q", "One tile, four warps: split-K and split-Q",
      fmt::format(
          "Left, split-K as in FlashAttention-1: each of {} warps owns a slice of the columns of K transposed and of the rows of V and sees all of Q, so each "
          "has a "
          "partial O of full size; row maxima, row sums and partial O go through shared memory, with two barriers. Right, split-Q as in FlashAttention-2: each "
          "warp owns a slice of the rows of Q and sees all of K and V; its rows of O are its own, nothing is exchanged. For a tile of {} by {} with d = {}, "
          "elements through shared memory: split-K {} of operands and {} of partial results, split-Q {} of operands and none.",
          warps, b, b, d, with_commas(k.operands), with_commas(k.written + k.read), with_commas(q.operands)),
      668);
  const double left = 20, right = 342, top = 128;
  f.line({320, 58}, {320, 628}, "rule");
  f.text(left, 72, "bold", "split-K (04)");
  f.text(right, 72, "bold", "split-Q (05)");
  // Q, K^T -> S
  whole(f, left, top + 62, 56, 92, "Q_I");
  slices(f, left + 72, top, 136, 34, false, "K_Jᵀ");
  slices(f, left + 72, top + 62, 136, 92, false, "S");
  slices(f, left + 224, top + 62, 54, 92, true, "V_J");
  slices(f, right, top + 62, 56, 92, true, "Q_I");
  whole(f, right + 72, top, 136, 34, "K_Jᵀ");
  slices(f, right + 72, top + 62, 136, 92, true, "S");
  whole(f, right + 224, top + 62, 54, 92, "V_J");

  // Partial O, exchange, O
  const double part = 326;
  for (int i = 0; i < warps; ++i) {
    f.rect(left + 72 * i, part, 60, 40, warp_classes[i], 2);
    f.text(left + 72 * i + 30, part + 26, "small", fmt::format("O of {}", i), Anchor::middle);
    f.arrow({left + 72 * i + 30, part + 42}, {left + 72 * i + 30, part + 70}, "ink-line", "ink-area");
  }
  f.text(left, part - 14, "small muted", "partial: max, sum, O of full size");
  f.rect(left, part + 74, 276, 36, "panel", 4);
  f.text(left + 138, part + 97, "small bold", "shared memory, 2 barriers", Anchor::middle);
  f.arrow({left + 138, part + 112}, {left + 138, part + 136}, "ink-line", "ink-area");
  f.rect(left + 108, part + 140, 60, 40, "empty", 2);
  f.text(left + 138, part + 166, "small bold", "O_I", Anchor::middle);
  f.text(right, part - 14, "small muted", "rows of O: each warp's own");
  slices(f, right + 108, part + 30, 60, 110, true, "O_I");
  f.text(right + 138, part + 166, "small muted", "no exchange, no barrier", Anchor::middle);
  numbers(f, left, 548, k);
  numbers(f, right, 548, q);
  f.text(20, 654, "small muted", fmt::format("Elements through shared memory: one tile of {} × {}, d = {}.", b, b, d));
  return f;
}

Figure thread_blocks() {
  const Index batch = 1, heads = 16, n = 8192, br = 128, machines = 108;
  const auto blocks = [&](const Form& form) { return batch * heads * (form.pieces == Pieces::row_tiles ? tile_count(n, br) : 1); };
  const Index one = blocks(step04::step().main()), two = blocks(step05::step().main());
  const Index row_tiles = two / (batch * heads), waves_one = tile_count(one, machines), waves_two = tile_count(two, machines);
  const auto idle = [&](Index count) { return tile_count(count, machines) * machines - count; };  // in the last wave
  const auto share = [&](Index count, Index waves) { return double(count) / double(waves * machines); };
  Figure f(
      "thread-blocks", "Thread blocks on the 108 multiprocessors of an A100",
      fmt::format(
          "Batch {}, {} heads, {} queries in tiles of {} rows. FlashAttention-1 starts one thread block a head: {} blocks, so {} of {} multiprocessors are "
          "idle all "
          "the time, {:.0f} % are used. FlashAttention-2 starts one a row tile: {} blocks in {} waves, {:.0f} % are used; {} multiprocessors run {} blocks, "
          "the other {} run {} and are idle in the last wave.",
          batch, heads, with_commas(n), br, one, machines - one, machines, 100 * share(one, waves_one), with_commas(two), waves_two,
          100 * share(two, waves_two), two - (waves_two - 1) * machines, waves_two, waves_two * machines - two, waves_two - 1),
      592);
  f.text(20, 64, "small muted", fmt::format("Batch {}, {} heads, {} queries, B_r = {}; one block at a time on each.", batch, heads, with_commas(n), br));
  const auto panel = [&](double x, const char* heading, const std::string& rule, Index count, const char* classes, const char* rest) {
    constexpr Index across = 12;
    const double cell = 23;
    const Index waves = tile_count(count, machines);
    f.text(x, 100, "bold", heading);
    f.text(x, 122, "small muted", rule);
    for (Index sm = 0; sm < machines; ++sm) {
      const double left = x + cell * double(sm % across), top = 136 + cell * double(sm / across);
      const Index mine = count / machines + (sm < count % machines);
      if (mine == 0) f.hatched(left + 1, top + 1, cell - 3, cell - 3);
      f.rect(left + 1, top + 1, cell - 3, cell - 3, mine == 0 ? "rule" : mine < tile_count(count, machines) ? rest : classes, 2);
    }
    f.text(x, 368, "small bold", fmt::format("{} wave{}, {:.0f} % used", waves, waves > 1 ? "s" : "", 100 * share(count, waves)));
  };
  panel(20, "04: one block a head", fmt::format("{} × {} = {} blocks", batch, heads, one), one, "orange-soft", "orange-outline");
  panel(344, "05: one block a row tile", fmt::format("{} × {} × {} = {} blocks", batch, heads, row_tiles, with_commas(two)), two, "blue-soft", "blue-outline");
  const auto legend = [&](double x, double y, const char* classes, const std::string& words) {
    if (!*classes) f.hatched(x, y - 16, 20, 20);
    f.rect(x, y - 16, 20, 20, *classes ? classes : "rule", 2);
    f.text(x + 28, y, "small muted", words);
  };
  legend(20, 400, "orange-soft", fmt::format("{} with {} block", machines - idle(one), waves_one));
  legend(20, 426, "", fmt::format("{} idle", idle(one)));
  legend(344, 400, "blue-soft", fmt::format("{} with {} blocks", machines - idle(two), waves_two));
  legend(344, 426, "blue-outline", fmt::format("{} with {}: idle in the last wave", idle(two), waves_two - 1));

  f.text(20, 472, "small bold", "Time, if every row tile takes the same");
  const double unit = 500.0 / double(row_tiles);
  f.rect(70, 486, unit * double(row_tiles * waves_one), 26, "orange-soft", 2);
  f.text(20, 505, "small", "04");
  f.text(82, 505, "small", fmt::format("{} row tiles, one after the other", row_tiles * waves_one));
  f.rect(70, 522, unit * double(waves_two), 26, "blue-soft", 2);
  f.text(20, 541, "small", "05");
  f.text(82 + unit * double(waves_two), 541, "small", fmt::format("{} waves of one row tile", waves_two));
  f.text(20, 576, "small muted", "A model: no overlap, all multiprocessors alike.");
  return f;
}

}  // namespace flashsteps::figures
