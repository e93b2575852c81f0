#pragma once
// Which tiles a form takes: as given, by default, or by the rule of FlashAttention's Algorithm 1; and whether they fit.
#include "common/runner/options.hpp"
#include "common/runner/problem.hpp"

namespace flashsteps {

/// @{
/// Default tiles and on-chip elements: 192 KiB of float.
inline constexpr Index default_tile = 64, default_capacity = 49152;
/// @}

/// @return bytes of the second-level cache of a core; 512 KiB where the system does not say
Index cache_bytes();

/// The default for Br and Bc: the largest of 64, 48, 32, 16 and 8 with which all that is alive on chip at once stays in a core's
/// second-level cache. More than 64 was not faster anywhere (docs/performance.md).
/// @param form   the form
/// @param sizes  one of its pieces
/// @param bytes  of an element
/// @param cache  bytes of the cache
/// @return 64, 48, 32, 16 or 8
Index default_side(const Form& form, HeadSizes sizes, Index bytes, Index cache);

/// Tiles, and what a person should know of them.
struct TileChoice {
  TileShape tiles;   ///< Br and Bc
  Index capacity;    ///< elements that fit on chip
  std::string note;  ///< empty, or why they are smaller than the default
};

/// A form, and the problem without tiles that it is given.
struct Tiled {
  const Form* form;  ///< the form
  HeadSizes sizes;   ///< of one of its pieces
};

/// Chooses Br and Bc for the first of these forms. Defaults that nobody typed shrink to fit it, where nothing was typed to multiples of 16;
/// typed ones must fit all of them.
/// @param forms every form that takes the tiles, the one that they are chosen for first
/// @param options what was typed: --br, --bc, --sram
/// @param paper given only --sram, take B_c = ceil(M / 4d), B_r = min(B_c, d), with (d + dv) / 2 for d and at least 1
/// @param otherwise the capacity where --sram was not typed
/// @return Br, Bc and the capacity
/// @throws BadInput with the largest tiles that would fit all forms
TileChoice choose_tiles(const std::vector<Tiled>& forms, const Options& options, bool paper, Index otherwise = default_capacity);

/// Br and Bc of a form of a step: 1 x 1 if it takes none.
/// @param step,form  the form, and the step that it is one of: all its forms take what was typed
/// @param p          the problem
/// @param options    what was typed
/// @param otherwise  the capacity where --sram was not typed
/// @return Br, Bc and the capacity
/// @throws BadInput with the largest tiles that would fit all forms
template <class T> TileChoice tiles_of(const Step& step, const Form& form, const Problem<T>& p, const Options& options, Index otherwise = default_capacity) {
  if (!form.tiled) return {{1, 1}, 0, ""};
  std::vector<Tiled> tiled{{&form, p.sizes(form.pieces)}};
  for (const Form& other : step.forms)
    if (other.tiled && &other != &form) tiled.push_back({&other, p.sizes(other.pieces)});
  return choose_tiles(tiled, options, step.paper_tiles, otherwise);
}

/// The tiles `wanted` for a form that is only compared with, made smaller if they do not fit. If not even 1 x 1 does, the capacity
/// grows to what that needs, and the note says so.
/// @param form,sizes  the form, and one of its pieces
/// @param wanted      Br and Bc
/// @param capacity    elements that fit on chip
/// @return Br, Bc and the capacity
TileChoice shrink_to_fit(const Form& form, const HeadSizes& sizes, TileShape wanted, Index capacity);

}  // namespace flashsteps
