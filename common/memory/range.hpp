#pragma once
// Rows of a matrix, and how they are cut into tiles.
#include <algorithm>
#include <cstddef>

namespace flashsteps {

/// Sizes, offsets and counts: signed and 64 bits wide, for 2^31 elements are few.
using Index = std::ptrdiff_t;
static_assert(sizeof(Index) == 8, "offsets need 64 bits");

/// The rows [begin, end): a tile of queries or of keys.
struct Range {
  Index begin,                                    ///< the first row
      end;                                        ///< the one behind the last
  Index size() const { return end - begin; }      ///< @return rows in it
};

/// How many tiles of `size` rows cover n rows, the last one ragged: ceil(n / size).
/// @param n     rows, at least 0
/// @param size  rows of a tile, at least 1
/// @return the number of tiles
constexpr Index tile_count(Index n, Index size) { return n / size + (n % size != 0); }

/// The rows 0 .. n-1 cut into tiles of `size`: for (const Range i : tiles(n, size)). The last may be ragged; no rows, no tile.
class tiles {
 public:
  /// @param n     rows, at least 0
  /// @param size  rows of a tile, at least 1
  tiles(Index n, Index size) : n_(n), size_(std::min(size, std::max<Index>(n, 1))) {}

  /// @cond
  struct Iterator {
    Index at, n, size;
    Range operator*() const { return {at, std::min(at + size, n)}; }
    void operator++() { at += size; }
    bool operator!=(const Iterator&) const { return at < n; }
  };
  /// @endcond
  Iterator begin() const { return {0, n_, size_}; }  ///< @return the first tile
  Iterator end() const { return {n_, n_, size_}; }   ///< @return what ends the loop

 private:
  Index n_, size_;
};

}  // namespace flashsteps
