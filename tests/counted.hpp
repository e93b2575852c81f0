#pragma once
// A number that counts what is done with it (math 0.5): max, add, sub, mul, div, exp and log 1 each, a term of a matrix product 2.
// Comparisons for equality, changes of sign, and moving numbers about cost nothing.
// What the pages write for convenience is no arithmetic and is not counted either: spreading a number over the lanes of a packet
// (Packet{} + x), and asking whether numbers are finite (x * 0 == 0).
#include "common/memory/memory.hpp"
#include "common/runner/step.hpp"
#include <cmath>

namespace flashsteps {

/// What was counted in this thread.
inline thread_local Flops counted;
/// Inside a product that a library computes, its operations are not counted one by one.
inline thread_local bool counting = true;
inline void count_one() { counted.other += counting; }

class Counted {
 public:
  Counted() = default;
  Counted(double x) : x_(x), constant_(true) {}
  Counted(const Counted&) = default;
  // What is stored is a number like any other, even if it was a constant of the page
  Counted& operator=(const Counted& b) {
    x_ = b.x_, constant_ = false;
    return *this;
  }
  explicit operator double() const { return x_; }
  explicit operator int() const { return int(x_); }

  Counted operator-() const { return {-x_, constant_}; }
  Counted& operator+=(const Counted& b) { return done(x_ + b.x_); }
  Counted& operator-=(const Counted& b) { return done(x_ - b.x_); }
  Counted& operator*=(const Counted& b) { return done(x_ * b.x_); }
  Counted& operator/=(const Counted& b) { return done(x_ / b.x_); }

  friend Counted operator+(const Counted& a, const Counted& b) { return a.zero() ? b : result(a.x_ + b.x_); }
  friend Counted operator-(const Counted& a, const Counted& b) { return a.zero() ? -b : result(a.x_ - b.x_); }
  friend Counted operator*(const Counted& a, const Counted& b) { return b.zero() ? Counted{a.x_ * b.x_, false} : result(a.x_ * b.x_); }
  friend Counted operator/(const Counted& a, const Counted& b) { return result(a.x_ / b.x_); }
  friend Counted exp(const Counted& a) { return result(std::exp(a.x_)); }
  friend Counted log(const Counted& a) { return result(std::log(a.x_)); }
  friend Counted abs(const Counted& a) { return {std::abs(a.x_), false}; }
  // A comparison is half of a maximum: std::max asks once
  friend bool operator<(const Counted& a, const Counted& b) { return count_one(), a.x_ < b.x_; }
  friend bool operator>(const Counted& a, const Counted& b) { return count_one(), a.x_ > b.x_; }
  friend bool operator==(const Counted& a, const Counted& b) { return a.x_ == b.x_; }

 private:
  double x_ = 0;
  bool constant_ = true;   // written in the page, as T(0) and Packet<T>{} are

  Counted(double x, bool constant) : x_(x), constant_(constant) {}
  bool zero() const { return constant_ && x_ == 0; }
  static Counted result(double x) { return count_one(), Counted(x, false); }
  Counted& done(double x) { return *this = result(x); }
};

/// sum += x y in a product
inline void add_term(Counted& sum, const Counted& x, const Counted& y) {
  counted.matmul += 2;
  sum = Counted(double(sum) + double(x) * double(y));
}
/// Whether a tile is finite is asked before a product with a mask; it is no part of it.
inline bool all_finite(const View<Counted>& x) {
  bool finite = true;
  for (Index i = 0; i < x.rows; ++i)
    for (Index j = 0; j < x.cols; ++j) finite = finite && std::isfinite(double(x(i, j)));
  return finite;
}

template <> struct LibraryProduct<Counted> {
  LibraryProduct(Index rows, Index terms, Index cols) {
    counted.matmul += 2 * rows * terms * cols;
    counting = false;
  }
  ~LibraryProduct() { counting = true; }
  LibraryProduct(const LibraryProduct&) = delete;
};

}  // namespace flashsteps

template <> struct std::numeric_limits<flashsteps::Counted> : std::numeric_limits<double> {
  using T = flashsteps::Counted;
  static T infinity() { return std::numeric_limits<double>::infinity(); }
  static T quiet_NaN() { return std::numeric_limits<double>::quiet_NaN(); }
  static T epsilon() { return std::numeric_limits<double>::epsilon(); }
  static T max() { return std::numeric_limits<double>::max(); }
  static T min() { return std::numeric_limits<double>::min(); }
  static T lowest() { return std::numeric_limits<double>::lowest(); }
};

template <> struct Eigen::NumTraits<flashsteps::Counted> : Eigen::GenericNumTraits<flashsteps::Counted> {
  using Real = flashsteps::Counted;
  using NonInteger = flashsteps::Counted;
  using Nested = flashsteps::Counted;
  using Literal = flashsteps::Counted;
  enum { IsComplex = 0, IsInteger = 0, IsSigned = 1, RequireInitialization = 1, ReadCost = 1, AddCost = 1, MulCost = 1 };
};
