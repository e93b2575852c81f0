// The errata of the papers (math 14): what is printed gives the wrong value that is stated there, what is right gives the right one.
#include "tests/catch.hpp"
#include "tests/case.hpp"
#include "tests/steps.hpp"
#include <numeric>

using namespace flashsteps;

namespace {

// One query, scores (0, 1 | 2), values (1, 2 | 3), split after the second key
struct Example {
  double m1 = 1, l1 = std::exp(-1.) + 1, o1 = (std::exp(-1.) * 1 + 2) / l1;
  double m = 2, l = std::exp(-2.) + std::exp(-1.) + 1;
  double p2 = 1;  // exp(S2 - m)
  double v2 = 3;
};
const Example x;
constexpr double true_o = 2.5752104, true_lse = 2.4076060;

bool near(double a, double b) { return std::abs(a - b) <= 6e-5; }

}  // namespace

TEST_CASE("the example of the errata is what step03 step04 step05 compute - math 14") {
  CHECK(std::abs(x.l1 - 1.3678794) < 1e-7);
  CHECK(std::abs(x.o1 - 1.7310586) < 1e-7);
  CHECK(std::abs(x.l - 1.5032147) < 1e-7);
  for (const auto& [name, run, masks] : forward_forms<double>()) {
    INFO(name);
    Case<double> example({1, 3, 1, 1, 1, 2}, 1.);
    example.q = {1}, example.k = {0, 1, 2}, example.v = {1, 2, 3};
    Memory memory;
    run(example.head(), memory);
    CHECK(std::abs(example.o[0] - true_o) < 1e-7);
    CHECK(std::abs(example.lse[0] - true_lse) < 1e-7);
  }
}

// ---- FlashAttention-1 ------------------------------------------------------------------------------------------------

TEST_CASE("F1-1 the proof of theorem 1 needs the inverse of l - step04") {
  const double sum = std::exp(0 - x.m1) * 1 + std::exp(1 - x.m1) * 2;  // exp(S - m1) V
  const double printed = x.l1 * sum, right = sum / x.l1;
  CHECK(std::abs(right - x.o1) < 1e-15);
  CHECK(std::abs(printed / right - x.l1 * x.l1) < 1e-14);
  // The next tile, with the printed and with the right sum over the keys so far
  const auto next = [](double o1) { return (x.l1 * std::exp(x.m1 - x.m) * o1 + x.p2 * x.v2) / x.l; };
  CHECK(near(next(right), true_o));
  CHECK_FALSE(near(next(printed), true_o));
}
TEST_CASE("F1-2 q and k are rows - step01") {
  // Q is N x d. As columns, q and k would have N numbers each, and there would be d x d products instead of N x N.
  const Index n = 5, d = 3;
  const Eigen::MatrixXd q = Eigen::MatrixXd::Random(n, d), k = Eigen::MatrixXd::Random(n, d), s = q * k.transpose();
  CHECK(s.rows() == n);
  CHECK(q.col(0).size() == n);
  CHECK(std::abs(s(4, 2) - q.row(4).dot(k.row(2))) < 1e-15);
  CHECK((q.transpose() * k).rows() == d);
}
TEST_CASE("F1-3 the backward pass takes 10 N N d operations and not of the order of N N - step06") {
  for (const Index d : {16, 32, 64, 128}) {
    const HeadSizes sizes{.nq = 256, .nk = 256, .d = d, .dv = d, .br = 64, .bc = 64, .diagonal = 256};
    CHECK(step06::step().main().flops(sizes).matmul == 10 * 256 * 256 * d);
    CHECK(step05::step().main().flops(sizes).matmul == 4 * 256 * 256 * d);  // backward = 2.5 forward
  }
}
TEST_CASE("F1-4 figure 2 counts 825 and 962 GFLOP - step01 step06") {
  const HeadSizes sizes{.nq = 1024, .nk = 1024, .d = 64, .dv = 64, .br = 64, .bc = 64, .diagonal = 1024};
  const double heads = 64 * 16;
  const double forward = double(step01::step().main().flops(sizes).matmul);
  double standard = 0;
  for (const Form& form : step06::step().forms)
    if (form.name == "standard") standard = double(form.flops(sizes).matmul);
  CHECK(std::round(heads * (forward + standard) / 1e9) == 825);
  CHECK(std::round(heads * (forward + double(step06::step().main().flops(sizes).matmul)) / 1e9) == 962);
  CHECK(heads * (forward + standard) / 1e9 > 12 * 66.6);  // the printed 66.6 and 75.2
}

