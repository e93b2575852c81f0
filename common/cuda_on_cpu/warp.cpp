// __syncwarp, shuffles and votes: one meeting of the named lanes each.
#include "common/cuda_on_cpu/block.hpp"

namespace flashsteps::cuda_on_cpu {

void block_barrier(Site site) { Block::current().barrier(site); }

void warp_sync(unsigned mask, Site site) {
  Block::current().meet(Operation::sync, mask, site, {}, [](Lane* const*) {});
}

namespace {
/// The lane that lane i reads from, as the PTX manual's shfl.sync says.
int source(int i, Shuffle kind, int argument, int width) {
  const int base = i & ~(width - 1), in = i & (width - 1);
  int from = in;
  switch (kind) {
    case Shuffle::index: from = argument & (width - 1); break;
    case Shuffle::up: from = in - argument; break;
    case Shuffle::down: from = in + argument; break;
    case Shuffle::exclusive_or: from = in ^ argument; break;
  }
  // Past the end of the segment a lane keeps its own value
  return from < 0 || from >= width ? i : base + from;
}
}  // namespace

std::uint64_t shuffle_bits(unsigned mask, std::uint64_t value, Shuffle kind, int argument, int width, Site site) {
  const Inside inside;
  if (width < 1 || width > 32 || (width & (width - 1)) != 0) throw Error("a shuffle of width " + std::to_string(width) + " (" + text(site) + ")");
  Operands operands;
  operands.value = value;
  operands.a = argument;
  operands.b = width;
  operands.c = int(kind);
  return Block::current()
      .meet(Operation::shuffle, mask, site, operands,
            [](Lane* const* lanes) {
              std::uint64_t results[32];
              for (int i = 0; i < 32; ++i) {
                if (lanes[i] == nullptr) continue;
                const Operands& own = lanes[i]->operands;
                const Lane* from = lanes[source(i, Shuffle(own.c), own.a, own.b)];
                results[i] = from != nullptr ? from->operands.value : ~std::uint64_t(0);  // an absent lane: poison
              }
              for (int i = 0; i < 32; ++i)
                if (lanes[i] != nullptr) lanes[i]->operands.value = results[i];
            })
      .value;
}

unsigned ballot(unsigned mask, bool predicate, Site site) {
  Operands operands;
  operands.a = predicate;
  return unsigned(Block::current()
                      .meet(Operation::vote, mask, site, operands,
                            [](Lane* const* lanes) {
                              unsigned bits = 0;
                              for (int i = 0; i < 32; ++i)
                                if (lanes[i] != nullptr && lanes[i]->operands.a != 0) bits |= 1u << i;
                              for (int i = 0; i < 32; ++i)
                                if (lanes[i] != nullptr) lanes[i]->operands.value = bits;
                            })
                      .value);
}

}  // namespace flashsteps::cuda_on_cpu
