#pragma once
// Softmax without the maximum, in half precision: what step 01 is there to prevent, counted on real data (math 1.2).
#include "common/attention/definition.hpp"
#include <Eigen/Core>

namespace flashsteps {

/// What becomes of the rows of exp(s) / sum exp(s) when every number is a half, and how far float is from the same fate.
struct UnsafeSoftmax {
  Index rows = 0;                                             ///< how many
  Index nan_rows = 0;                                         ///< a term overflows to infinity: infinity / infinity is NaN
  Index zero_rows = 0;                                        ///< no term does, but their sum: every weight is term / infinity, silently 0
  double headroom = std::numeric_limits<double>::infinity();  ///< the largest float over the largest sum of a row

  /// Both sets of rows together.
  /// @param x  is added
  /// @return *this
  UnsafeSoftmax& operator+=(const UnsafeSoftmax& x) {
    rows += x.rows, nan_rows += x.nan_rows, zero_rows += x.zero_rows;
    headroom = std::min(headroom, x.headroom);
    return *this;
  }
};

/// The rows of one head. Scores and their exponentials are computed in double and rounded to half, each once; the sum is a half too,
/// rounded after every addition, in the order of the keys. The headroom is taken in double, from scores that nobody rounded.
/// @param head  Q and K
/// @return what becomes of its rows
inline UnsafeSoftmax unsafe_softmax_in_half(const RawHead<float>& head) {
  using Eigen::half;
  const half infinite = std::numeric_limits<half>::infinity();
  UnsafeSoftmax result;
  for (Index i = 0; i < head.seq_q; ++i) {
    half sum(0.f);
    bool overflows = false;
    double exact_sum = 0;
    for (Index j = 0; j < head.keys(i); ++j) {
      double s = 0;
      for (Index x = 0; x < head.head_dim; ++x) s += double(head.q(i, x)) * double(head.k(j, x));
      s *= double(head.scale);
      exact_sum += std::exp(s);
      const half term(std::exp(double(half(s))));
      if (!(term < infinite)) overflows = true;
      sum = half(float(sum) + float(term));
    }
    ++result.rows;
    if (overflows) ++result.nan_rows;
    else if (!(sum < infinite)) ++result.zero_rows;
    if (exact_sum > 0) result.headroom = std::min(result.headroom, double(std::numeric_limits<float>::max()) / exact_sum);
  }
  return result;
}

}  // namespace flashsteps
