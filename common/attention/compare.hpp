#pragma once
// Comparison, and the error budget that says what "equal" means (budget.hpp).
#include "common/memory/range.hpp"
#include <cmath>
#include <limits>
#include <vector>

namespace flashsteps {

/// What two tensors may differ in besides rounding: nothing, or NaN for infinity where both come from values that are not finite (E5).
enum class Spoiled {
  same,   ///< nothing
  either  ///< any value that is not finite is as good as any other
};

/// |a - b| where both are finite; 0 where both are the same infinity or both NaN; NaN where one is spoiled and the other is not.
/// @param a,b      two numbers
/// @param spoiled  what counts as the same
/// @return the distance, at least 0, or NaN
template <class R> R distance(const R& a, const R& b, Spoiled spoiled = Spoiled::same) {
  using std::abs;
  const auto finite = [](const R& x) { return x - x == R(0); };
  if (finite(a) && finite(b)) return abs(R(a - b));
  const bool equal = spoiled == Spoiled::either ? !finite(a) && !finite(b) : a == b || (a != a && b != b);
  return equal ? R(0) : std::numeric_limits<R>::quiet_NaN();
}

/// The larger of two errors, where NaN is the largest of all.
/// @param a,b  errors, at least 0, or NaN
/// @return one of them
template <class R> R worse(const R& a, const R& b) { return a != a || a >= b ? a : b; }

/// max|a - b|; NaN if the sizes differ or a value is spoiled in one and not in the other. Both are taken in the wider type R.
/// @param a,b      tensors with one order of elements
/// @param spoiled  what counts as the same
/// @return the distance, at least 0, or NaN
template <class R, class A, class B> R largest_distance(const std::vector<A>& a, const std::vector<B>& b, Spoiled spoiled = Spoiled::same) {
  if (a.size() != b.size()) return std::numeric_limits<R>::quiet_NaN();
  R worst(0);
  for (std::size_t i = 0; i < a.size(); ++i) worst = worse(distance(R(a[i]), R(b[i]), spoiled), worst);
  return worst;
}

/// An error beside what it may be.
struct Comparison {
  double max_error = 0,                                                       ///< max|x - ref|, or NaN
      budget = 0;                                                             ///< what it may be
  bool equal() const { return max_error <= budget; }                        ///< @return is it inside? Never ask max_error > budget: NaN must fail
  double share() const { return max_error == 0 ? 0 : max_error / budget; }  ///< @return the part of the budget that is used up, 0 for no error
};

}  // namespace flashsteps