// ---- FlashAttention-2 ------------------------------------------------------------------------------------------------

TEST_CASE("F2-1 dK is dS transposed times Q - step06") {
  // For N != d the printed Q dS^T is not even conformable; for N = d it is wrong
  Case<double> y({3, 3, 3, 3, 2, 2}, 1.);
  Memory memory;
  step05::forward(y.head(), memory);
  step06::backward(y.head(), y.gradients(), memory);
  using Matrix = Eigen::Matrix<double, 3, 3, Eigen::RowMajor>;
  const Eigen::Map<const Matrix> q(y.q.data()), k(y.k.data()), v(y.v.data()), d_o(y.d_o.data()), o(y.o.data()), dk(y.dk.data());
  Matrix p = (q * k.transpose()).array().exp();
  for (int i = 0; i < 3; ++i) p.row(i) /= p.row(i).sum();
  const Matrix dp = d_o * v.transpose();
  Matrix ds;
  for (int i = 0; i < 3; ++i) ds.row(i) = p.row(i).array() * (dp.row(i).array() - d_o.row(i).dot(o.row(i)));
  // Central differences of the definition
  Matrix differences;
  const double h = 1e-5;
  for (int e = 0; e < 9; ++e) {
    double loss[2];
    for (int side : {0, 1}) {
      Case<double> moved = y;
      moved.k[e] += side ? h : -h;
      const auto [moved_o, lse] = moved.define<double>();
      loss[side] = std::inner_product(moved_o.begin(), moved_o.end(), y.d_o.begin(), 0.);
    }
    differences.data()[e] = (loss[1] - loss[0]) / (2 * h);
  }
  CHECK((ds.transpose() * q - differences).cwiseAbs().maxCoeff() < 1e-8);
  CHECK((dk - differences).cwiseAbs().maxCoeff() < 1e-8);
  CHECK((q * ds.transpose() - differences).cwiseAbs().maxCoeff() > 0.1);
}
TEST_CASE("F2-2 softmax of two blocks is divided in both terms - step02") {
  const double first = std::exp(0 - x.m) * 1 + std::exp(1 - x.m) * 2, second = x.p2 * x.v2;
  CHECK(near(first / x.l + second, 3.5795));
  CHECK(near((first + second) / x.l, true_o));
}
TEST_CASE("F2-3 and F2-4 the second block of the online softmax - step03 step04") {
  const double second = x.p2 / x.l * x.v2;  // P~2 V2
  CHECK(near(1 / (x.l1 / x.l) * x.o1 + second, 3.8980));
  CHECK(near(x.l1 / x.l * x.o1 + second, 3.5709));  // ICLR version
  CHECK(near(x.l1 / x.l * std::exp(x.m1 - x.m) * x.o1 + second, true_o));
}
TEST_CASE("F2-5 the un-normalised second block - step05") {
  CHECK(near((1 / x.l1 * x.o1 + x.p2 * x.v2) / x.l, 2.8376));
  CHECK(near((x.l1 * std::exp(x.m1 - x.m) * x.o1 + x.p2 * x.v2) / x.l, true_o));
}
TEST_CASE("F2-6 the rescale factor of the two block example has no inverse - step05") {
  const double u1 = x.l1 * x.o1, factor = std::exp(x.m1 - x.m);
  CHECK(near((1 / factor * u1 + x.p2 * x.v2) / x.l, 6.2776));
  CHECK(near((factor * u1 + x.p2 * x.v2) / x.l, true_o));
}
TEST_CASE("F2-8 the rescale factor of algorithm 1 has no inverse - step05") {
  // The loop of line 10 over the two blocks, as printed and without the inverse
  const auto loop = [](bool inverse) {
    double m = -std::numeric_limits<double>::infinity(), l = 0, o = 0;
    const double s[2][2] = {{0, 1}, {2, -std::numeric_limits<double>::infinity()}}, v[2][2] = {{1, 2}, {3, 0}};
    for (int j = 0; j < 2; ++j) {
      const double m_new = std::max({m, s[j][0], s[j][1]}), alpha = std::exp(m - m_new);
      l = alpha * l + std::exp(s[j][0] - m_new) + std::exp(s[j][1] - m_new);
      const double start = inverse && j == 0 ? 0 : (inverse ? 1 / alpha : alpha) * o;  // the printed start is NaN: see below
      o = start + std::exp(s[j][0] - m_new) * v[j][0] + std::exp(s[j][1] - m_new) * v[j][1];
      m = m_new;
    }
    return o / l;
  };
  CHECK(near(loop(true), 6.2776));
  CHECK(near(loop(false), true_o));
  const double first = std::exp(-std::numeric_limits<double>::infinity() - x.m1);  // e^(m0 - m1) = 0
  CHECK(std::isnan(1 / first * 0.));
  CHECK(first * 0. == 0.);
}
TEST_CASE("F2-9 a tile needs no mask when its columns are left of its rows - step07") {
  const Range low{0, 2}, high{2, 4};  // N = 4, tiles of 2 x 2
  const auto admitted = [](Range rows, Range cols) {
    int count = 0;
    for (Index i = rows.begin; i < rows.end; ++i)
      for (Index j = cols.begin; j < cols.end; ++j) count += j <= i;
    return count;
  };
  CHECK(admitted(low, high) == 0);  // the printed case: rows less than columns
  CHECK(kind_of_tile(low, high, 0) == skip);
  CHECK(admitted(high, low) == 4);
  CHECK(kind_of_tile(high, low, 0) == full);
}
TEST_CASE("F2-10 D has one number for each query - step06") {
  const HeadSizes sizes{.nq = 5, .nk = 7, .d = 3, .dv = 2, .br = 2, .bc = 3, .diagonal = 7};
  CHECK(step06::step().main().traffic(sizes)[tensor::delta].writes == 5);  // N, not d
  Case<double> y({5, 7, 3, 2, 2, 3});
  Memory memory;
  step05::forward(y.head(), memory);
  const Index before = memory.counts()[tensor::delta].writes;
  step06::backward(y.head(), y.gradients(), memory);
  CHECK(memory.counts()[tensor::delta].writes - before == 5);
}
TEST_CASE("F2-11 the loop of algorithm 2 does not read O - step06") {
  Case<double> y({5, 7, 3, 2, 2, 3});
  Memory forward, memory;
  step05::forward(y.head(), forward);
  step06::backward(y.head(), y.gradients(), memory);
  CHECK(memory.counts()[tensor::o].reads == 5 * 2);        // once, for D; as printed 3 times more
  CHECK(memory.counts()[tensor::dq].reads == 0);
  CHECK(memory.counts()[tensor::dq].atomics == 3 * 5 * 3); // once a column tile
  const Traffic total = memory.counts().total();
  CHECK(total.reads == 160);
  CHECK(total.writes == 55);
  CHECK(total.atomics == 45);
}
TEST_CASE("F2-12 the end to end speed-up of 1-3 is that over FlashAttention") {
  CHECK(std::round(225. / 175 * 100) / 100 == 1.29);
}

