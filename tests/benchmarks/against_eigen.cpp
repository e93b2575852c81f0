// Step 05 beside FlashAttention-2 written plainly with Eigen's matrix products, in turn, in one process, on one thread.
//   against_eigen [ROUNDS]
// Prints, for each size, the median of the ratios of each round (time of plain Eigen / time of step 05) with the smallest and the largest.
#include "steps/05_fa2_loop_swap/forward.hpp"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>

namespace flashsteps {

namespace step05 {
extern template void forward(const Head<float>&, Memory&);
}

namespace {

using Matrix = Eigen::Matrix<float, -1, -1, Eigen::RowMajor>;
using View = Eigen::Map<const Matrix>;
using Vector = Eigen::ArrayXf;

/// The same algorithm with Eigen's products and Eigen's exponential, tiles of size x size.
void plain_eigen(const float* q, const float* k, const float* v, float* o, float* lse, Index n, Index d, float scale, Index size) {
  for (const Range i : tiles(n, size)) {
    const Eigen::MatrixXf q_i = scale * View(q + i.begin * d, i.size(), d);
    Eigen::MatrixXf o_i = Eigen::MatrixXf::Zero(i.size(), d), s(i.size(), size);
    Vector m = Vector::Constant(i.size(), -infinity<float>), l = Vector::Zero(i.size());
    for (const Range j : tiles(n, size)) {
      s.resize(i.size(), j.size());
      s.noalias() = q_i * View(k + j.begin * d, j.size(), d).transpose();
      const Vector m_new = m.max(s.rowwise().maxCoeff().array()), alpha = (m - m_new).exp();
      for (Index c = 0; c < j.size(); ++c) s.col(c).array() = (s.col(c).array() - m_new).exp();
      l = alpha * l + s.rowwise().sum().array();
      o_i.array().colwise() *= alpha;
      o_i.noalias() += s * View(v + j.begin * d, j.size(), d);
      m = m_new;
    }
    Eigen::Map<Matrix>(o + i.begin * d, i.size(), d) = l.inverse().matrix().asDiagonal() * o_i;
    Eigen::Map<Vector>(lse + i.begin, i.size()) = m + l.log();
  }
}

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }
double median(std::vector<double> x) {
  std::sort(x.begin(), x.end());
  return x[x.size() / 2];
}

void compare(Index n, Index d, int rounds) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> q(n * d), k(n * d), v(n * d), o(n * d), other(n * d), lse(n);
  for (auto* x : {&q, &k, &v})
    for (float& y : *x) y = normal(random);
  const float scale = 1 / std::sqrt(float(d));
  const Head<float> head{{tensor::q, q.data(), n, d}, {tensor::k, k.data(), n, d}, {tensor::v, v.data(), n, d}, {tensor::o, o.data(), n, d}, {tensor::lse, lse.data(), n, 1}, scale, 64, 64, n, {}};
  const int repeat = int(std::max<Index>(1, (1 << 22) / (n * n)));  // so that a round takes long enough to be timed
  std::printf("N %5td d %3td  ", n, d);
  for (const Index size : {64, 128, 256}) {
    std::vector<double> ratios, mine;
    for (int r = -1; r < rounds; ++r) {
      const double start = now();
      for (int x = 0; x < repeat; ++x) {
        Memory memory;
        step05::forward(head, memory);
      }
      const double middle = now();
      for (int x = 0; x < repeat; ++x) plain_eigen(q.data(), k.data(), v.data(), other.data(), lse.data(), n, d, scale, size);
      const double end = now();
      if (r < 0) continue;  // the first round warms up
      mine.push_back(middle - start);
      ratios.push_back((end - middle) / (middle - start));
    }
    float error = 0;
    for (std::size_t x = 0; x < o.size(); ++x) error = std::max(error, std::abs(o[x] - other[x]));
    if (!(error < 1e-4f)) std::printf("DIFFERENT %g ", error);
    if (size == 64) std::printf("step 05 %6.1f GF/s; plain Eigen in tiles of", 4. * double(repeat) * double(n) * double(n) * double(d) / 1e9 / median(mine));
    std::printf("  %td: %.2f [%.2f, %.2f]", size, median(ratios), *std::min_element(ratios.begin(), ratios.end()), *std::max_element(ratios.begin(), ratios.end()));
  }
  std::printf("\n");
}

}  // namespace
}  // namespace flashsteps

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::max(5, std::atoi(argv[1])) : 9;
#ifndef NDEBUG
  std::fprintf(stderr, "against_eigen: built with assertions on, which cost a third of the speed: build with NDEBUG\n");
  return 2;
#endif
  std::printf("time of plain Eigen / time of step 05 (tiles of 64 x 64), float, one thread: median [min, max] of %d rounds\n", rounds);
  for (const flashsteps::Index d : {64, 128})
    for (const flashsteps::Index n : {1024, 4096}) flashsteps::compare(n, d, rounds);
}
