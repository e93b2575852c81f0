#pragma once
// The loops behind the verbs, written once for speed: blocks of packets and columns whose sums stay in registers.
#include "common/memory/tile.hpp"
#include <cassert>
#include <cstdint>

namespace flashsteps {

/// sum += x y: the one operation that a matrix product consists of. A number type that counts may overload it.
/// @param sum,x  packets
/// @param y      a number, the factor of every lane
template <class T> [[gnu::always_inline]] inline void add_term(Packet<T>& sum, const Packet<T>& x, const T& y) {
  sum = multiply_add<T>(x, broadcast<T>(y), sum);
}

/// The same for single numbers, with the same bits.
/// @param sum,x,y  numbers
template <class T> inline void add_number(T& sum, const T& x, const T& y) {
  if constexpr (lanes<T> > 1) sum = multiply_add_number(x, y, sum);
  else add_term(sum, x, y);
}

/// Calls body<P>(p) for P packets at a time from packet p on: 4 (or `most`), then 2, then 1 for what is left.
/// @tparam most    4 or 2
/// @tparam Body    `void operator()<int P>(Index p)`
/// @param packets  how many there are
/// @param body     is called for each run of them
template <class T, int most = 4, class Body> [[gnu::always_inline]] inline void for_packets(Index packets, Body body) {
  Index p = 0;
  if constexpr (lanes<T> > 1) {
    if constexpr (most == 4)
      for (; p + 4 <= packets; p += 4) body.template operator()<4>(p);
    for (; p + 2 <= packets; p += 2) body.template operator()<2>(p);
  }
  for (; p < packets; ++p) body.template operator()<1>(p);
}

/// Asks for one of several shares of some memory: the tile behind this one is likely the next to be loaded.
/// @param data    of this tile
/// @param first   the first number, counted from there; an address that is not there is not an error
/// @param length  numbers
/// @param share   which share
/// @param shares  how many there are
template <class T> [[gnu::always_inline]] inline void fetch_share(const T* data, Index first, Index length, Index share, Index shares) {
  constexpr Index line = 64 / sizeof(T);
  const std::uintptr_t begin = reinterpret_cast<std::uintptr_t>(data) + first * sizeof(T);
  for (Index n = share * line; n < length; n += shares * line) __builtin_prefetch(reinterpret_cast<const void*>(begin + n * sizeof(T)), 0, 2);
}

/// update(c, sum, p) for P packets, from p on, of W columns at a time, from j on, and the sums of A B that belong there.
/// Each sum starts from zero and lives in a register.
/// @tparam P,W     packets of rows and columns at a time
/// @tparam across  does a row of B lie in one piece (V)? Else a column does (K^T)
/// @tparam Update  `void(Packet<T>& c, const Packet<T>& sum, Index p)`
/// @param a,b,c    [m x n], [n x q] and [m x q]
/// @param update   is called for each packet of C
/// @param p,j,end  the first packet of rows, the first column, and the end of the columns
/// @return the first column that is left over: fewer than W are before the end
template <int P, int W, bool across, class T, class Update> [[gnu::noinline]] Index columns(const Tile<T>& a, View<T> b, Tile<T>& c, Update update, Index p, Index j, Index end) {
  const Index terms = a.cols(), a_stride = a.apart(), c_stride = c.apart();  // copies, for a store through a packet may alias everything
  for (; j + W <= end; j += W) {
    Packet<T> sum[W][P];
#pragma GCC unroll 16
    for (int w = 0; w < W; ++w)
#pragma GCC unroll 16
      for (int r = 0; r < P; ++r) sum[w][r] = Packet<T>{};
    if constexpr (lanes<T> > 1) fetch_share(b.data, b.rows * b.cols + j * terms, W * terms, p / P, c.packets() / P);
    const Packet<T>* x = a.column() + p;
    const T *row = b.data + j * b.col_stride, *column[W];
#pragma GCC unroll 16
    for (int w = 0; w < W; ++w) column[w] = row + w * b.col_stride;
    const auto add = [&](Index k) {
#pragma GCC unroll 16
      for (int w = 0; w < W; ++w)
#pragma GCC unroll 16
        for (int r = 0; r < P; ++r) add_term(sum[w][r], x[r], across ? row[w] : column[w][k]);
      x += a_stride;
      row += b.row_stride;
    };
    // Four terms at a time. Where something else runs on the same core, the time is that of all instructions, not of the multiplications alone
    Index k = 0;
    if constexpr (lanes<T> > 1)
      for (; k + 4 <= terms; k += 4)
#pragma GCC unroll 4
        for (int u = 0; u < 4; ++u) add(k + u);
#pragma GCC unroll 1
    for (; k < terms; ++k) add(k);
    Packet<T>* out = c.column(j) + p;
#pragma GCC unroll 16
    for (int w = 0; w < W; ++w, out += c_stride)
#pragma GCC unroll 16
      for (int r = 0; r < P; ++r) update(out[r], sum[w][r], p + r);
  }
  return j;
}

/// Is every number finite? A finite number times 0 is 0, any other NaN.
/// @param data    the first number
/// @param lines   runs of numbers
/// @param length  numbers of a line
/// @param stride  numbers from one line to the next
/// @return is it so?
template <class T> [[gnu::noinline]] bool all_finite(const T* data, Index lines, Index length, Index stride) {
  LoosePacket<T> sum[4] = {LoosePacket<T>{}, LoosePacket<T>{}, LoosePacket<T>{}, LoosePacket<T>{}};
  T rest(0);
  for (Index line = 0; line < lines; ++line, data += stride) {
    const LoosePacket<T>* x = reinterpret_cast<const LoosePacket<T>*>(data);
    Index n = length / lanes<T>, p = 0;
    for (; p + 4 <= n; p += 4)
#pragma GCC unroll 4
      for (int r = 0; r < 4; ++r) sum[r] += x[p + r] * T(0);
    for (; p < n; ++p) sum[0] += x[p] * T(0);
    for (Index i = n * lanes<T>; i < length; ++i) rest += data[i] * T(0);
  }
  const LoosePacket<T> all = (sum[0] + sum[1]) + (sum[2] + sum[3]);
  if constexpr (lanes<T> > 1)
    for (int i = 0; i < lanes<T>; ++i) rest += all[i];
  else rest += all;
  return rest == T(0);
}
/// The same of a view.
/// @param x  any shape
/// @return is it so?
template <class T> bool all_finite(const View<T>& x) {
  return x.col_stride == 1 ? all_finite(x.data, x.rows, x.cols, x.row_stride) : all_finite(x.data, x.cols, x.rows, x.col_stride);
}

/// The product over what is there (E2), term by term in the same order: for tiles in which NaN or infinity stands beside what is masked.
/// @param a,b,c   [m x n], [n x q] and [m x q]
/// @param update  `void(Packet<T>& c, const Packet<T>& sum, Index p)`: is called for each packet of C
template <class T, class Update> [[gnu::noinline]] void product_over_present(const Tile<T>& a, const View<T>& b, Tile<T>& c, Update update) {
  std::vector<T> column(c.packets() * lanes<T>);
  for (Index j = 0; j < b.cols; ++j) {
    for (Index i = 0; i < c.rows(); ++i) {
      T sum(0);
      for (Index k = 0; k < b.rows; ++k)
        if ((a.present.all() || a.present.has(i, k)) && (!b.present || b.present->has(k, j))) add_number(sum, a(i, k), b(k, j));
      column[i] = sum;
    }
    for (Index p = 0; p < c.packets(); ++p) {
      const Packet<T> sum = reinterpret_cast<const LoosePacket<T>*>(column.data())[p];  // a copy: a reference would claim that it is aligned
      update(c.column(j)[p], sum, p);
    }
  }
}

/// update(c, sum, p) for every packet of C and the sums of A B that belong there.
/// @param a,b,c   [m x n], [n x q] and [m x q]; the rows of B or its columns lie in one piece
/// @param update  `void(Packet<T>& c, const Packet<T>& sum, Index p)`: is called for each packet of C
template <class T, class Update> void product(const Tile<T>& a, const View<T>& b, Tile<T>& c, Update update) {
  assert(b.row_stride == 1 || b.col_stride == 1);
  if (!a.present.all() && !all_finite(b)) return product_over_present(a, b, c, update);
  if (b.present && !all_finite(view(a))) return product_over_present(a, b, c, update);
  const auto strips = [&]<bool across>() {
    for_packets<T, simd_registers == 32 ? 4 : 2>(c.packets(), [&]<int P>(Index p) {
      Index j = 0;
      if constexpr (lanes<T> > 1) {
        // 8 are left as 4 and 4: the sums of two columns are too few to hide how long an addition takes
        j = columns<P, 6, across>(a, b, c, update, p, j, b.cols % 6 == 2 && b.cols >= 8 ? b.cols - 8 : b.cols);
        j = columns<P, 4, across>(a, b, c, update, p, j, b.cols);
        j = columns<P, 2, across>(a, b, c, update, p, j, b.cols);
      }
      columns<P, 1, across>(a, b, c, update, p, j, b.cols);
    });
  };
  b.col_stride == 1 ? strips.template operator()<true>() : strips.template operator()<false>();
}

/// c = f(c, packet, column) for every packet of a tile
/// @param c  any shape
/// @param f  `Packet<T>(const Packet<T>& c, Index packet, Index column)`
template <class T, class F> [[gnu::always_inline]] inline void each(Tile<T>& c, F f) {
  for (Index j = 0; j < c.cols(); ++j)
    for (Index p = 0; p < c.packets(); ++p) c.column(j)[p] = f(c.column(j)[p], p, j);
}

/// store(p, sum) for every packet of rows: the columns summed one after another, so that a row's sum does not depend on how many
/// columns follow. (Eigen's rowwise().sum() groups them by their count.)
/// @param s      any shape
/// @param store  `void(Index p, const Packet<T>& sum)`
template <class T, class Store> [[gnu::always_inline]] inline void sum_columns(const Tile<T>& s, Store store) {
  for_packets<T>(s.packets(), [&]<int P>(Index p) {
    Packet<T> sum[P];
#pragma GCC unroll 4
    for (int r = 0; r < P; ++r) sum[r] = Packet<T>{};
    for (Index j = 0; j < s.cols(); ++j)
#pragma GCC unroll 4
      for (int r = 0; r < P; ++r) sum[r] += s.column(j)[p + r];
#pragma GCC unroll 4
    for (int r = 0; r < P; ++r) store(p + r, sum[r]);
  });
}

/// E6: the shift of a row that has seen no key is 0, so that E(-inf, -inf) = 0.
/// @param m  maxima of rows
/// @return m, with 0 for -inf
template <class T> Packet<T> guarded(const Packet<T>& m) { return m == Packet<T>{} - infinity<T> ? Packet<T>{} : m; }

}  // namespace flashsteps
