#pragma once
// Matrices in slow memory (HBM). Only a Memory reads or writes them, so traffic that is not counted does not compile.
#include "common/memory/range.hpp"
#include <limits>
#include <type_traits>
#include <vector>

namespace flashsteps {

/// Which tensor a matrix belongs to: its traffic is counted under this number. Who uses the memory says what the numbers mean.
enum class Name : int {};
inline constexpr int name_count = 20;  ///< how many there are

template <class T> struct Transposed;

/// A matrix in slow memory [rows x cols]; rows may stand apart by more than their length. x[i] names its rows i.
template <class T> class Slow {
 public:
  /// No rows.
  Slow() : Slow(Name{}, nullptr, 0, 0) {}
  /// @param name       the tensor that its traffic is counted under
  /// @param data       the first element
  /// @param rows,cols  its axes
  /// @param stride     elements from one row to the next
  /// @param first      the row of the whole tensor that row 0 is
  Slow(Name name, T* data, Index rows, Index cols, Index stride, Index first = 0)
      : name_(name), data_(data), rows_(rows), cols_(cols), stride_(stride), first_(first) {}
  /// The same, with the rows side by side.
  /// @param name       the tensor that its traffic is counted under
  /// @param data       the first element
  /// @param rows,cols  its axes
  Slow(Name name, T* data, Index rows, Index cols) : Slow(name, data, rows, cols, cols) {}
  /// @return the same matrix, to be read only
  operator Slow<const T>() const
    requires(!std::is_const_v<T>)
  {
    return {name_, data_, rows_, cols_, stride_, first_};
  }

  Index rows() const { return rows_; }          ///< @return rows
  Index cols() const { return cols_; }          ///< @return elements of a row
  Index size() const { return rows_ * cols_; }  ///< @return elements, rows times cols
  /// @param i  rows, inside [0, rows)
  /// @return those rows, [i.size() x cols]
  Slow operator[](Range i) const { return {name_, data_ + i.begin * stride_, i.size(), cols_, stride_, first_ + i.begin}; }

 private:
  friend class Memory;
  Name name_;
  T* data_;
  Index rows_, cols_, stride_;
  Index first_;             // row 0 here, counted in the whole tensor
};

/// X^T, where X stays as it lies.
template <class T> struct Transposed { Slow<T> of; /**< X */ };
/// @param x  [rows x cols]
/// @return X^T, [cols x rows]
template <class T> Transposed<T> transpose(const Slow<T>& x) { return {x}; }

/// What a Workspace owns.
template <class T> struct Storage { std::vector<T> numbers; /**< row by row */ };
/// A matrix that a step keeps in slow memory for itself, born as NaN: what is read before it is written shows.
template <class T> struct Workspace : private Storage<T>, Slow<T> {
  /// @param name       the tensor that its traffic is counted under
  /// @param rows,cols  its axes
  Workspace(Name name, Index rows, Index cols = 1)
      : Storage<T>{std::vector<T>(rows * cols, std::numeric_limits<T>::quiet_NaN())}, Slow<T>(name, this->numbers.data(), rows, cols) {}
  Workspace(const Workspace&) = delete;
};

}  // namespace flashsteps
