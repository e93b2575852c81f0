// The steps on Q, K, V of a real transformer (common/data/minilm), held to the sums that another implementation found: PyTorch, in
// float64. And what would become of these numbers without the maximum.
#include "common/attention/budget.hpp"
#include "common/runner/npy.hpp"
#include "common/runner/unsafe_softmax.hpp"
#include "tests/catch.hpp"
#include "tests/steps.hpp"
#include <cstdio>

namespace flashsteps {
namespace {

constexpr Index heads = 12, rows = 331, d = 32;
enum class Mask { none, causal };

/// Q, K, V of one layer [heads x rows x d].
template <class T> struct Layer {
  std::vector<T> q, k, v;
  Index kv_heads = heads;

  explicit Layer(int layer) {
    const std::string path = FLASHSTEPS_SOURCE_DIR "/common/data/minilm/layer" + std::to_string(layer);
    for (const auto& [numbers, file] : {std::pair{&q, "_q.npy"}, std::pair{&k, "_k.npy"}, std::pair{&v, "_v.npy"}}) {
      Npy<T> array = read_npy<T>(path + file, 4);
      REQUIRE(array.shape == std::vector<Index>{1, heads, rows, d});
      *numbers = std::move(array.numbers);
    }
  }
  /// K and V of `shared` heads, each the mean of a group.
  void pool(Index shared) {
    const Index g = kv_heads / shared, size = rows * d;
    for (std::vector<T>* x : {&k, &v}) {
      std::vector<T> mean(shared * size);
      for (Index h = 0; h < shared; ++h)
        for (Index e = 0; e < size; ++e) {
          double sum = 0;
          for (Index m = 0; m < g; ++m) sum += double((*x)[(h * g + m) * size + e]);
          mean[h * size + e] = T(sum / double(g));
        }
      *x = std::move(mean);
    }
    kv_heads = shared;
  }
  RawHead<T> raw(Index h, Mask mask) const {
    const Index q_at = h * rows * d, kv_at = h / (heads / kv_heads) * rows * d;
    return {{&q[q_at], d}, {&k[kv_at], d}, {&v[kv_at], d}, {}, {}, rows, rows, d, d, T(1 / std::sqrt(32.)), mask == Mask::causal ? 0 : rows};
  }
};

/// What another implementation found: sums over O and L, four elements of O and one of L.
struct Foreign {
  int layer;
  Mask mask;
  Index kv_heads;
  double sum_o, sum_o2, sum_lse, o[4], lse;
};
const std::vector<Foreign> foreign{
    {0, Mask::none, 12, 2055.599012851646, 7078.414628371938, 41628.03488490246, {0.131540430387, 0.298875714042, 0.0767948227909, -0.273554154815}, 5.98201704778},
    {0, Mask::causal, 12, 1681.7242230909483, 7264.099549345173, 37990.450037583796, {0.13088981694, 0.409424338682, 0.142793924193, -0.148974222811}, 4.95514253899},
    {5, Mask::none, 12, 148.3954602187489, 6644.281076812498, 21438.958851256368, {0.0194976654224, 0.128394301189, -0.245416016963, 0.092929983875}, 5.46435851882},
    {5, Mask::causal, 12, 904.2487575950436, 7820.009921687573, 18932.673751865455, {0.00316365784964, 0.187801721598, -0.0998195406488, 0.147293354262}, 4.48638238871},
    {0, Mask::causal, 4, 2070.996178748399, 1707.7995005891826, 24319.04768618892, {0.0400925797953, 0.308901367436, 0.00494509343841, -0.0404624018198}, NAN},
    {5, Mask::causal, 4, 292.6814222567002, 2244.4284040455996, 18338.694992295605, {0.124450586964, 0.0684950981059, -0.074448694709, 0.165100194256}, NAN}};

/// How far a result in T may be from the foreign one. An element: the error budget of standard attention over all heads, twice, for
/// the other implementation rounds too (in float, so does the mean of K and V). A sum: rows err independently of one another, the
/// elements of a row may err together, so d sqrt(rows) elements' worth; a square errs by 2 |o| of it. Besides, the foreign sum was
/// itself rounded to double, in pairs: log2(n) u sum |x| for n numbers x.
template <class T> struct Tolerance {
  double o, lse, sum_o, sum_o2, sum_lse;

  Tolerance(const Layer<T>& layer, Mask mask) {
    std::vector<Index> all(rows);
    for (Index i = 0; i < rows; ++i) all[i] = i;
    Judgement<T> judgement;
    double largest = 0;
    for (Index h = 0; h < heads; ++h) judgement += Judgement<T>().add(layer.raw(h, mask), {}, all);
    for (const T& v : layer.v) largest = std::max(largest, std::abs(double(v)));  // no |o| is larger
    o = 2 * judgement.of(Result::o).budget, lse = 2 * judgement.of(Result::lse).budget;
    const double independent = std::sqrt(double(heads * rows));
    sum_o = o * d * independent, sum_o2 = 2 * largest * sum_o, sum_lse = lse * independent;
  }
};

/// Every forward form of a step on one input.
template <class T> void check(const Step& step, const Layer<T>& layer, const Foreign& expected, const Tolerance<T>& tolerance) {
  for (const Form& form : step.forms) {
    if (form.backward()) continue;
    CAPTURE(step.name, form.name, expected.layer, expected.mask == Mask::causal, layer.kv_heads);
    std::vector<T> o(heads * rows * d, std::numeric_limits<T>::quiet_NaN()), lse(heads * rows, std::numeric_limits<T>::quiet_NaN());
    for (Index h = 0; h < heads; ++h) {
      const Index shared = step.kv_head(h, heads, layer.kv_heads);
      Memory memory;
      form.template algorithm<T>().forward({{tensor::q, &layer.q[h * rows * d], rows, d},
                                            {tensor::k, &layer.k[shared * rows * d], rows, d},
                                            {tensor::v, &layer.v[shared * rows * d], rows, d},
                                            {tensor::o, &o[h * rows * d], rows, d},
                                            {tensor::lse, &lse[h * rows], rows, 1},
                                            T(1 / std::sqrt(32.)), 48, 64, expected.mask == Mask::causal ? 0 : rows},
                                           memory);
    }
    long double sum_o = 0, sum_o2 = 0, sum_lse = 0;
    double size_o = 0, size_lse = 0;
    for (const T& x : o) sum_o += (long double)(x), sum_o2 += (long double)(x) * (long double)(x), size_o += std::abs(double(x));
    for (const T& x : lse) sum_lse += (long double)(x), size_lse += std::abs(double(x));
    const double u = std::numeric_limits<double>::epsilon() / 2, levels_o = std::log2(double(o.size())), levels_lse = std::log2(double(lse.size()));
    // Differences as shares of what they may be; NaN is not below 1
    const double share_o = std::abs(double(sum_o) - expected.sum_o) / (tolerance.sum_o + levels_o * u * size_o);
    const double share_o2 = std::abs(double(sum_o2) - expected.sum_o2) / (tolerance.sum_o2 + levels_o * u * double(sum_o2));
    const double share_lse = std::abs(double(sum_lse) - expected.sum_lse) / (tolerance.sum_lse + levels_lse * u * size_lse);
    CHECK(share_o <= 1);
    CHECK(share_o2 <= 1);
    CHECK(share_lse <= 1);
    const double printed = 1e-11;  // 12 digits
    for (Index e = 0; e < 4; ++e) CHECK(std::abs(double(o[(3 * rows + 100) * d + e]) - expected.o[e]) <= tolerance.o + printed);
    if (!std::isnan(expected.lse)) CHECK(std::abs(double(lse[3 * rows + 100]) - expected.lse) <= tolerance.lse + printed);
  }
}
template <class T> void check_steps() {
  for (const Foreign& expected : foreign) {
    Layer<T> layer(expected.layer);
    if (expected.kv_heads < heads) layer.pool(expected.kv_heads);
    const Tolerance<T> tolerance(layer, expected.mask);
    for (const Step* step : all_steps()) {
      const bool takes_it = (expected.mask == Mask::none || step->causal) && (expected.kv_heads == heads || step->gqa);
      if (takes_it) check(*step, layer, expected, tolerance);
    }
  }
}

/// The scaled scores of a row, in double.
std::vector<double> scores(const RawHead<double>& head, Index i) {
  std::vector<double> s;
  for (Index j = 0; j < head.keys(i); ++j) {
    double dot = 0;
    for (Index x = 0; x < d; ++x) dot += head.q(i, x) * head.k(j, x);
    s.push_back(dot * head.scale);
  }
  return s;
}
std::string fixed(double x, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, x);
  return text;
}

}  // namespace

