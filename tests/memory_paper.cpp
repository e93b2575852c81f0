// The numbers that the papers and the article print, from the formulas of the specification: Appendix A, the crossovers of 9.2, the
// tables of 4.2, 5.2, 5.4, 5.5, 15.1, 15.2 and 15.4. What we do not build (FlashAttention-1's backward pass, peeled loops,
// sequential sums) is here as a formula only. No number is fitted.
#include "tests/catch.hpp"
#include "tests/memory_formulas.hpp"
#include "tests/steps.hpp"
#include <cmath>
#include <cstdio>

namespace flashsteps {
namespace {

using formula::Sizes;

std::string fixed(double x, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, x);
  return text;
}
Index sum(const Traffic& t) { return t.reads + t.writes; }
Sizes square(Index n, Index d, Index br, Index bc) { return {n, n, d, d, br, bc}; }
Index ceil_div(Index a, Index b) { return formula::ceil_div(a, b); }

}  // namespace

TEST_CASE("counts of the small example") {
  const Sizes x{5, 7, 3, 2, 2, 3};  // Appendix A.2
  CHECK(formula::standard(x) == Traffic{120, 80});
  CHECK(formula::fa1(x) == Traffic{140, 80});
  CHECK(formula::fa1_peeled(x) == Traffic{120, 60});
  CHECK(formula::fa2(x) == Traffic{120, 15});
  CHECK(formula::standard_backward(x) == Traffic{245, 120});
  CHECK(formula::fa1_backward(x) == Traffic{215, 130});
  CHECK(formula::fa1_backward_peeled(x) == Traffic{175, 85});
  CHECK(formula::sequential(formula::column_order(x)) == Traffic{205, 100});
  CHECK(formula::column_order(x) == Traffic{160, 55, 45});
  CHECK(formula::sequential(formula::row_order(x)) == Traffic{250, 155});
  CHECK(formula::row_order(x) == Traffic{145, 50, 105});
}

TEST_CASE("counts for square problems") {
  for (const Index n : {1, 9, 64, 100})
    for (const Index d : {1, 5, 64})
      for (const Index b : {1, 7, 64}) {
        const Sizes x = square(n, d, b, b);
        const Index t = x.tc(), nd = n * d;
        CAPTURE(n, d, b);
        CHECK(sum(formula::standard(x)) == 4 * n * n + 4 * nd);
        CHECK(sum(formula::fa1(x)) == 3 * nd + 2 * n + t * (3 * nd + 4 * n));
        CHECK(sum(formula::fa1_peeled(x)) == nd + 3 * t * nd + (4 * t - 2) * n);
        CHECK(sum(formula::fa2(x)) == 2 * nd + n + 2 * t * nd);
        CHECK(sum(formula::standard_backward(x)) == 7 * n * n + 8 * nd);
        CHECK(sum(formula::standard(x)) + sum(formula::standard_backward(x)) == 11 * n * n + 12 * nd);
        CHECK(sum(formula::fa1_backward(x)) - 3 * nd == 4 * nd + t * (5 * nd + 2 * n));
        CHECK(sum(formula::fa1_backward_peeled(x)) == 4 * nd + 4 * t * nd + 2 * t * n);
        CHECK(sum(formula::sequential(formula::column_order(x))) == 7 * nd + n + t * (4 * nd + 2 * n));
        CHECK(formula::row_order(x).atomics == 2 * formula::column_order(x).atomics);
      }
}

TEST_CASE("step01 step04 step05 counts of the example with 1024 rows") {
  // 5.2, elements per head
  CHECK(sum(formula::standard(square(1024, 64, 1, 1))) == 4456448);
  CHECK(sum(formula::fa1(square(1024, 64, 64, 256))) == 1001472);
  CHECK(sum(formula::fa1_peeled(square(1024, 64, 64, 256))) == 866304);
  CHECK(sum(formula::fa2(square(1024, 64, 128, 64))) == 1180672);
  CHECK(sum(formula::fa2(square(1024, 64, 256, 64))) == 656384);
  // The same from the steps, less L, which 1.1 and 4.3 do not store
  HeadSizes x{1024, 1024, 64, 64, 128, 256, 1024};
  const auto total = [&](const Step& step) { return sum(step.main().traffic(x).total()); };
  CHECK(total(step01::step()) - 1024 == 4456448);
  CHECK(total(step04::step()) - 3 * 1024 == 1001472);
  CHECK(total(step05::step()) == 1180672);
  x.br = 256;
  CHECK(total(step05::step()) == 656384);
}

