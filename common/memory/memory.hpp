#pragma once
// The two-level memory: every element that a step reads from slow memory or writes to it goes through here and is counted.
#include "common/memory/slow.hpp"
#include "common/memory/tile.hpp"
#include <array>
#include <chrono>

namespace flashsteps {

/// Elements that moved between slow memory and the chip. An atomic add counts one, and neither as a read nor as a write.
struct Traffic {
  Index reads = 0,  ///< from slow memory
      writes = 0,   ///< to slow memory
      atomics = 0;  ///< added to in slow memory
  /// @param t  is added
  /// @return *this
  Traffic& operator+=(const Traffic& t) {
    reads += t.reads, writes += t.writes, atomics += t.atomics;
    return *this;
  }
  /// @return are all three the same?
  bool operator==(const Traffic&) const = default;
};

/// Traffic by tensor.
struct Counts {
  std::array<Traffic, name_count> of{};  ///< by number of the name
  /// @{
  /// The traffic of one tensor.
  /// @param name  of the tensor
  /// @return its traffic
  Traffic& operator[](Name name) { return of[int(name)]; }
  const Traffic& operator[](Name name) const { return of[int(name)]; }
  /// @}
  /// @param c  is added, tensor by tensor
  /// @return *this
  Counts& operator+=(const Counts& c) {
    for (int n = 0; n < name_count; ++n) of[n] += c.of[n];
    return *this;
  }
  /// @param c  is taken away, tensor by tensor
  /// @return *this
  Counts& operator-=(const Counts& c) {
    for (int n = 0; n < name_count; ++n) of[n].reads -= c.of[n].reads, of[n].writes -= c.of[n].writes, of[n].atomics -= c.of[n].atomics;
    return *this;
  }
  /// @return the traffic of all tensors together
  Traffic total() const {
    Traffic sum;
    for (const Traffic& t : of) sum += t;
    return sum;
  }
  /// @return are they the same, tensor by tensor?
  bool operator==(const Counts&) const = default;
};

/// Stands around a product (rows x terms)(terms x cols) that a library computes. It does nothing; a number type that counts its own
/// operations may specialise it, to count 2 rows terms cols (0.5) instead of what the library happens to do.
template <class T> struct LibraryProduct {
  /// The three sizes of the product, in that order.
  LibraryProduct(Index /*rows*/, Index /*terms*/, Index /*cols*/) {}
};

/// The memory as one thread block sees it: slow memory, and fast memory of `capacity` elements.
class Memory {
 public:
  /// @param capacity  elements that fit on chip at once
  /// @param observer  is told what is moved, born and dies; nullptr if nobody watches
  explicit Memory(Index capacity = std::numeric_limits<Index>::max(), Observer* observer = nullptr) : chip_(capacity, observer) {}
  Memory(const Memory&) = delete;

  /// LOAD x, read where it lies.
  /// @param x  [rows x cols]
  /// @return a view of x, on chip as long as it lives
  /// @throws DoesNotFit if there is no room for it
  template <class T> Loaded<std::remove_const_t<T>> load(const Slow<T>& x) {
    count(Move::load, x);
    return {{x.data_, x.rows(), x.cols(), x.stride_, 1}, {chip_, x.size()}};
  }
  /// LOAD x, copied so that its rows lie in the SIMD lanes.
  /// @param x  [rows x cols]
  /// @return [rows x cols]
  /// @throws DoesNotFit if there is no room for it
  template <class T> Tile<std::remove_const_t<T>> load_lanes(const Slow<T>& x) {
    count(Move::load, x);
    Tile<std::remove_const_t<T>> tile(chip_, x.rows(), x.cols());
    gather(tile, map(x));
    return tile;
  }
  /// LOAD x^T, copied so that the columns of x lie in the SIMD lanes.
  /// @param x  the transpose of [rows x cols]
  /// @return [cols x rows]
  /// @throws DoesNotFit if there is no room for it
  template <class T> Tile<std::remove_const_t<T>> load_lanes(const Transposed<T>& x) {
    count(Move::load, x.of);
    Tile<std::remove_const_t<T>> tile(chip_, x.of.cols(), x.of.rows());
    gather(tile, map(x.of).transpose());
    return tile;
  }
  /// A tile that is born on chip.
  /// @param rows,cols  its axes
  /// @param value      of every element
  /// @return the tile
  /// @throws DoesNotFit if there is no room for it
  template <class T> Tile<T> tile(Index rows, Index cols, T value) { return {chip_, rows, cols, value}; }

