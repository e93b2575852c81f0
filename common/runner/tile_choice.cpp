#include "common/runner/tile_choice.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <unistd.h>

namespace flashsteps {
namespace {

constexpr Index whole = 16;  // rows or columns of a tile: one SIMD register of float with AVX-512, two with AVX2

Index footprint(const Form& form, HeadSizes sizes, TileShape tiles) {
  sizes.br = tiles.br, sizes.bc = tiles.bc;
  return form.on_chip(sizes);
}
/// That of the form that needs most.
Index footprint(const std::vector<Tiled>& forms, TileShape tiles) {
  Index most = 0;
  for (const Tiled& x : forms) most = std::max(most, footprint(*x.form, x.sizes, tiles));
  return most;
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

Index cache_bytes() {
  const long bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
  return bytes > 0 ? bytes : 512 << 10;
}

Index default_side(const Form& form, HeadSizes sizes, Index bytes, Index cache) {
  Index side = default_tile;
  while (side > 8 && footprint(form, sizes, {side, side}) * bytes > cache) side -= side > whole ? whole : whole / 2;
  return side;
}

TileChoice shrink_to_fit(const Form& form, const HeadSizes& sizes, TileShape wanted, Index capacity) {
  const auto fits = [&](TileShape tiles) { return footprint(form, sizes, tiles) <= capacity; };
  if (fits(wanted)) return {wanted, capacity, ""};
  const Index side = largest(std::max(wanted.br, wanted.bc), [&](Index n) { return fits({std::min(n, wanted.br), std::min(n, wanted.bc)}); });
  if (side > 0) return {{std::min(side, wanted.br), std::min(side, wanted.bc)}, capacity, ""};
  const Index least = footprint(form, sizes, {1, 1});
  return {{1, 1}, least, fmt::format("{}, which is compared with, needs {} elements on chip for tiles of 1 x 1 and was given them", form.home, least)};
}

TileChoice choose_tiles(const std::vector<Tiled>& forms, const Options& options, bool paper, Index otherwise) {
  const auto& [form, sizes] = forms.front();
  const Index capacity = options.sram.value_or(otherwise);
  const auto fits = [&](TileShape tiles) { return footprint(*form, sizes, tiles) <= capacity; };
  const auto all_fit = [&](TileShape tiles) { return footprint(forms, tiles) <= capacity; };
  const Index usual = default_side(*form, sizes, options.dtype == Dtype::float64 ? 8 : 4, cache_bytes());
  TileShape wanted{options.br.value_or(usual), options.bc.value_or(usual)};
  if (paper && options.sram && !options.br && !options.bc) {
    // With d' = (d + dv) / 2: ceil(M / 4d') = ceil(M / 2(d + dv)), and B_r at most d'
    const Index twice = std::max<Index>(1, sizes.d + sizes.dv);
    wanted.bc = std::max<Index>(1, tile_count(capacity, 2 * twice));
    wanted.br = std::max<Index>(1, std::min(wanted.bc, twice / 2));
  }
  if (fits(wanted)) return {wanted, capacity, ""};

  const std::string does_not_fit =
      fmt::format("{}: tiles of {} x {} need {} elements on chip, {} {}", form->name, wanted.br, wanted.bc, footprint(*form, sizes, wanted),
                  options.sram ? "--sram is" : "there are", capacity);
  if (!all_fit({1, 1})) throw BadInput(fmt::format("{}; not even 1 x 1 fits, which needs {}", does_not_fit, footprint(forms, {1, 1})));

  if (options.br && options.bc) {
    const Index br = largest(wanted.br, [&](Index n) { return all_fit({n, wanted.bc}); });
    if (br > 0) throw BadInput(fmt::format("{}; the largest --br for --bc {} is {}", does_not_fit, wanted.bc, br));
    const Index bc = largest(wanted.bc, [&](Index n) { return all_fit({wanted.br, n}); });
    if (bc > 0) throw BadInput(fmt::format("{}; the largest --bc for --br {} is {}", does_not_fit, wanted.br, bc));
    const Index side = largest(std::max(wanted.br, wanted.bc), [&](Index n) { return all_fit({std::min(n, wanted.br), std::min(n, wanted.bc)}); });
    throw BadInput(fmt::format("{}; the largest that fit are {} x {}", does_not_fit, std::min(side, wanted.br), std::min(side, wanted.bc)));
  }
  TileShape taken = wanted;
  const Index br = largest(wanted.br, [&](Index n) { return fits({n, wanted.bc}); });
  if (options.br) {
    taken.bc = largest(wanted.bc, [&](Index n) { return fits({wanted.br, n}); });
    if (taken.bc == 0)
      throw BadInput(fmt::format("{}; the largest --br is {}, with --bc 1", does_not_fit, largest(wanted.br, [&](Index n) { return all_fit({n, 1}); })));
  } else if (options.bc) {
    taken.br = br;
    if (br == 0)
      throw BadInput(fmt::format("{}; the largest --bc is {}, with --br 1", does_not_fit, largest(wanted.bc, [&](Index n) { return all_fit({1, n}); })));
  } else if (paper && options.sram && br > 0) {
    taken.br = br;             // given B_c, the largest admissible height (4.2)
  } else {
    const Index side = largest(std::max(wanted.br, wanted.bc), [&](Index n) { return fits({std::min(n, wanted.br), std::min(n, wanted.bc)}); });
    taken = {std::min(side, wanted.br), std::min(side, wanted.bc)};
    // Nobody asked for anything: whole SIMD registers are faster than the largest square. First Bc, then the highest Br beside it
    if (!options.sram && side > whole) {
      taken.bc = std::min(side / whole * whole, wanted.bc);
      taken.br = whole * largest(std::max<Index>(1, wanted.br / whole), [&](Index n) { return fits({n * whole, taken.bc}); });
    }
  }
  return {taken, capacity, fmt::format("{}: taken are {} x {}", does_not_fit, taken.br, taken.bc)};
}

}  // namespace flashsteps