TEST_CASE("crossovers of the article") {
  // 9.2, Appendix A.7
  const auto standard = [](double n, double d) { return n * d + n * n; };
  const auto flash = [](double n, double d, double m) { return n * n * d * d / m; };
  const auto crossover = [](double n, double m) { return m / (2 * n) * (1 + std::sqrt(1 + 4 * n * n / m)); };
  const double n = 2048;
  CHECK(standard(n, 256) == 4718592);
  CHECK(standard(n, 512) == 5242880);
  CHECK(fixed(flash(n, 256, 196608), 3) == "1398101.333");
  CHECK(fixed(flash(n, 512, 196608), 3) == "5592405.333");
  CHECK(fixed(crossover(n, 196608), 4) == "493.9955");
  struct Chip { double m; const char *root, *d, *at_256; };
  for (const Chip& c : {Chip{196608, "443.4", "494.0", "1398101"}, Chip{98304, "313.5", "338.5", "2796203"}, Chip{83456, "288.9", "310.0", "3293687"},
                        Chip{49152, "221.7", "234.0", "5592405"}}) {
    CAPTURE(c.m);
    CHECK(fixed(std::sqrt(c.m), 1) == c.root);
    const double d = crossover(n, c.m);
    CHECK(fixed(d, 1) == c.d);
    CHECK(std::abs(standard(n, d) / flash(n, d, c.m) - 1) < 1e-12);
    CHECK(std::abs(crossover(1e9, c.m) / std::sqrt(c.m) - 1) < 1e-5);
    CHECK(fixed(flash(n, 256, c.m), 0) == c.at_256);
  }

  // With the constants: 4 N^2 meets 12, 8 and 4 N^2 d^2 / M
  struct Row { double constant; const char* d[3]; };
  for (const Row& r : {Row{12, {"128.0", "181.0", "256.0"}}, Row{8, {"156.8", "221.7", "313.5"}}, Row{4, {"221.7", "313.5", "443.4"}}})
    for (int c = 0; c < 3; ++c) CHECK(fixed(std::sqrt(4 / r.constant * (49152 << c)), 1) == r.d[c]);

  // Exact counts: FlashAttention-1, peeled, with the paper's Bc, over standard attention
  struct Ratio { Index d; int digits; const char* ratio; };
  for (const Ratio& r : {Ratio{32, 3, "0.040"}, Ratio{64, 3, "0.147"}, Ratio{128, 3, "0.505"}, Ratio{181, 3, "1.002"}, Ratio{256, 2, "1.87"}, Ratio{512, 1, "6.5"}}) {
    const Sizes x = square(2048, r.d, 1, ceil_div(98304, 4 * r.d));
    CAPTURE(r.d);
    CHECK(fixed(double(sum(formula::fa1_peeled(x))) / double(sum(formula::standard(x))), r.digits) == r.ratio);
  }
}

TEST_CASE("step04 footprint of the tiles of the paper") {
  // 4.2: the four matrix tiles and S, without the statistics
  struct Row { Index m, d, bc, br, footprint; const char* ratio; };
  for (const Row& r : {Row{49152, 64, 192, 64, 45056, "0.92"}, Row{49152, 128, 96, 96, 58368, "1.19"}, Row{98304, 64, 384, 64, 81920, "0.83"},
                       Row{98304, 128, 192, 128, 106496, "1.08"}}) {
    CAPTURE(r.m, r.d);
    const Index bc = ceil_div(r.m, 4 * r.d), br = std::min(bc, r.d);
    CHECK(bc == r.bc);
    CHECK(br == r.br);
    const Index all = formula::fa1_footprint(br, bc, r.d, r.d);
    CHECK(all - 6 * br == r.footprint);
    CHECK(fixed(double(all - 6 * br) / double(r.m), 2) == r.ratio);
  }
  // 6.4: the backward pass in the same tiles
  const Index br = 64, bc = 192, d = 64;
  CHECK(2 * bc * 2 * d + br * 4 * d + 2 * br * bc + 4 * br == 90112 + 4 * br);
  CHECK(fixed(90112. / 49152, 2) == "1.83");
}