TEST_CASE("step01 step02 step03 step04 step05 step06 step07 step08 on real data in double") { check_steps<double>(); }
TEST_CASE("step01 step02 step03 step04 step05 step06 step07 step08 on real data in float") { check_steps<float>(); }

TEST_CASE("step01 the scores of real data") {
  struct Range { int layer; const char *low, *high; Index vanishing; };
  for (const Range& expected : {Range{0, "-56.4", "76.7", 122}, Range{5, "-9.0", "6.9", 0}}) {
    const Layer<double> layer(expected.layer);
    double low = 0, high = 0, spread = 0;
    Index vanishing = 0;  // rows with a term exp(s - m) that is exactly 0 in float
    for (Index h = 0; h < heads; ++h)
      for (Index i = 0; i < rows; ++i) {
        const std::vector<double> s = scores(layer.raw(h, Mask::none), i);
        const auto [least, most] = std::minmax_element(s.begin(), s.end());
        low = std::min(low, *least), high = std::max(high, *most), spread = std::max(spread, *most - *least);
        vanishing += std::exp(float(*least - *most)) == 0;
      }
    CAPTURE(expected.layer);
    CHECK(fixed(low, 1) == expected.low);
    CHECK(fixed(high, 1) == expected.high);
    CHECK(vanishing == expected.vanishing);
    if (expected.layer == 0) CHECK(fixed(spread, 0) == "133");
  }
}

