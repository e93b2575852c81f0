#pragma once
// What step 05 moves, as closed forms (math 5.2). The memory counts; the formula has to say the same for all sizes.
#include "common/attention/head.hpp"
#include "common/memory/memory.hpp"

namespace flashsteps::step05 {

/// One head, and how it is cut into tiles.
struct Sizes {
  Index nq,  ///< queries
      nk,    ///< keys
      d,     ///< elements of a query and of a key
      dv,    ///< elements of a value
      br,    ///< queries of a tile
      bc;    ///< keys of a tile
};

/// The elements that forward() moves, tensor by tensor.
/// @param x  the sizes, any of them; nq, nk may be 0
/// @return reads and writes of q, k, v, o and lse; what is not named is 0
inline Counts traffic(const Sizes& x) {
  Counts c;

  // Elements read and written, tensor by tensor
  const Index tr = tile_count(x.nq, x.br);
  c[tensor::q].reads = x.nq * x.d;
  c[tensor::k].reads = tr * x.nk * x.d;
  c[tensor::v].reads = tr * x.nk * x.dv;
  c[tensor::o].writes = x.nq * x.dv;
  c[tensor::lse].writes = x.nq;

  return c;
}

}  // namespace flashsteps::step05