TEST_CASE("step04 step05 largest row tile that fits") {
  // 4.2, 5.2: Br = floor((M - Bc (d + dv)) / (d + dv + Bc + 6)), and with 3 for 6
  bool good = true;
  for (Index m = 40; m <= 400; m += 7)
    for (Index bc = 1; bc <= 8; ++bc)
      for (Index d = 1; d <= 4; ++d)
        for (Index dv = 1; dv <= 4; ++dv)
          for (const auto& [footprint, statistics] : {std::pair{&formula::fa1_footprint, 6}, std::pair{&formula::fa2_footprint, 3}}) {
            const Index br = (m - bc * (d + dv)) / (d + dv + bc + statistics);
            if (m < bc * (d + dv)) continue;
            good = good && (br == 0 || footprint(br, bc, d, dv) <= m) && footprint(br + 1, bc, d, dv) > m;
          }
  CHECK(good);
}

TEST_CASE("step05 partition of a tile over warps") {
  // 5.4: elements through shared memory for one tile, W warps
  struct Row { Index w, br, bc, d, operands_k, exchange_k, all_k, operands_q; };
  for (const Row& r : {Row{4, 128, 128, 64, 49152, 69120, 118272, 73728}, Row{4, 64, 64, 64, 24576, 34560, 59136, 36864},
                       Row{8, 128, 64, 128, 147456, 273408, 420864, 147456}, Row{4, 64, 256, 64, 49152, 34560, 83712, 135168}}) {
    CAPTURE(r.w, r.br, r.bc, r.d);
    const Index split_k = r.w * r.br * r.d + r.bc * 2 * r.d, split_q = r.br * r.d + r.w * r.bc * 2 * r.d;
    const Index exchange = r.w * r.br * (r.d + 2) + r.w * r.br * (r.d + r.w + 1);
    CHECK(split_k == r.operands_k);
    CHECK(exchange == r.exchange_k);
    CHECK(split_k + exchange == r.all_k);
    CHECK(split_q == r.operands_q);
  }
}

TEST_CASE("step05 thread blocks and waves") {
  // 5.5: 108 SMs, one block each
  const auto waves = [](Index blocks) { return ceil_div(blocks, 108); };
  const auto use = [&](Index blocks) { return fixed(100. * double(blocks) / double(108 * waves(blocks)), 0); };
  const Index fa1 = 8 * 8, fa2 = 8 * 8 * tile_count(1024, 128);
  CHECK(fa1 == 64);
  CHECK(use(fa1) == "59");
  CHECK(fa2 == 512);
  CHECK(waves(fa2) == 5);
  CHECK(use(fa2) == "95");
  CHECK(use(1 * 16) == "15");
  CHECK(16 * tile_count(8192, 128) == 1024);
  CHECK(use(16 * tile_count(8192, 128)) == "95");
}

TEST_CASE("step04 FlashAttention-1 traffic against the width of column tiles") {
  // 15.2: N = 1024, d = 64, 1024 heads; matrices 2 bytes, statistics 4
  struct Row { Index bc, tc, elements; const char *literal, *peeled; };
  for (const Row& r : {Row{64, 16, 3409920, "7.12", "6.84"}, Row{128, 8, 1804288, "3.77", "3.48"}, Row{256, 4, 1001472, "2.09", "1.80"},
                       Row{512, 2, 600064, "1.25", "0.96"}}) {
    const Sizes x = square(1024, 64, 64, r.bc), statistics{1024, 1024, 0, 0, 64, r.bc};
    const auto gigabytes = [&](Traffic (*count)(const Sizes&)) {
      const Index l_and_m = sum(count(statistics));
      return fixed(1024. * double(2 * (sum(count(x)) - l_and_m) + 4 * l_and_m) / 1e9, 2);
    };
    CAPTURE(r.bc);
    CHECK(x.tc() == r.tc);
    CHECK(sum(formula::fa1(x)) == r.elements);
    CHECK(gigabytes(formula::fa1) == r.literal);
    CHECK(gigabytes(formula::fa1_peeled) == r.peeled);
    HeadSizes ours{1024, 1024, 64, 64, 64, r.bc, 1024};
    CHECK(sum(step04::step().main().traffic(ours).total()) - 3 * 1024 == r.elements);
  }
}

