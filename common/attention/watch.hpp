#pragma once
// Watching one row, or whole tiles: what a step knows after every key or tile. It counts nothing and costs nothing when nobody watches.
#include "common/memory/range.hpp"
#include "common/memory/tile.hpp"
#include <vector>

namespace flashsteps {

/// What is known of a row when `keys` keys have been seen in this sweep: m, l and o as the step holds them.
template <class T> struct Moment {
  int sweep;         ///< which one, from 1 on
  Index keys;        ///< seen in it
  T m,               ///< maximum
      l;             ///< sum
  std::vector<T> o;  ///< [dv]
};

/// Is told what is known of all rows of a tile.
template <class T> class TileObserver {
 public:
  virtual ~TileObserver() = default;
  /// A tile has been visited.
  /// @param i  its rows, the queries
  /// @param j  its columns, the keys
  /// @param m,l,o  of the rows, as the step holds them
  virtual void visited(Range i, Range j, const Tile<T>& m, const Tile<T>& l, const Tile<T>& o) = 0;
};

/// The log of one row, if it is wanted, or of all rows. Called with the rows i of a tile, the keys j, and its m, l and o.
template <class T> class Watch {
 public:
  /// Watches nothing.
  Watch() = default;
  /// @param log  gets a moment after every key or tile
  /// @param row  which row of the head
  Watch(std::vector<Moment<T>>& log, Index row) : log_(&log), row_(row) {}
  /// All rows of a head that is not cut into pieces.
  /// @param tiles  is told
  explicit Watch(TileObserver<T>& tiles) : tiles_(&tiles) {}
  /// The watch of a piece of the head.
  /// @param i  its rows
  /// @return a watch that counts rows from i.begin on, or watches nothing
  Watch rows(Range i) const {
    if (!log_ || row_ < i.begin || row_ >= i.end) return {};
    return {*log_, row_ - i.begin};
  }

  /// A tile of queries: o is [Br x dv].
  /// @param i,j    queries and keys of the tile
  /// @param m,l,o  of the queries
  void operator()(Range i, Range j, const Tile<T>& m, const Tile<T>& l, const Tile<T>& o) const {
    if (tiles_) tiles_->visited(i, j, m, l, o);
    if (log_ && row_ >= i.begin && row_ < i.end) note(1, j.end, m(row_ - i.begin), l(row_ - i.begin), o, row_ - i.begin);
  }
  /// One query: o is [dv x 1].
  /// @param sweep  from 1 on
  /// @param i,j    the query and the key
  /// @param m,l,o  of the query
  void operator()(int sweep, Range i, Range j, const Tile<T>& m, const Tile<T>& l, const Tile<T>& o) const {
    if (log_ && row_ == i.begin) note(sweep, j.end, m(0), l(0), o, -1);
  }

 private:
  std::vector<Moment<T>>* log_ = nullptr;
  TileObserver<T>* tiles_ = nullptr;
  Index row_ = 0;

  [[gnu::noinline]] void note(int sweep, Index keys, T m, T l, const Tile<T>& o, Index row) const {
    Moment<T> moment{sweep, keys, m, l, {}};
    for (Index c = 0; c < (row < 0 ? o.rows() : o.cols()); ++c) moment.o.push_back(row < 0 ? o(c) : o(row, c));
    log_->push_back(std::move(moment));
  }
};

}  // namespace flashsteps
