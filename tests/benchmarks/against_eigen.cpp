// Step 05 beside FlashAttention-2 written plainly with Eigen's matrix products, and step 07 under a causal mask beside the same, which skips
// what is masked. In turn, in one process, on one thread, each result held to the other.
//   against_eigen [ROUNDS [N ...]]        plain Eigen compiled with the flags of the steps
//   against_eigen_tuned [ROUNDS [N ...]]  plain Eigen tuned for the processor of this machine, as -march=native alone does
// Prints, for each size, the median of the ratios of each round (time of plain Eigen / time of the step) with the smallest and the largest.
// Exit status: 0; 1 results differ; 2 wrong use, or a build with assertions.
#include "common/runner/execute.hpp"
#include "common/runner/tile_choice.hpp"
#include "steps/all.hpp"
#include "tests/benchmarks/machine.hpp"
#include "tests/benchmarks/mode.hpp"

#include <cstdlib>
#include <fmt/format.h>

namespace flashsteps {
namespace {

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }
double median(std::vector<double> x) {
  std::sort(x.begin(), x.end());
  return x[x.size() / 2];
}

/// The same algorithm with Eigen's products and Eigen's exponential, tiles of size x size. One head.
/// @param p     the problem
/// @param out   gets O and L
/// @param size  of a tile
template <class T> void plain_eigen(const Problem<T>& p, Output<T>& out, Index size) {
  using Rows = Eigen::Matrix<T, -1, -1, Eigen::RowMajor>;
  using Columns = Eigen::Matrix<T, -1, -1>;
  using Vector = Eigen::Array<T, -1, 1>;
  const Index n = p.seq_q(), d = p.head_dim();
  const Eigen::Map<const Rows> q(p.q.numbers.data(), n, d), k(p.k.numbers.data(), n, d), v(p.v.numbers.data(), n, d);
  Eigen::Map<Rows> o(out.o.numbers.data(), n, d);
  for (const Range i : tiles(n, size)) {
    const Columns q_i = p.scale * q.middleRows(i.begin, i.size());
    Columns o_i = Columns::Zero(i.size(), d), s(i.size(), size);
    Vector m = Vector::Constant(i.size(), -infinity<T>), l = Vector::Zero(i.size());
    for (const Range j : tiles(p.causal ? i.end : n, size)) {  // no tile beyond the diagonal
      s.resize(i.size(), j.size());
      s.noalias() = q_i * k.middleRows(j.begin, j.size()).transpose();
      for (Index c = 0; p.causal && j.end - 1 > i.begin && c < j.size(); ++c)
        s.col(c).head(std::clamp<Index>(j.begin + c - i.begin, 0, i.size())).setConstant(-infinity<T>);
      const Vector m_new = m.max(s.rowwise().maxCoeff().array()), alpha = (m - m_new).exp();
      for (Index c = 0; c < j.size(); ++c) s.col(c).array() = (s.col(c).array() - m_new).exp();
      l = alpha * l + s.rowwise().sum().array();
      o_i.array().colwise() *= alpha;
      o_i.noalias() += s * v.middleRows(j.begin, j.size());
      m = m_new;
    }
    o.middleRows(i.begin, i.size()) = l.inverse().matrix().asDiagonal() * o_i;
    Eigen::Map<Vector>(out.lse.numbers.data() + i.begin, i.size()) = m + l.log();
  }
}

/// One line for one size.
/// @return do the results agree?
template <class T> bool compare(const Step& step, Index n, Index d, int rounds) {
  Options options;
  options.seed = 1, options.heads = 1, options.seq_q = n, options.head_dim = d, options.causal = step.causal;
  options.dtype = std::is_same_v<T, double> ? Dtype::float64 : Dtype::float32;
  const Problem<T> p = make_problem<T>(step, options);
  const Form& form = step.forward();
  const TileChoice choice = tiles_of(step, form, p, options, cache_bytes() / Index(sizeof(T)));
  Output<T> mine(p), other(p);
  const double pairs = step.causal ? double(n) * double(n + 1) / 2 : double(n) * double(n);
  const int repeat = int(std::max<Index>(1, (1 << 22) / (n * n)));  // so that a round takes long enough to be timed
  const auto run_step = [&] {
    double seconds = 0;
    for (int x = 0; x < repeat; ++x) {
      Memory memory(choice.capacity);
      seconds += execute_once(form, p, mine, choice.tiles, step.kv_head, memory);
    }
    return seconds;
  };
  const double allowed = std::is_same_v<T, float> ? 1e-4 : 1e-11;
  bool agree = true;
  std::string ratios_text;
  std::vector<double> all;
  for (const Index size : {64, 128, 256}) {
    std::vector<double> ratios;
    for (int r = -1; r < rounds; ++r) {
      const double step_seconds = run_step(), start = now();
      for (int x = 0; x < repeat; ++x) plain_eigen(p, other, size);
      const double eigen_seconds = now() - start;
      if (r < 0) continue;  // the first round warms up
      all.push_back(step_seconds);
      ratios.push_back(eigen_seconds / step_seconds);
    }
    for (const auto& [a, b] : {std::pair{&mine.o, &other.o}, {&mine.lse, &other.lse}})
      for (std::size_t x = 0; x < a->numbers.size(); ++x)
        if (!(std::abs(double(a->numbers[x]) - double(b->numbers[x])) <= allowed)) agree = false;
    ratios_text += fmt::format("  {}: {:.2f} [{:.2f}, {:.2f}]", size, median(ratios), *std::min_element(ratios.begin(), ratios.end()),
                               *std::max_element(ratios.begin(), ratios.end()));
  }
  fmt::print("{:02} {:<6} {:<6} N {:5} d {:3}  {:6.1f} GF/s; plain Eigen in tiles of{}{}\n", step.number, std::is_same_v<T, float> ? "float" : "double",
             step.causal ? "causal" : "full", n, d, 4 * double(repeat) * pairs * double(d) / 1e9 / median(all), ratios_text, agree ? "" : "  RESULTS DIFFER");
  std::fflush(stdout);
  return agree;
}

}  // namespace
}  // namespace flashsteps

