#pragma once
// A tile: a matrix on chip. It is column-major and its rows are SIMD lanes: a column is a run of whole packets, and a sum over
// columns needs no shuffle.
#include "common/memory/on_chip.hpp"
#include "common/memory/packet.hpp"
#include <Eigen/Core>
#include <memory>
#include <type_traits>
#include <vector>

namespace flashsteps {

/// Lines of a tile of which only a beginning is there: of line x the first count[x] elements. What lies behind takes part in no
/// sum, whatever number stands on the other side of the product. The lines are rows, or columns. No counts: all is there.
struct Present {
  std::vector<Index> count;  ///< a line: how many elements are there; empty if all are
  bool by_columns = false;   ///< lines are columns

  bool all() const { return count.empty(); }  ///< @return is nothing hidden?
  /// @param row,col  an element of a tile with counts
  /// @return is it there?
  bool has(Index row, Index col) const { return by_columns ? row < count[col] : col < count[row]; }
};

/// Packets from one column of a tile to the next. Columns whose length is a multiple of 128 bytes stand a cache line further apart than
/// they are long: an L1 cache puts addresses that are a power of two apart into the same few sets, and the beginnings of all columns,
/// which a product reads one after the other, would push each other out.
/// @param packets  of a column
/// @param cols     how many columns there are
/// @return packets, or more
template <class T> constexpr Index packets_apart(Index packets, Index cols) {
  constexpr Index line = std::max<Index>(1, 64 / sizeof(Packet<T>));
  return lanes<T> > 1 && cols > 1 && packets > 0 && packets % (2 * line) == 0 ? packets + line : packets;
}

/// A matrix on chip [rows x cols]. Its rows are padded to whole packets, and a cache line may lie between two columns; the padding
/// holds numbers that no result depends on and no count includes.
template <class T> class Tile {
 public:
  /// Numbers that nobody has written yet.
  /// @param chip       the fast memory that it takes room in
  /// @param rows,cols  its axes
  /// @throws DoesNotFit if there is no room for rows times cols elements
  Tile(OnChip& chip, Index rows, Index cols)
      : rows_(rows),
        cols_(cols),
        packets_((rows + lanes<T> - 1) / lanes<T>),
        apart_(packets_apart<T>(packets_, cols)),
        claim_(chip, rows * cols, apart_ * cols * Index(sizeof(Packet<T>))),
        data_(static_cast<Packet<T>*>(claim_.data())) {
    if constexpr (lanes<T> == 1) std::uninitialized_default_construct_n(data_, apart_ * cols);
  }
  /// The same number everywhere.
  /// @param chip       the fast memory that it takes room in
  /// @param rows,cols  its axes
  /// @param value      of every element, padding too
  /// @throws DoesNotFit if there is no room for rows times cols elements
  Tile(OnChip& chip, Index rows, Index cols, T value) : Tile(chip, rows, cols) { std::fill_n(data_, apart_ * cols, Packet<T>{} + value); }
  /// A copy, which takes room of its own.
  /// @param x  what is copied
  /// @throws DoesNotFit if there is no room for it
  Tile(const Tile& x) : Tile(x.chip(), x.rows_, x.cols_) {
    std::copy_n(x.data_, apart_ * cols_, data_);
    present = x.present;
  }
  /// Takes over the tile and its room.
  Tile(Tile&&) = default;
  /// Takes over the tile and its room. @return *this
  Tile& operator=(Tile&&) = default;

  Index rows() const { return rows_; }                ///< @return rows, without the padding
  Index cols() const { return cols_; }                ///< @return columns
  Index packets() const { return packets_; }      ///< @return packets in a column, the padding's too
  Index apart() const { return apart_; }          ///< @return packets from one column to the next, at least packets()
  OnChip& chip() const { return claim_.chip(); }  ///< @return the fast memory that it lives in
  Index id() const { return claim_.id(); }        ///< @return the number of its claim
  /// @{
  /// A column as packets.
  /// @param j  its number
  /// @return the first of packets() packets
  Packet<T>* column(Index j = 0) { return data_ + j * apart_; }
  const Packet<T>* column(Index j = 0) const { return data_ + j * apart_; }
  /// @}
  /// @{
  /// @return the first element; columns are apart() * lanes<T> apart
  T* data() { return reinterpret_cast<T*>(data_); }
  const T* data() const { return reinterpret_cast<const T*>(data_); }
  /// @}
  /// @{
  /// An element.
  /// @param i,j  its row and column
  /// @return it
  T& operator()(Index i, Index j = 0) { return reinterpret_cast<T*>(column(j))[i]; }
  const T& operator()(Index i, Index j = 0) const { return reinterpret_cast<const T*>(column(j))[i]; }
  /// @}

  /// @{
  /// The tile as an Eigen array, padding included.
  /// @return [packets() * lanes<T> x cols]
  auto array() { return Eigen::Map<Eigen::Array<T, -1, -1>, alignment, Eigen::OuterStride<>>(reinterpret_cast<T*>(data_), packets_ * lanes<T>, cols_, apart_ * lanes<T>); }
  auto array() const { return Eigen::Map<const Eigen::Array<T, -1, -1>, alignment, Eigen::OuterStride<>>(reinterpret_cast<const T*>(data_), packets_ * lanes<T>, cols_, apart_ * lanes<T>); }
  /// @}
  /// @{
  /// The tile as an Eigen array without the padding.
  /// @return [rows x cols]
  auto bare() { return array().topRows(rows_); }
  auto bare() const { return array().topRows(rows_); }
  /// @}

  /// Which of its elements are there.
  Present present;

 private:
  static_assert(std::is_trivially_destructible_v<T>);
  static constexpr int alignment = lanes<T> == 1 ? 0 : simd_bytes;
  Index rows_, cols_, packets_, apart_;
  Claim claim_;
  Packet<T>* data_;
};

/// A matrix that is read where it lies, element by element: the right-hand side of a product.
template <class T> struct View {
  const T* data;                     ///< element (0, 0)
  Index rows,                        ///< rows
      cols,                          ///< columns
      row_stride,                    ///< elements from one row to the next
      col_stride;                    ///< elements from one column to the next
  const Present* present = nullptr;  ///< which elements are there; nullptr if all are

  /// An element.
  /// @param i,j  its row and column
  /// @return it
  const T& operator()(Index i, Index j = 0) const { return data[i * row_stride + j * col_stride]; }
};
/// A view of slow memory that is on chip for as long as it lives.
template <class T> struct Loaded : View<T> { Claim claim; /**< its room on chip */ };

/// X^T
/// @param x  [rows x cols]
/// @return X^T, [cols x rows], of the same numbers
template <class T> View<T> transpose(const View<T>& x) { return {x.data, x.cols, x.rows, x.col_stride, x.row_stride, x.present}; }
/// A tile, read element by element.
/// @param x  [rows x cols]; lives longer than the view
/// @return the view of it
template <class T> View<T> view(const Tile<T>& x) { return {x.data(), x.rows(), x.cols(), 1, x.apart() * lanes<T>, x.present.all() ? nullptr : &x.present}; }

/// A row-major matrix of Eigen.
template <class T> using Plain = Eigen::Matrix<std::remove_const_t<T>, -1, -1, Eigen::RowMajor>;
/// A matrix in slow memory as Eigen sees it.
template <class T> using SlowMap = Eigen::Map<std::conditional_t<std::is_const_v<T>, const Plain<T>, Plain<T>>, 0, Eigen::OuterStride<>>;

/// to[x][line] = from[line][x]: a copy of lines in which they lie side by side, a square of packets at a time.
/// @param from,from_apart  the first line, and elements from one line to the next
/// @param lines,length     how many lines there are, and elements of one
/// @param to,to_apart      where element 0 of all lines goes, and elements from there to element 1
template <class T> [[gnu::noinline]] void copy_transposed(const T* from, Index from_apart, Index lines, Index length, T* to, Index to_apart) {
  constexpr int side = lanes<T>;
  Index line = 0;
  const auto one_by_one = [&](Index x, Index end) {
    for (; x < length; ++x)
      for (Index l = line; l < end; ++l) to[x * to_apart + l] = from[l * from_apart + x];
  };
  if constexpr (side > 1)
    for (; line + side <= lines; line += side) {
      Index x = 0;
      for (; x + side <= length; x += side) {
        using Square = Eigen::Matrix<T, side, side>;
        Square square = Eigen::Map<const Square, 0, Eigen::OuterStride<>>(from + line * from_apart + x, Eigen::OuterStride<>(from_apart));
        square.transposeInPlace();
        Eigen::Map<Square, 0, Eigen::OuterStride<>>(to + x * to_apart + line, Eigen::OuterStride<>(to_apart)) = square;
      }
      one_by_one(x, line + side);
    }
  one_by_one(0, lines);
}
/// tile = x, lanes along the rows of x; the padding becomes 0
/// @param tile,x  [rows x cols]
template <class T, class X> void gather(Tile<T>& tile, const X& x) {
  if constexpr (X::IsRowMajor) copy_transposed<T>(x.data(), x.outerStride(), tile.rows(), tile.cols(), tile.data(), tile.apart() * lanes<T>);
  else tile.bare() = x.array();
  tile.array().bottomRows(tile.array().rows() - tile.rows()).setZero();
}

}  // namespace flashsteps
