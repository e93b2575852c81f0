#pragma once
// Watching a memory: what is moved, what is born on chip and what dies there, in the order in which it happens.
#include "common/memory/slow.hpp"

namespace flashsteps {

/// What is done to rows of a matrix in slow memory.
enum class Move { load, store, fill, atomic_add };

/// Is told what a Memory does. Nobody need watch: without an observer nothing is called.
class Observer {
 public:
  virtual ~Observer() = default;
  /// Elements were moved. What a load brings is born next.
  /// @param move what was done
  /// @param name the tensor
  /// @param rows its rows
  /// @param elements how many elements these rows have
  /// @param tile the number of the tile that was stored or added; 0 if there is none
  virtual void moved(Move move, Name name, Range rows, Index elements, Index tile) = 0;
  /// Something begins to live on chip.
  /// @param tile its number; the first is 1
  /// @param elements how many it has
  virtual void born(Index tile, Index elements) = 0;
  /// It lives there no more.
  /// @param tile its number
  /// @param elements how many it had
  virtual void died(Index tile, Index elements) = 0;
};

}  // namespace flashsteps
