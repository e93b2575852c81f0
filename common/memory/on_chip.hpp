#pragma once
// The fast memory of one thread block: it counts the elements that live there, and hands out room for tiles.
#include "common/memory/observer.hpp"
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace flashsteps {

/// Thrown when a tile does not fit into fast memory any more.
struct DoesNotFit : std::length_error {
  /// @param needed,capacity  elements
  DoesNotFit(Index needed, Index capacity)
      : std::length_error("on chip: " + std::to_string(needed) + " elements are needed at once, there is room for " + std::to_string(capacity)) {}
};

/// A piece of storage that starts on a cache line.
struct Block {
  /// @cond
  struct Free { void operator()(void* p) const { ::operator delete(p, std::align_val_t(64)); } };
  /// @endcond
  std::unique_ptr<void, Free> data;  ///< where it starts; nullptr if it is empty
  Index bytes = 0;                   ///< how long it is
  /// @param n  bytes, at least 0
  explicit Block(Index n) : data(n > 0 ? ::operator new(n, std::align_val_t(64)) : nullptr), bytes(n) {}
};

/// Fast memory: so many elements and no more.
class OnChip {
 public:
  /// @param capacity  elements
  /// @param observer  is told what is born and dies here; nullptr if nobody watches
  explicit OnChip(Index capacity, Observer* observer = nullptr) : capacity_(capacity), observer_(observer) {}
  Observer* observer() const { return observer_; }  ///< @return who watches, or nullptr
  Index capacity() const { return capacity_; }  ///< @return elements that it has room for
  /// The most elements that ever lived here at once.
  /// @return elements
  Index peak() const { return peak_; }
  /// Takes over the peak of another fast memory, where that is larger.
  /// @param other  of another thread block
  void add(const OnChip& other) { peak_ = std::max(peak_, other.peak_); }

 private:
  friend class Claim;
  Index capacity_, used_ = 0, peak_ = 0, births_ = 0;
  Observer* observer_;
  std::vector<Block> free_;  // kept for the next tile: malloc would give large blocks back to the system every time

  Block take(Index elements, Index bytes) {
    if (used_ + elements > capacity_) throw DoesNotFit(used_ + elements, capacity_);
    peak_ = std::max(peak_, used_ += elements);
    ++births_;
    if (observer_) observer_->born(births_, elements);
    const auto fits = std::find_if(free_.begin(), free_.end(), [&](const Block& b) { return b.bytes == bytes; });
    if (bytes == 0 || fits == free_.end()) return Block(bytes);
    std::swap(*fits, free_.back());
    Block block = std::move(free_.back());
    free_.pop_back();
    return block;
  }
  void give(Index id, Index elements, Block block) {
    used_ -= elements;
    if (observer_) observer_->died(id, elements);
    if (block.bytes > 0) free_.push_back(std::move(block));
  }
};

/// So many elements of it, for as long as the claim lives, and storage for them if they are not read in place.
class Claim {
 public:
  /// @param chip      the fast memory
  /// @param elements  what counts
  /// @param bytes     storage for them, 0 if they are read where they lie
  /// @throws DoesNotFit if there is no room for them
  Claim(OnChip& chip, Index elements, Index bytes = 0) : chip_(&chip), elements_(elements), block_(chip.take(elements, bytes)), id_(chip.births_) {}
  /// Takes over what c claims.
  /// @param c  claims nothing afterwards
  Claim(Claim&& c) noexcept : chip_(std::exchange(c.chip_, nullptr)), elements_(c.elements_), block_(std::move(c.block_)), id_(c.id_) {}
  /// Takes over what c claims.
  /// @param c  gets what was claimed before, and gives it up at its end
  /// @return *this
  Claim& operator=(Claim&& c) noexcept {
    std::swap(chip_, c.chip_);
    std::swap(elements_, c.elements_);
    std::swap(block_, c.block_);
    std::swap(id_, c.id_);
    return *this;
  }
  ~Claim() {
    if (chip_) chip_->give(id_, elements_, std::move(block_));
  }
  OnChip& chip() const { return *chip_; }           ///< @return the fast memory
  void* data() const { return block_.data.get(); }  ///< @return its storage, nullptr if it has none
  /// Claims are numbered in the order of their births, from 1; what is moved keeps its number.
  /// @return its number
  Index id() const { return id_; }

 private:
  OnChip* chip_;
  Index elements_;
  Block block_;
  Index id_;
};

}  // namespace flashsteps
