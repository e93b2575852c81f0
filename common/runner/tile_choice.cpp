#include "common/runner/tile_choice.hpp"

#include <fmt/format.h>

namespace flashsteps {
namespace {

Index footprint(const Form& form, HeadSizes sizes, TileShape tiles) {
  sizes.br = tiles.br, sizes.bc = tiles.bc;
  return form.on_chip(sizes);
}

/// The largest n in 1 .. most for which fits(n), 0 if there is none. fits is true up to some n and false from there on.
template <class Fits> Index largest(Index most, Fits fits) {
  Index low = 0, high = most;
  while (low < high) {
    const Index middle = low + (high - low + 1) / 2;
    if (fits(middle)) low = middle;
    else high = middle - 1;
  }
  return low;
}

}  // namespace

TileShape shrink_to_fit(const Form& form, HeadSizes sizes, TileShape wanted, Index capacity) {
  const auto fits = [&](TileShape tiles) { return footprint(form, sizes, tiles) <= capacity; };
  if (fits(wanted)) return wanted;
  const Index side = largest(std::max(wanted.br, wanted.bc), [&](Index n) { return fits({std::min(n, wanted.br), std::min(n, wanted.bc)}); });
  if (side == 0)
    throw BadInput(fmt::format("{}: tiles of 1 x 1 need {} elements on chip, --sram is {}", form.home, footprint(form, sizes, {1, 1}), capacity));
  return {std::min(side, wanted.br), std::min(side, wanted.bc)};
}

TileChoice choose_tiles(const Form& form, const HeadSizes& sizes, const Options& options, bool paper) {
  const Index capacity = options.sram.value_or(default_capacity);
  const auto fits = [&](TileShape tiles) { return footprint(form, sizes, tiles) <= capacity; };
  TileShape wanted{options.br.value_or(default_tile), options.bc.value_or(default_tile)};
  if (paper && options.sram && !options.br && !options.bc) {
    // With d' = (d + dv) / 2: ceil(M / 4d') = ceil(M / 2(d + dv)), and B_r at most d'
    const Index twice = std::max<Index>(1, sizes.d + sizes.dv);
    wanted.bc = std::max<Index>(1, tile_count(capacity, 2 * twice));
    wanted.br = std::max<Index>(1, std::min(wanted.bc, twice / 2));
  }
  if (fits(wanted)) return {wanted, capacity, ""};

  const std::string does_not_fit =
      fmt::format("{}: tiles of {} x {} need {} elements on chip, {} {}", form.name, wanted.br, wanted.bc, footprint(form, sizes, wanted),
                  options.sram ? "--sram is" : "there are", capacity);
  const Index br = largest(wanted.br, [&](Index n) { return fits({n, wanted.bc}); });
  const Index bc = largest(wanted.bc, [&](Index n) { return fits({wanted.br, n}); });
  const Index side = largest(std::max(wanted.br, wanted.bc), [&](Index n) { return fits({std::min(n, wanted.br), std::min(n, wanted.bc)}); });
  if (side == 0) throw BadInput(fmt::format("{}; not even 1 x 1 fits, which needs {}", does_not_fit, footprint(form, sizes, {1, 1})));

  TileShape taken{std::min(side, wanted.br), std::min(side, wanted.bc)};
  if (options.br && options.bc) {
    if (br > 0) throw BadInput(fmt::format("{}; the largest --br for --bc {} is {}", does_not_fit, wanted.bc, br));
    if (bc > 0) throw BadInput(fmt::format("{}; the largest --bc for --br {} is {}", does_not_fit, wanted.br, bc));
    throw BadInput(fmt::format("{}; the largest that fit are {} x {}", does_not_fit, taken.br, taken.bc));
  }
  if (options.br) {
    if (bc == 0)
      throw BadInput(fmt::format("{}; the largest --br is {}, with --bc 1", does_not_fit, largest(wanted.br, [&](Index n) { return fits({n, 1}); })));
    taken = {wanted.br, bc};
  } else if (options.bc) {
    if (br == 0)
      throw BadInput(fmt::format("{}; the largest --bc is {}, with --br 1", does_not_fit, largest(wanted.bc, [&](Index n) { return fits({1, n}); })));
    taken = {br, wanted.bc};
  } else if (paper && options.sram && br > 0) {
    taken = {br, wanted.bc};   // given B_c, the largest admissible height (4.2)
  }
  return {taken, capacity, fmt::format("{}: taken are {} x {}", does_not_fit, taken.br, taken.bc)};
}

}  // namespace flashsteps