// ---- Gaps (14.3), and slips (14.5) -----------------------------------------------------------------------------------

TEST_CASE("the block sizes of the paper need more than M - math 4-2 and 14-3 - step04 step06") {
  const auto sizes = [](Index m, Index d) {
    const Index bc = (m + 4 * d - 1) / (4 * d);
    return HeadSizes{.nq = 4096, .nk = 4096, .d = d, .dv = d, .br = std::min(bc, d), .bc = bc, .diagonal = 4096};
  };
  struct Row { Index m, d, bc, br, matrices; double relative; };
  for (const Row& row : {Row{49152, 64, 192, 64, 45056, 0.92}, Row{49152, 128, 96, 96, 58368, 1.19}, Row{98304, 64, 384, 64, 81920, 0.83},
                         Row{98304, 128, 192, 128, 106496, 1.08}}) {
    const HeadSizes x = sizes(row.m, row.d);
    CHECK(x.bc == row.bc);
    CHECK(x.br == row.br);
    const Index needed = step04::step().main().on_chip(x);
    CHECK(needed == row.matrices + 6 * row.br);
    CHECK(std::round(100. * double(row.matrices) / double(row.m)) == std::round(100 * row.relative));
  }
  // The same tiles for the backward pass, as FlashAttention-1 has them: 2 Bc (d + dv) + Br (2d + 2dv) + 2 Br Bc
  const HeadSizes x = sizes(49152, 64);
  const Index backward = 2 * x.bc * 128 + x.br * 256 + 2 * x.br * x.bc;
  CHECK(backward == 90112);
  CHECK(std::round(100. * double(backward) / 49152) == 183);
}
TEST_CASE("a tile that is masked whole is NaN as printed and 0 with the guarded shift - math 14-3 and E6 - step07") {
  const double inf = std::numeric_limits<double>::infinity();
  CHECK(std::isnan(std::exp(-inf - -inf)));
  CHECK(exp_shifted(-inf, -inf) == 0);
  CHECK(exp_shifted(0., 0.) == 1);
  // Rows without a key: 0 / 0 as printed, 0 and minus infinity here
  Case<double> y({5, 2, 4, 4, 2, 2, true});
  Memory memory;
  step07::forward(y.head(), memory);
  for (int i = 0; i < 3; ++i) CHECK(y.lse[i] == -inf);
  for (int e = 0; e < 12; ++e) CHECK(y.o[e] == 0);
}
TEST_CASE("the scale stands once in dQ and once in dK - math 14-3 - step06") {
  // With S = tau Q K^T, scaling Q by tau and computing with scale 1 gives tau times less in dQ and the same dK
  Case<double> a({4, 5, 3, 2, 2, 2}, 0.3), b({4, 5, 3, 2, 2, 2}, 1.);
  for (double& q : b.q) q *= 0.3;
  Memory memory;
  for (Case<double>* y : {&a, &b}) step05::forward(y->head(), memory), step06::backward(y->head(), y->gradients(), memory);
  for (std::size_t e = 0; e < a.dq.size(); ++e) CHECK(std::abs(a.dq[e] - 0.3 * b.dq[e]) < 1e-14);
  for (std::size_t e = 0; e < a.dk.size(); ++e) CHECK(std::abs(a.dk[e] - b.dk[e]) < 1e-14);
}
TEST_CASE("exp overflows above 11-09 in half and above 88-72 in float and 709-78 in double - math 1-2 and 14-5 - step01") {
  CHECK(std::exp(11.) < 65504);                          // the article: overflow above 11
  CHECK(std::abs(std::log(65520.) - 11.0901) < 1e-4);    // what rounds to infinity in half
  CHECK(std::isfinite(std::exp(88.72f)));
  CHECK(std::isinf(std::exp(88.73f)));
  CHECK(std::isfinite(std::exp(709.78)));
  CHECK(std::isinf(std::exp(709.79)));
}