TEST_CASE("step01 softmax without the maximum on real data") {
  const auto unsafe = [](int number) {
    const Layer<float> layer(number);
    UnsafeSoftmax all;
    for (Index h = 0; h < heads; ++h) all += unsafe_softmax_in_half(layer.raw(h, Mask::none));
    return all;
  };
  // Layer 0 overflows half in 419 rows by one term and in 72 more by the sum; float is a factor of 1.7e5 away from it
  const UnsafeSoftmax peaked = unsafe(0);
  CHECK(peaked.rows == 3972);
  CHECK(peaked.nan_rows == 419);
  CHECK(peaked.zero_rows == 72);
  CHECK(fixed(peaked.headroom / 1e5, 1) == "1.7");
  // Layer 5 does not
  const UnsafeSoftmax mild = unsafe(5);
  CHECK(mild.rows == 3972);
  CHECK(mild.nan_rows == 0);
  CHECK(mild.zero_rows == 0);
  CHECK(mild.headroom > peaked.headroom);

  // In float no term and no sum of either overflows
  for (const int number : {0, 5}) {
    const Layer<double> layer(number);
    bool finite = true;
    for (Index h = 0; h < heads; ++h)
      for (Index i = 0; i < rows; ++i) {
        float sum = 0;
        for (const double s : scores(layer.raw(h, Mask::none), i)) sum += std::exp(float(s));
        finite = finite && std::isfinite(sum);
      }
    CHECK(finite);
  }
}

}  // namespace flashsteps