TEST_CASE("step01 step04 step06 traffic of FlashAttention-1 forward and backward") {
  // 15.1: N = 1024, d = 64, 1024 heads of 2-byte numbers, in GB
  const Index n = 1024, d = 64;
  const double u = 1024. * double(n * d) * 2 / 1e9, q = 1024. * double(n * n) * 2 / 1e9, vector = 1024. * double(n) * 4 / 1e9;
  CHECK(fixed(u, 5) == "0.13422");
  CHECK(fixed(q, 5) == "2.14748");
  const Sizes one = square(n, d, 1, 1);
  CHECK(sum(formula::standard(one)) + sum(formula::standard_backward(one)) == 11 * n * n + 12 * n * d);
  CHECK(fixed(11 * q + 12 * u, 1) == "25.2");
  CHECK(fixed(2 * q, 2) == "4.29");
  CHECK(fixed(18 * q + 12 * u, 2) == "40.27");
  CHECK(fixed(15 * q + 23 * u, 2) == "35.30");
  CHECK(fixed(3 * u, 2) == "0.40");

  // Literal Algorithms 1 and 4, less the zeros that the backward pass begins with; peeled; and peeled with those O and dQ that are
  // not final in 4 bytes, where L alone is kept between column tiles (O: Tc - 1 reads, Tc - 1 writes; dQ the same; 4 Tc - 1 vectors)
  struct Row { Index bc; const char *literal, *peeled, *wide; };
  for (const Row& r : {Row{384, "4.24", "3.56", "4.61"}, Row{256, "5.34", "4.52", "6.10"}, Row{128, "9.74", "8.38", "12.08"}}) {
    const Sizes x = square(n, d, 64, r.bc), statistics{n, n, 0, 0, 64, r.bc};
    const auto gigabytes = [&](Index all, Index vectors) { return 1024. * double(2 * (all - vectors) + 4 * vectors) / 1e9; };
    CAPTURE(r.bc);
    CHECK(fixed(gigabytes(sum(formula::fa1(x)) + sum(formula::fa1_backward(x)) - 3 * n * d, sum(formula::fa1(statistics)) + sum(formula::fa1_backward(statistics))), 2) == r.literal);
    const double peeled = gigabytes(sum(formula::fa1_peeled(x)) + sum(formula::fa1_backward_peeled(x)),
                                    sum(formula::fa1_peeled(statistics)) + sum(formula::fa1_backward_peeled(statistics)));
    CHECK(fixed(peeled, 2) == r.peeled);
    const double tc = double(x.tc());
    CHECK(fixed((5 + 7 * tc) * u + 4 * (tc - 1) * u + (4 * tc - 1) * vector, 2) == r.wide);
    if (r.bc == 256) CHECK(fixed((11 * q + 12 * u) / peeled, 1) == "5.6");
  }
  CHECK(fixed(33 * u, 2) == "4.43");
  CHECK(fixed(40.3 / 4.4, 1) == "9.2");
  CHECK(fixed(40.3 / 1.555, 1) == "25.9");
  CHECK(fixed(4.4 / 1.555, 1) == "2.8");
}

