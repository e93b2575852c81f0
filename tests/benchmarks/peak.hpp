#pragma once
// How many multiply-adds a core can do: a loop that touches registers alone.

namespace flashsteps::bench {

/// Billions of floating-point operations a second, a multiply-add being two, of `threads` threads together: the sum of what each does in
/// its own time on a core, so that other programs on the machine change little. The best of several tries.
/// That the loop was not optimised away is seen from its result, which is a limit that only many rounds reach, and from twice the rounds
/// taking longer.
/// @tparam T       float or double
/// @param threads  at least 1
/// @return GF/s
/// @throws std::runtime_error if the loop was not run as it is written
template <class T> double peak(int threads);

}  // namespace flashsteps::bench
