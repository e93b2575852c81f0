// How exact the steps stay over many keys: at 8192, no worse than 1.5 times standard attention in the same precision.
#include "tests/case.hpp"
#include "tests/catch.hpp"
#include "tests/steps.hpp"

namespace flashsteps {
namespace {

constexpr Index rows = 64, keys = 8192;

/// 64 queries of a sequence of 8192, four times as large as a standard normal number is, so that few keys share most of the weight.
/// They are the last ones, if there is a mask.
Case<float> problem(Index d, bool causal) {
  Case<float> c({rows, keys, d, d, 64, 64, causal}, float(1 / std::sqrt(double(d))), 8192);
  for (float& q : c.q) q *= 4;
  return c;
}

/// sqrt(sum (x - reference)^2 / sum reference^2)
double relative_rms(const std::vector<float>& x, const std::vector<double>& reference) {
  double error = 0, size = 0;
  for (std::size_t i = 0; i < reference.size(); ++i) {
    error += (double(x[i]) - reference[i]) * (double(x[i]) - reference[i]);
    size += reference[i] * reference[i];
  }
  return std::sqrt(error / size);
}

/// O by standard attention in float: with Eigen's products, and with sums that go through all keys one by one.
struct Standard {
  std::vector<float> eigen, one_by_one;

  explicit Standard(const Case<float>& c) {
    for (Index i = 0; i < rows; ++i) {
      const RawHead<float> head = c.raw();
      const std::vector<float> o = Judgement<float>::naive_row(head, i).o;
      eigen.insert(eigen.end(), o.begin(), o.end());

      std::vector<float> s(head.keys(i)), sum(c.dv);
      for (Index j = 0; j < head.keys(i); ++j) {
        const Eigen::Map<const Eigen::ArrayXf> q(head.q.data + i * c.d, c.d), k(head.k.data + j * c.d, c.d);
        s[j] = c.scale * (q * k).sum();
      }
      const float m = *std::max_element(s.begin(), s.end());
      float l = 0;
      for (Index j = 0; j < head.keys(i); ++j) {
        const float p = std::exp(s[j] - m);
        l += p;
        for (Index e = 0; e < c.dv; ++e) sum[e] += p * head.v(j, e);
      }
      for (const float x : sum) one_by_one.push_back(x / l);
    }
  }
};

/// Runs the forms (but for standard attention) whose steps `wanted` takes, and calls check(form, error) with their relative rms errors.
template <class Wanted, class Check> void for_errors(Case<float>& c, const std::vector<double>& reference, Wanted wanted, Check check) {
  for (const ForwardForm<float>& form : forward_forms<float>()) {
    if ((c.causal && !form.masks) || !wanted(std::string(form.name).substr(0, 6)) || form.name == std::string("step01 standard")) continue;
    c.poison();
    Memory memory;
    form.run(c.head(), memory);
    check(form.name, relative_rms(c.o, reference));
  }
}
std::string title(const Case<float>& c) {
  return "head dimension " + std::to_string(c.d) + (c.causal ? ", causal" : ", full") + ", seed " + std::to_string(c.seed) + ": ";
}

}  // namespace

TEST_CASE("step04 step05 step07 step08 stay as exact as standard attention over 8192 keys") {
  for (const Index d : {64, 128})
    for (const bool causal : {false, true}) {
      Case<float> c = problem(d, causal);
      const std::vector<double> reference = c.define<double>().first;
      const double standard = relative_rms(Standard(c).eigen, reference);
      std::string report = title(c) + "error of standard attention " + std::to_string(standard * 1e7) + "e-7, times";
      for_errors(c, reference, [](const std::string& step) { return step >= "step04"; }, [&](const char* name, double error) {
        report += std::string("; ") + name + " " + std::to_string(error / standard);
        CAPTURE(title(c), name, standard, error);
        CHECK(error <= 1.5 * standard);
      });
      INFO(report);
      CHECK(standard > 0);
    }
}

TEST_CASE("step01 step02 step03 keep beside a sum what rounding lost") {
  // Standard attention with sums that go through all keys one by one is what they would be without it.
  for (const Index d : {64, 128}) {
    Case<float> c = problem(d, false);
    const std::vector<double> reference = c.define<double>().first;
    const Standard o(c);
    const double standard = relative_rms(o.eigen, reference), one_by_one = relative_rms(o.one_by_one, reference);
    std::string report = title(c) + "errors over that of standard attention: its sums one by one " + std::to_string(one_by_one / standard);
    for_errors(c, reference, [](const std::string& step) { return step < "step04"; }, [&](const char* name, double error) {
      report += std::string("; ") + name + " " + std::to_string(error / standard);
      CAPTURE(title(c), name, standard, one_by_one, error);
      CHECK(error <= 1.5 * standard);
    });
    INFO(report);
    CHECK(one_by_one > 5 * standard);
  }
}

}  // namespace flashsteps
