// ldmatrix and mma.sync with the register layouts of the PTX manual.
#include "common/cuda_on_cpu/block.hpp"
#include "common/cuda_on_cpu/half.hpp"

namespace flashsteps::cuda_on_cpu {

void ldmatrix(std::uint32_t* result, int count, bool transposed, const void* row, Site site) {
  const Inside inside;
  Block& block = Block::current();
  const Lane& me = block.lane();
  if (reinterpret_cast<std::uintptr_t>(row) % 16 != 0 && me.number % 32 < 8 * count)
    throw Error("ldmatrix: the row address of " + thread_name(me) + " is no multiple of 16 bytes (" + text(site) + ")");
  Operands operands;
  operands.in[0] = row;
  operands.out = result;
  block.meet(Operation::ldmatrix, all_lanes, site, operands, [=](Lane* const* lanes) {
    for (int j = 0; j < count; ++j) {
      const void* rows[8];
      for (int i = 0; i < 8; ++i) rows[i] = lanes[8 * j + i]->operands.in[0];
      trace::matrix_rows(site, rows, lanes[8 * j]->number);
      for (int i = 0; i < 32; ++i) {
        std::uint16_t pair[2];
        for (int k = 0; k < 2; ++k) {
          const int r = transposed ? 2 * (i % 4) + k : i / 4, c = transposed ? i / 4 : 2 * (i % 4) + k;
          std::memcpy(&pair[k], static_cast<const char*>(rows[r]) + 2 * c, 2);
        }
        static_cast<std::uint32_t*>(lanes[i]->operands.out)[j] = std::uint32_t(pair[0]) | std::uint32_t(pair[1]) << 16;
      }
    }
  });
}

namespace {
struct Fragments {
  alignas(64) std::uint16_t a[16][16], b[16][8];
  alignas(64) float c[16][8];
};

// Lane 4g + q: in a, rows g and g + 8, columns 2q, 2q + 1, 2q + 8, 2q + 9; in b, those as rows of column g; in c, rows g and
// g + 8, columns 2q and 2q + 1.
void gather(Lane* const* lanes, Fragments& f) {
  for (int i = 0; i < 32; ++i) {
    const int g = i / 4, q = i % 4;
    const auto* a = static_cast<const std::uint32_t*>(lanes[i]->operands.in[0]);
    const auto* b = static_cast<const std::uint32_t*>(lanes[i]->operands.in[1]);
    const auto* c = static_cast<const float*>(lanes[i]->operands.out);
    for (int r = 0; r < 4; ++r) std::memcpy(&f.a[g + 8 * (r % 2)][2 * q + 8 * (r / 2)], &a[r], 4);
    for (int r = 0; r < 2; ++r)
      for (int k = 0; k < 2; ++k) f.b[2 * q + k + 8 * r][g] = std::uint16_t(b[r] >> (16 * k));
    for (int r = 0; r < 2; ++r) std::memcpy(&f.c[g + 8 * r][2 * q], &c[2 * r], 8);
  }
}

template <float (*to_float)(std::uint16_t)> void multiply(Fragments& f) {
  alignas(64) float a[16][16], b[16][8];
  for (int m = 0; m < 16; ++m)
    for (int k = 0; k < 16; ++k) a[m][k] = to_float(f.a[m][k]);
  for (int k = 0; k < 16; ++k)
    for (int n = 0; n < 8; ++n) b[k][n] = to_float(f.b[k][n]);
  for (int m = 0; m < 16; ++m)
    for (int k = 0; k < 16; ++k)
      for (int n = 0; n < 8; ++n) f.c[m][n] += a[m][k] * b[k][n];
}
}  // namespace

void mma_16x8x16(Element element, float c[4], const std::uint32_t a[4], const std::uint32_t b[2], Site site) {
  Operands operands;
  operands.in[0] = a;
  operands.in[1] = b;
  operands.out = c;
  Block::current().meet(Operation::mma, all_lanes, site, operands, [=](Lane* const* lanes) {
    Fragments f;
    gather(lanes, f);
    if (element == Element::half) multiply<half_to_float>(f);
    else multiply<bfloat16_to_float>(f);
    for (int i = 0; i < 32; ++i)
      for (int r = 0; r < 2; ++r) std::memcpy(static_cast<float*>(lanes[i]->operands.out) + 2 * r, &f.c[i / 4 + 8 * r][2 * (i % 4)], 8);
  });
}

}  // namespace flashsteps::cuda_on_cpu
