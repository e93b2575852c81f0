#pragma once
// The parallel loop of every step. What may run in parallel is data: the heads (FlashAttention-1), the row tiles of the heads
// (FlashAttention-2), or the groups of heads that share K and V (backward).
#include "common/memory/memory.hpp"
#include "common/runner/progress.hpp"
#include "common/attention/head.hpp"
#include <algorithm>
#include <exception>
#include <span>
#include <omp.h>
#include <vector>

namespace flashsteps {

/// @return how many threads a parallel loop takes
inline int threads() { return omp_get_max_threads(); }

/// The same work cut finer: rows are independent, so every row tile of every head is a piece of its own. The last rows come first: under a
/// causal mask they see most keys, and what is long must not begin last.
/// @param heads  with their Br
/// @return all row tiles, head by head
template <class T> std::vector<Head<T>> row_tiles(const std::vector<Head<T>>& heads) {
  std::vector<Head<T>> pieces;
  for (const Head<T>& head : heads) {
    for (const Range i : tiles(head.q.rows(), head.br)) pieces.push_back(head.rows(i));
    std::reverse(pieces.end() - tile_count(head.q.rows(), head.br), pieces.end());
  }
  return pieces;
}

/// Query heads that share K and V, with their gradients.
template <class T> struct Group {
  std::vector<Head<T>> heads;           ///< one each
  std::vector<Gradients<T>> gradients;  ///< of each head
};

/// work(p, mine) for p = 0 .. n - 1, in parallel. Each thread has a `mine` of its own, from make(), and hands it to collect(mine) at the
/// end, one thread after the other. What work throws is thrown here.
/// @param n        pieces of work
/// @param make     `Mine()`
/// @param work     `void(Index p, Mine&)`
/// @param collect  `void(Mine&)`
template <class Make, class Work, class Collect> void in_parallel(Index n, Make make, Work work, Collect collect) {
  std::exception_ptr failure;
#pragma omp parallel
  {
    auto mine = make();
#pragma omp for schedule(dynamic)
    for (Index p = 0; p < n; ++p) {
      try {
        work(p, mine);
      } catch (...) {
#pragma omp critical
        failure = std::current_exception();
      }
    }
#pragma omp critical
    collect(mine);
  }
  if (failure) std::rethrow_exception(failure);
}

/// work(piece, memory) for every piece, each thread with a fast memory of `total`'s capacity; the traffic of all is added to `total`.
/// @param pieces  heads, row tiles or groups
/// @param total   has the capacity, and gets the counts
/// @param what    is done, for a person who waits
/// @param work    `void(const Piece&, Memory&)`
template <class Piece, class Work> void run(const std::vector<Piece>& pieces, Memory& total, const char* what, Work work) {
  Progress progress(what, std::int64_t(pieces.size()));
  in_parallel(
      Index(pieces.size()), [&] { return Memory(total.capacity()); },
      [&](Index p, Memory& memory) {
        work(pieces[p], memory);
        progress.advance();
      },
      [&](const Memory& memory) { total.add(memory); });
}

}  // namespace flashsteps