  /// @{
  /// STORE x
  /// @param tile,x  of one shape; x may be a transpose
  template <class T> void store(const Tile<T>& tile, const Slow<T>& x) {
    count(Move::store, x, tile.id());
    copy_transposed(tile.data(), tile.apart() * lanes<T>, tile.cols(), tile.rows(), x.data_, x.stride_);
  }
  template <class T> void store(const Tile<T>& tile, const Transposed<T>& x) {
    count(Move::store, x.of, tile.id());
    map(x.of).array() = tile.bare().transpose();
  }
  /// @}
  /// STORE the same number everywhere
  /// @param x      what is written, any shape
  /// @param value  of every element
  template <class T> void fill(const Slow<T>& x, std::type_identity_t<T> value) {
    count(Move::fill, x);
    map(x).array() = value;
  }
  /// ATOMIC x += tile^T
  /// @param tile  [rows x cols]
  /// @param x     the transpose of [cols x rows]
  template <class T> void atomic_add(const Tile<T>& tile, const Transposed<T>& x) {
    count(Move::atomic_add, x.of, tile.id());
    map(x.of).array() += tile.bare().transpose();
  }

  // Matrices in slow memory, multiplied as a library does it: one read an operand, one write of the result (0.4).

  /// C = x A B; A, B or both may be transposed
  /// @param x    a factor
  /// @param a,b  [m x n] and [n x p], in slow memory or transposes of what is
  /// @param c    [m x p]
  template <class T, class A, class B> void multiply(std::type_identity_t<T> x, const A& a, const B& b, const Slow<T>& c) {
    count_product(a, b, c);
    product(x, map(a), map(b), map(c));
  }
  /// The same for weights A: a row of zeros belongs to a query that saw no key (E1), so what it would multiply is not there.
  /// @param x    a factor
  /// @param a,b  weights [m x n], and [n x p]
  /// @param c    [m x p]
  template <class T, class A, class B> void multiply_weights(std::type_identity_t<T> x, const A& a, const B& b, const Slow<T>& c) {
    count_product(a, b, c);
    product(x, map(a), map(b), map(c));
    if (finite(map(c))) return;
    const auto empty = [&a](Index i) { return (rows_of(a).row(i).array() == T(0)).all(); };
    if constexpr (is_transposed<A>) {
      Plain<T> cleaned = map(b);
      for (Index i = 0; i < cleaned.rows(); ++i)
        if (empty(i)) cleaned.row(i).setZero();
      product(x, map(a), cleaned, map(c));
    } else {
      for (Index i = 0; i < c.rows(); ++i)
        if (empty(i)) map(c).row(i).setZero();
    }
  }

  /// Does what was done before the step began: its traffic is not counted, and the seconds that it takes are kept apart.
  /// @tparam Work  void(Memory&)
  /// @param work   is called once, with another memory
  template <class Work> void before(Work work) {
    const auto start = std::chrono::steady_clock::now();
    Memory elsewhere;
    work(elsewhere);
    before_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  /// @return the seconds that before() took
  double seconds_before() const { return before_; }

  /// Adds what another thread block did; the peak is that of the larger one.
  /// @param other  the memory that the other block saw
  void add(const Memory& other) {
    chip_.add(other.chip_);
    counts_ += other.counts_;
    before_ += other.before_;
  }
  /// The same, without what the other block did a second time.
  /// @param other  the memory that the other block saw
  /// @param again  one that saw what was done before, by another block
  void add_less(const Memory& other, const Memory& again) {
    add(other);
    counts_ -= again.counts_;
  }
  Index capacity() const { return chip_.capacity(); }  ///< @return elements that fit on chip at once
  Index peak() const { return chip_.peak(); }          ///< @return the most elements that were there at once
  const Counts& counts() const { return counts_; }     ///< @return what was moved

 private:
  OnChip chip_;
  Counts counts_;
  double before_ = 0;

  template <class X> static constexpr bool is_transposed = requires(const X& x) { x.of; };
  template <class T> static SlowMap<T> map(const Slow<T>& x) { return {x.data_, x.rows(), x.cols(), Eigen::OuterStride<>(x.stride_)}; }
  template <class T> static auto map(const Transposed<T>& x) { return map(x.of).transpose(); }
  template <class T> static SlowMap<T> rows_of(const Slow<T>& x) { return map(x); }
  template <class T> static SlowMap<T> rows_of(const Transposed<T>& x) { return map(x.of); }
  template <class X> static bool finite(const X& x) { return ((x.array() * typename X::Scalar(0)).array() == typename X::Scalar(0)).all(); }

  template <class T> void count(Move move, const Slow<T>& x, Index tile = 0) {
    Traffic& t = counts_[x.name_];
    (move == Move::load ? t.reads : move == Move::atomic_add ? t.atomics : t.writes) += x.size();
    if (Observer* const observer = chip_.observer()) observer->moved(move, x.name_, {x.first_, x.first_ + x.rows()}, x.size(), tile);
  }
  template <class T> void count_read(const Slow<T>& x) { count(Move::load, x); }
  template <class T> void count_read(const Transposed<T>& x) { count_read(x.of); }
  template <class A, class B, class T> void count_product(const A& a, const B& b, const Slow<T>& c) {
    count_read(a);
    count_read(b);
    count(Move::store, c);
  }
  template <class T, class A, class B, class C> static void product(T x, const A& a, const B& b, C&& c) {
    const LibraryProduct<T> here(a.rows(), a.cols(), b.cols());
    if (a.cols() == 0) c.setZero();
    else c.noalias() = x * (a * b);
  }
};

}  // namespace flashsteps