TEST_CASE("step01 step05 step06 memory of forward and backward beside table 21 of FlashAttention-1") {
  // 15.4: batch 16, 8 heads, d = 64, 2-byte numbers, vectors in 4 bytes; MiB
  const Index heads = 16 * 8, d = 64;
  const auto mib = [&](Index elements, Index vectors) { return double(heads * (2 * elements + 4 * vectors)) / 1048576; };

  // The parts of the paper's two rows. Sure are the tensors of the problem, Q K V O and their gradients, the N x N matrices of the
  // standard pass, the accumulator and the two vectors; what the rest is, is our reading of the code that was measured.
  const Index tensors = 4 + 4;             // Q K V O dQ dK dV dO
  const Index rearranged = 2;              // PyTorch: Q and K^T, copied for the product
  const Index square_matrices = 4;         // PyTorch: S P dP dS
  const Index second_gradient = 3;         // FlashAttention: dQ dK dV once more, handed over and accumulated
  const Index accumulator = 2;             // FlashAttention: dQ in fp32, only if N > 256
  const Index vectors = 2;                 // FlashAttention: L and D
  CHECK(tensors + rearranged == 10);
  CHECK(tensors + second_gradient == 11);
  CHECK(tensors + second_gradient + accumulator == 13);

  struct Row { Index n, pytorch, flash; };
  for (const Row& r : {Row{128, 36, 22}, Row{256, 104, 44}, Row{512, 336, 104}, Row{1024, 1184, 209}, Row{2048, 4416, 418}, Row{4096, 17024, 836},
                       Row{8192, 0, 1672}, Row{16384, 0, 3344}, Row{32768, 0, 6688}, Row{65536, 0, 13376}}) {
    CAPTURE(r.n);
    const double flash = mib((tensors + second_gradient + (r.n > 256 ? accumulator : 0)) * r.n * d, vectors * r.n);
    CHECK(std::abs(flash - double(r.flash)) <= 0.5);
    if (r.pytorch) CHECK(std::abs(mib(square_matrices * r.n * r.n + (tensors + rearranged) * r.n * d, 0) - double(r.pytorch)) <= 0.5);

    // Ours, as the accounting sees it: every tensor that forward and backward move anything of, once, at its size
    const HeadSizes x{r.n, r.n, d, d, 128, 128, r.n};
    const auto touched = [&](std::initializer_list<const Form*> forms) {
      Counts counts;
      for (const Form* form : forms) counts += form->traffic(x);
      Index elements = 0, statistics = 0;
      for (int t = 0; t < name_count; ++t) {
        const Name name{t};
        if (counts[name] == Traffic{}) continue;
        const bool matrix = name == tensor::s || name == tensor::p || name == tensor::dp || name == tensor::ds;
        const bool vector = name == tensor::lse || name == tensor::delta || name == tensor::m || name == tensor::l;
        (vector ? statistics : elements) += r.n * (vector ? 1 : matrix ? r.n : d);
      }
      return std::pair(elements, statistics);
    };
    const auto recomputed = touched({&step05::step().main(), &step06::step().main()});
    CHECK(recomputed == std::pair(tensors * r.n * d, vectors * r.n));
    const auto standard = touched({&step01::step().main(), &step06::step().forms[1]});
    CHECK(standard == std::pair(square_matrices * r.n * r.n + tensors * r.n * d, r.n));
    CHECK(mib(recomputed.first, recomputed.second) < flash);
  }
  CHECK(fixed(17024. / 836, 1) == "20.4");
  CHECK(fixed(4416. / 418, 1) == "10.6");
  CHECK(fixed(mib(4 * Index(65536) * 65536, 0) / 1048576, 1) == "4.0");  // TiB
}

TEST_CASE("step08 key-value cache and packed groups") {
  // 8: bytes per token and layer, 2-byte numbers, d = 128
  const auto cache = [](Index kv_heads) { return 2 * kv_heads * 128 * 2; };
  CHECK(cache(32) == 16 * 1024);
  CHECK(cache(8) == 4 * 1024);
  CHECK(cache(1) == 512);
  // g heads apart read K and V g Tr times; packed into one block of rows, ceil(g Nq / Br) times. For one query that is g times less
  const HeadSizes x{1, 1024, 128, 128, 64, 64, 1023};
  const Counts one = step08::step().forward().traffic(x);
  const Index g = 4, apart = g * (one[tensor::k].reads + one[tensor::v].reads), packed = ceil_div(g * 1, 64) * 1024 * 256;
  CHECK(apart == g * packed);
}

}  // namespace flashsteps