int main(int argc, char** argv) {
  using namespace flashsteps;
  if (bench::refuses_assertions("against_eigen")) return 2;
  std::vector<Index> numbers;
  for (int a = 1; a < argc; ++a) {
    char* end = nullptr;
    numbers.push_back(std::strtol(argv[a], &end, 10));
    if (*end != 0 || numbers.back() < 1 || numbers.back() > (1 << 20)) {
      fmt::print(stderr, "against_eigen [ROUNDS [N ...]]: '{}' is not a number from 1 to {}\n", argv[a], 1 << 20);
      return 2;
    }
  }
  const int rounds = numbers.empty() ? 7 : int(numbers.front());
  const std::vector<Index> lengths = numbers.size() > 1 ? std::vector<Index>(numbers.begin() + 1, numbers.end()) : std::vector<Index>{1024, 4096};
  omp_set_num_threads(1);
  bool agree = true;
  try {
    fmt::print("{}Time of plain Eigen{} / time of the step with its own tiles, one head, one thread: median [least, most] of {} rounds in turn\n",
               bench::machine_text(), FLASHSTEPS_EIGEN_FLAGS, rounds);
    for (const Step* step : {&step05::step(), &step07::step()})
      for (const bool wide : {false, true})
        for (const Index d : {64, 128})
          for (const Index n : lengths) agree = (wide ? compare<double>(*step, n, d, rounds) : compare<float>(*step, n, d, rounds)) && agree;
  } catch (const std::exception& error) {
    fmt::print(stderr, "against_eigen: {}\n", error.what());
    return 1;
  }
  return agree ? 0 : 1;
}
