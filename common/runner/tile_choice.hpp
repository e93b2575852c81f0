#pragma once
// Which tiles a form takes: as given, by default, or by the rule of FlashAttention's Algorithm 1; and whether they fit.
#include "common/runner/options.hpp"
#include "common/runner/problem.hpp"

namespace flashsteps {

/// Default tiles and on-chip elements: 192 KiB of float.
inline constexpr Index default_tile = 64, default_capacity = 49152;

/// Tiles, and what a person should know of them.
struct TileChoice {
  TileShape tiles;
  Index capacity;
  std::string note;      // empty, or why they are smaller than the default
};

/// Chooses Br and Bc for a form. Defaults that nobody typed shrink to fit; typed ones that do not fit are refused.
/// @param sizes the problem, without tiles
/// @param paper given only --sram, take B_c = ceil(M / 4d), B_r = min(B_c, d), with (d + dv) / 2 for d and at least 1
/// @throws BadInput with the largest tiles that would fit
TileChoice choose_tiles(const Form& form, const HeadSizes& sizes, const Options& options, bool paper);

/// The same for a form that is only compared with: the tiles `wanted`, made smaller if they do not fit.
/// @throws BadInput if not even 1 x 1 fits
TileShape shrink_to_fit(const Form& form, HeadSizes sizes, TileShape wanted, Index capacity);

}  // namespace flashsteps
