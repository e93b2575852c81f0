// The primitives of common/cuda on the CPU layer, in every schedule. Expected values come from tables and formulas of their own.
#include "tests/cuda_layer.hpp"
#include "tests/cuda_layer_schedules.hpp"
#include <cmath>
#include <cstring>
#include <numeric>

namespace flashsteps::cuda_layer {
namespace {

/// A layout in CuTe's notation, shapes and strides from the left: the offset of (lane, value).
struct Layout {
  int lane_stride[2];   // of lane % 4 and lane / 4
  int value_stride[3];  // of the bits of the value's number
  int operator()(int lane, int value) const {
    int offset = lane % 4 * lane_stride[0] + lane / 4 * lane_stride[1];
    for (int bit = 0; bit < 3; ++bit) offset += (value >> bit & 1) * value_stride[bit];
    return offset;
  }
};
// MMA_Traits<SM80_16x8x16_F32F16F16F32_TN>: offsets m + 16 k, n + 8 k, m + 16 n
constexpr Layout a_layout{{32, 1}, {16, 8, 128}};
constexpr Layout b_layout{{16, 1}, {8, 64, 0}};
constexpr Layout c_layout{{32, 1}, {16, 8, 0}};

std::uint32_t bits16(bool bfloat16, int small) {  // an integer of at most 7 bits
  const float f = float(small);
  std::uint32_t u;
  std::memcpy(&u, &f, 4);
  if (bfloat16) return u >> 16;
  return small == 0 ? 0u : ((u >> 13) - ((127 - 15) << 10)) & 0x7fffu;
}

/// Value `v` of `lane` in registers that hold two each.
void put(Words& registers, std::size_t per_lane, std::size_t of_case, int lane, int v, std::uint32_t bits) {
  registers[(of_case * 32 + std::size_t(lane)) * per_lane + std::size_t(v / 2)] |= bits << (16 * (v % 2));
}

float at_random(std::uint32_t& state) {
  state = state * 1664525u + 1013904223u;
  return float(state >> 8) * 0x1p-24f - 0.5f;
}
Floats noise(std::size_t n, std::uint32_t seed) {
  Floats x(n);
  for (float& f : x) f = at_random(seed);
  return x;
}

TEST_CASE("cuda layer - mma layout element by element against the tables of CuTe") {
  for (const bool bfloat16 : {false, true}) {
    // Case (m, k): a has a single one there, so that row m of the product is row k of b, and the rest is c
    Words a(256 * 32 * 4), b(256 * 32 * 2);
    Floats c(256 * 32 * 4);
    for (std::size_t which = 0; which < 256; ++which)
      for (int lane = 0; lane < 32; ++lane) {
        for (int v = 0; v < 8; ++v)
          if (a_layout(lane, v) == int(which)) put(a, 4, which, lane, v, bits16(bfloat16, 1));
        for (int v = 0; v < 4; ++v) put(b, 2, which, lane, v, bits16(bfloat16, b_layout(lane, v)));
        for (int v = 0; v < 4; ++v) c[(which * 32 + std::size_t(lane)) * 4 + std::size_t(v)] = float(1000 + c_layout(lane, v));
      }
    in_every_schedule([&] {
      const Floats d = mma(bfloat16, a, b, c);
      bool same = true;
      for (int which = 0; which < 256; ++which)
        for (int lane = 0; lane < 32; ++lane)
          for (int v = 0; v < 4; ++v) {
            const int m = c_layout(lane, v) % 16, n = c_layout(lane, v) / 16, k = which / 16;
            const float expected = float(1000 + c_layout(lane, v) + (m == which % 16 ? n + 8 * k : 0));
            same = same && d[std::size_t((which * 32 + lane) * 4 + v)] == expected;
          }
      CHECK(same);
    });
  }
}

TEST_CASE("cuda layer - ldmatrix element by element") {
  Words halves(32 * 4);
  for (std::uint32_t i = 0; i < 128; ++i) halves[i] = (2 * i) | (2 * i + 1) << 16;  // element = 8 row + column
  in_every_schedule([&] {
    for (const int count : {4, 2})
      for (const bool transposed : {false, true}) {
        const Words r = ldmatrix(count, transposed, halves);
        for (int lane = 0; lane < 32; ++lane)
          for (int j = 0; j < count; ++j)
            for (int k = 0; k < 2; ++k) {
              // CuTe's SM75_U32x4_LDSM_N: lane 4 r + q has row r, columns 2 q and 2 q + 1; LDSM_T, column r
              const int row = transposed ? 2 * (lane % 4) + k : lane / 4, column = transposed ? lane / 4 : 2 * (lane % 4) + k;
              if ((r[std::size_t(count * lane + j)] >> (16 * k) & 0xffffu) != std::uint32_t(64 * j + 8 * row + column))
                FAIL("count " << count << ", transposed " << transposed << ", lane " << lane << ", matrix " << j);
            }
      }
    SUCCEED();
  });
}

TEST_CASE("cuda layer - shuffles of every kind and width") {
  in_every_schedule([&] {
    for (const int by : {1, 3, 8, 31}) {
      const Ints out = shuffles(by, by, by);
      bool same = true;
      for (int lane = 0; lane < 32; ++lane) {
        int n = 0;
        for (const int width : {32, 16, 8}) {
          const int base = lane - lane % width, in = lane % width;
          const int index = base + by % width, up = in >= by ? lane - by : lane, down = in + by < width ? lane + by : lane;
          const int bits = (in ^ by) < width ? base + (in ^ by) : lane;
          for (const int source : {index, up, down, bits}) same = same && out[std::size_t(12 * lane + n++)] == 100 + source;
        }
      }
      CHECK(same);
    }
    const auto wide = wide_shuffles();
    for (int lane = 0; lane < 32; ++lane) {
      CHECK(wide[std::size_t(lane)] == (lane + 1) % 32 * 1e-9 + 1e9);
      CHECK(wide[std::size_t(32 + lane)] == double((1ll << 40) + 31 - lane));
    }
  });
}

TEST_CASE("cuda layer - votes") {
  in_every_schedule([&] {
    for (int kind = 0; kind < 3; ++kind) {
      Ints x(64);
      for (int i = 0; i < 64; ++i) x[std::size_t(i)] = kind == 0 ? i % 3 == 0 : kind == 1 ? i < 32 : 7 * (i % 32 == 31 || i < 32);
      const Ints out = votes(x);
      for (int warp = 0; warp < 2; ++warp) {
        unsigned bits = 0;
        for (int i = 0; i < 32; ++i) bits |= unsigned(x[std::size_t(32 * warp + i)] != 0) << i;
        for (int i = 0; i < 32; ++i) {
          const auto* mine = &out[std::size_t(3 * (32 * warp + i))];
          CHECK((unsigned(mine[0]) == bits && mine[1] == (bits != 0) && mine[2] == (bits == 0xffffffffu)));
        }
      }
    }
  });
}

TEST_CASE("cuda layer - halves of a warp on different paths") {
  in_every_schedule([&] {
    const Ints out = divergent_paths();
    int path[32];
    for (int i = 0; i < 16; ++i) {
      const int j = 15 - i;  // who wrote what lane i read
      path[i] = (j ^ 1) + (j ^ 2) + (j ^ 4);
      path[16 + i] = 500 + 16 + (i + 5) % 16;  // of 16 .. 31, the multiples of three are 18, 21, 24, 27, 30
    }
    for (int i = 0; i < 32; ++i) CHECK(out[std::size_t(i)] == path[i] + path[i ^ 16]);
  });
}

TEST_CASE("cuda layer - reductions of warps and blocks") {
  Floats x(5 * 128);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = float(int(i * 37 % 101) - 50);  // whole numbers: sums are exact
  in_every_schedule([&] {
    const Floats out = block_reductions(x);
    for (std::size_t b = 0; b < 5; ++b) {
      CHECK(out[130 * b] == std::accumulate(&x[128 * b], &x[128 * b] + 128, 0.0f));
      CHECK(out[130 * b + 1] == *std::max_element(&x[128 * b], &x[128 * b] + 128));
      for (std::size_t t = 0; t < 128; ++t) CHECK(out[130 * b + 2 + t] == std::accumulate(&x[128 * b + t / 8 * 8], &x[128 * b + t / 8 * 8] + 8, 0.0f));
    }
  });
}

TEST_CASE("cuda layer - static shared memory and two-dimensional blocks") {
  for (const int n : {1, 32, 45}) {
    const Floats x = noise(std::size_t(n * n), 5);
    in_every_schedule([&] {
      const Floats y = transpose(x, n);
      bool same = true;
      for (int i = 0; i < n * n; ++i) same = same && y[std::size_t(i)] == x[std::size_t(i % n * n + i / n)];
      CHECK(same);
    });
  }
}

TEST_CASE("cuda layer - asynchronous copies late and early") {
  for (const int n : {1, 64, 65, 200}) {
    const int width = n == 65 ? 36 : 64;
    Floats x(std::size_t(n * width));
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = float(int(i * 29 % 83) - 41);
    in_every_schedule([&] {
      const Floats sums = async_column_sums(x, n, width);
      for (int c = 0; c < width; ++c) {
        float expected = 0;
        for (int r = 0; r < n; ++r) expected += x[std::size_t(r * width + c)];
        CHECK(sums[std::size_t(c)] == expected);
      }
    });
  }
}

TEST_CASE("cuda layer - accesses of sixteen bytes and copies of four") {
  for (const int n : {64, 50, 1}) {
    const Floats x = noise(std::size_t(n), 6);
    in_every_schedule([&] {
      const Floats out = reversed(x, n);
      bool same = true;
      for (int i = 0; i < 64; ++i) same = same && out[std::size_t(i)] == (63 - i < n ? x[std::size_t(63 - i)] : 0.0f);
      CHECK(same);
    });
  }
}

TEST_CASE("cuda layer - atomics") {
  Ints x(1000), expected(18);
  for (int i = 0; i < 1000; ++i) {
    x[std::size_t(i)] = i * i % 16;
    ++expected[std::size_t(x[std::size_t(i)])];
    expected[16] += x[std::size_t(i)];
  }
  expected[17] = 1000;
  Floats whole(1000), sums(7);
  for (std::size_t i = 0; i < 1000; ++i) sums[i % 7] += whole[i] = float(i % 50) - 20;
  in_every_schedule([&] {
    CHECK(histogram(x) == expected);
    CHECK(atomic_sums(whole, 7) == sums);
  });
}

TEST_CASE("cuda layer - positions in three-dimensional grids") {
  in_every_schedule([] {
    const Ints out = positions(3, 2, 4, 5, 3, 2);
    for (int i = 0; i < int(out.size()); ++i)
      if (out[std::size_t(i)] != i / 30 * 1000 + i % 30) FAIL("position " << i);
    CHECK(positions(1, 1, 1, 1024, 1, 1).back() == 1023);
    CHECK(positions(1000, 1, 1, 1, 1, 1).back() == 999000);
  });
}

std::uint64_t digest(std::uint64_t h, const void* p, std::size_t n) {  // FNV-1a
  for (std::size_t i = 0; i < n; ++i) h = (h ^ static_cast<const unsigned char*>(p)[i]) * 1099511628211u;
  return h;
}
template <class T> std::uint64_t digest(std::uint64_t h, const std::vector<T>& v) { return digest(h, v.data(), sizeof(T) * v.size()); }

// Of kernels that round, on numbers that need it: any schedule, compiler, optimisation and machine gives these bits
TEST_CASE("cuda layer - output digests are the same in every schedule and build") {
  const Floats x = noise(640, 1), rows = noise(200 * 64, 2), c = noise(4 * 32 * 4, 3);
  Words a(4 * 32 * 4), b(4 * 32 * 2);
  std::uint32_t state = 4;
  for (auto& w : a) w = (w = state = state * 1664525u + 1013904223u, (w & 0x83ff83ffu) | 0x38003800u);  // +- 0.5 .. 1 in half
  for (auto& w : b) w = (w = state = state * 1664525u + 1013904223u, (w & 0x83ff83ffu) | 0x38003800u);
  Floats wide = x;
  for (std::size_t i = 0; i < wide.size(); ++i) wide[i] = std::ldexp(x[i], int(i % 60) - 30);
  in_every_schedule([&] {
    std::uint64_t h = 1469598103934665603u;
    h = digest(h, block_reductions(x));
    h = digest(h, async_column_sums(rows, 200, 64));
    h = digest(h, mma(false, a, b, c));
    h = digest(h, mma(true, a, b, c));
    h = digest(h, roundings(wide));
    h = digest(h, arithmetic(x));
    CHECK(h == 0x47ff1f55b13e1831u);
  });
}

}  // namespace
}  // namespace flashsteps::cuda_layer
