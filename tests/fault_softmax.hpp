#pragma once
// Cases of softmax itself, for whatever runs them: OnCpu, OnKernels.
#include "tests/fault_case.hpp"

namespace flashsteps {

/// C06: a masked first tile leaves no maximum behind.
template <class On> void c06(On& on) {
  using T = typename On::Number;
  for (const Index off : {0, 64}) {
    std::vector<double> scores(128), v(128);
    for (Index j = 0; j < 128; ++j) scores[j] = j >= off && j < off + 64 ? minus_infinity : -200.0 - double(j % 2), v[j] = double(j % 2);
    on.forward(one_row<T>(scores, v), {{1, 64}, {1, 32}, {1, 16}, {8, 13}, {1, 1}, {1, 128}}, [&](const Case<T>& y) {
      CHECK(error(y.o, {0.26894142137}) <= on.tolerance);
      CHECK(error(y.lse, {-196.22100241}) <= on.tolerance);
    });
  }
}

/// C07: a long row with one finite score.
template <class On> void c07(On& on) {
  using T = typename On::Number;
  std::vector<double> scores(64, minus_infinity);
  on.softmax(scores, [&](const std::vector<T>& p, T lse) {
    CHECK(p.size() == 64);
    CHECK(all_are(p, 0));
    CHECK(lse == T(minus_infinity));
  });
  scores[50] = 10;
  on.softmax(scores, [&](const std::vector<T>& p, T lse) {
    CHECK(p[50] == T(1));
    CHECK(all_are(p, 0, 0, 50));
    CHECK(all_are(p, 0, 51, 64));
    CHECK(lse == T(10));
  });
  // V is exact in every type
  const Index n = on.long_row, at = n / 2;
  scores.assign(n, minus_infinity), scores[at] = 10;
  std::vector<double> v = counted(n);
  for (double& y : v) y = std::fmod(y, 251);
  on.forward(one_row<T>(scores, v), {{1, 64}, {1, 1000}, {1, 4099}, {1, n}}, [&](const Case<T>& y) {
    CHECK(y.o[0] == T(at % 251));
    CHECK(y.lse[0] == T(10));
  });
}

/// C08: the maximum does not start at zero.
template <class On> void c08(On& on) {
  using T = typename On::Number;
  on.softmax({-10000, -10000}, [&](const std::vector<T>& p, T lse) {
    CHECK(error(p, {0.5, 0.5}) <= on.tolerance);
    CHECK(error(std::vector<T>{lse}, {-9999.30685282}) <= on.tolerance);
  });
  on.softmax({-1000, -1001, -1002}, [&](const std::vector<T>& p, T lse) {
    CHECK(error(p, {0.665240955775, 0.244728471055, 0.0900305731704}) <= on.tolerance);
    CHECK(error(std::vector<T>{lse}, {-999.592394036}) <= on.tolerance);
  });
}

/// C09: sums of different maxima.
template <class On> void c09(On& on) {
  using T = typename On::Number;
  std::vector<double> scores = counted(64);
  for (const bool mirrored : {false, true}) {
    on.softmax(scores, [&](std::vector<T> p, T lse) {
      if (mirrored) std::reverse(p.begin(), p.end());
      CHECK(error_at(p, 62, {0.232544157935, 0.632120558829}) <= on.tolerance);
      CHECK(error(std::vector<T>{lse}, {63.4586751454}) <= on.tolerance);
      double sum = 0;
      for (const T& y : p) sum += double(y);
      CHECK(std::abs(sum - 1) <= on.tolerance);
    });
    std::reverse(scores.begin(), scores.end());
  }
  on.softmax(std::vector<double>(64, -3.0), [&](const std::vector<T>& p, T lse) {
    CHECK(error(p, std::vector<double>(64, 0.015625)) <= on.tolerance);
    CHECK(error(std::vector<T>{lse}, {1.15888308336}) <= on.tolerance);
  });
}

/// C25: L is a natural logarithm.
template <class On> void c25(On& on) {
  using T = typename On::Number;
  on.forward(one_row<T>(std::vector<double>(8, 0.0), counted(8)), {{1, 1}, {1, 3}, {1, 8}, {4, 16}}, [&](const Case<T>& y) {
    CHECK(error(y.lse, {2.07944154168}) <= on.tolerance);
  });
  Case<T> x = rule_o<T>({3, 3, 4, 4});
  x.scale = T(0.3);
  on.forward(x, all_pairs({1, 2, 3, 4}), [&](const Case<T>& y) { CHECK(error(y.lse, {1.23549108839, 1.20842317803, 1.51051560021}) <= on.tolerance); });
}

// ---- Merging what parts of the keys give (math 12.1) ----

template <class T> struct Part { T o, lse; };
/// L = log sum exp L_t, O = sum exp(L_t - L) O_t; (0, -inf) is neutral.
template <class T> Part<T> merge(const std::vector<Part<T>>& parts) {
  T top = -infinity<T>, z = 0, o = 0;
  bool empty = true;
  for (const Part<T>& part : parts) top = std::fmax(top, part.lse), empty = empty && part.lse == -infinity<T>;
  if (empty) return {0, -infinity<T>};
  for (const Part<T>& part : parts) z += std::exp(part.lse - top);
  for (const Part<T>& part : parts)
    if (part.lse != -infinity<T>) o += std::exp(part.lse - top) / z * part.o;
  return {o, top + std::log(z)};
}

/// C26, C27: the parts of a row merge to the row.
template <class On> void c26_parts(On& on) {
  using T = typename On::Number;
  for (const double size : {1., 300.}) {
    INFO("scores of size " << size);
    Case<T> x({4, 23, 5, 1}, T(size));
    for (const Index hidden : {5, 6, 7, 8, 22}) {  // keys 5 to 8: a part that is empty
      std::fill_n(&x.k[hidden * x.d], x.d, T(0));
      x.k[hidden * x.d] = T(minus_infinity);
    }
    for (Index i = 0; i < x.nq; ++i) x.q[i * x.d] = std::abs(x.q[i * x.d]);
    on.every_form(x, [&](auto run) {
      Case<T> whole = x;
      run(whole);
      std::vector<std::vector<Part<T>>> parts(x.nq);
      const std::vector<Index> ends{0, 5, 9, 9, 14, 23};
      for (std::size_t n = 1; n < ends.size(); ++n) {
        const Index first = ends[n - 1], end = ends[n];
        Case<T> part({x.nq, end - first, x.d, x.dv}, x.scale);
        part.q = x.q;
        part.k.assign(x.k.begin() + first * x.d, x.k.begin() + end * x.d), part.v.assign(x.v.begin() + first * x.dv, x.v.begin() + end * x.dv);
        run(part);
        for (Index i = 0; i < x.nq; ++i) parts[i].push_back({part.o[i], part.lse[i]});
        if (n == 2 || n == 3) CHECK((all_are(part.o, 0) && all_are(part.lse, minus_infinity)));
      }
      for (Index i = 0; i < x.nq; ++i) {
        const Part<T> merged = merge(parts[i]);
        CHECK(error(std::vector<T>{merged.o}, {double(whole.o[i])}) <= size * on.tolerance);
        CHECK(error(std::vector<T>{merged.lse}, {double(whole.lse[i])}) <= on.tolerance);
      }
    });
  }
}

/// C28: a scale of 0 is a scale.
template <class On> void c28(On& on) {
  using T = typename On::Number;
  Case<T> x = rule_o<T>({3, 3, 2, 2, 1, 1, true});
  on.forward(x, all_pairs({1, 2, 3, 4}), [&](const Case<T>& y) {
    CHECK(error(y.o, {-1.125, -1, -0.548271154487, -1.21627331707, -0.455847258651, -1.00478236557}) <= on.tolerance);
  });
  x.scale = 0;
  on.forward(x, all_pairs({1, 2, 3, 4}), [&](const Case<T>& y) {
    CHECK(error(y.o, {-1.125, -1, -0.625, -1.1875, -0.541666666667, -0.791666666667}) <= on.tolerance);
    CHECK(error(y.lse, {0, 0.69314718056, 1.09861228867}) <= on.tolerance);
  });
}

/// C29: old terms shrink when the maximum grows.
template <class On> void c29(On& on) {
  using T = typename On::Number;
  const TileSizes sizes{{1, 1}, {1, 2}, {2, 1}};
  on.forward(one_row<T>({0, 1}, {1, 3}), sizes, [&](const Case<T>& y) {
    CHECK(error(y.o, {2.46211715726}) <= on.tolerance);
    CHECK(error(y.lse, {1.31326168752}) <= on.tolerance);
  });
  on.forward(one_row<T>({1, 0}, {3, 1}), sizes, [&](const Case<T>& y) { CHECK(error(y.o, {2.46211715726}) <= on.tolerance); });
}

/// C36: one key with a score of 1e11.
template <class On> void c36(On& on) {
  using T = typename On::Number;
  Case<T> x({1, 1, 64, 64}, T(0.125));
  for (std::vector<T>* tensor : {&x.q, &x.k, &x.v}) tensor->assign(64, T(133120));
  on.forward(x, {{1, 1}, {64, 64}, {2, 3}}, [&](const Case<T>& y) {
    CHECK(all_are(y.o, 133120));
    CHECK(y.lse[0] == T(141767475200.));
  });
}

/// C44: scores of thousands.
template <class On> void c44(On& on) {
  using T = typename On::Number;
  for (const double sign : {1., -1.}) {
    Case<T> x({1, 2, 1, 1}, T(1));
    x.q = {40}, x.k = {T(sign * 50), T(sign * 49.75)}, x.v = {1, 0};
    on.forward(x, {{1, 1}, {1, 2}, {3, 3}}, [&](const Case<T>& y) {
      CHECK(error(y.o, {sign > 0 ? 0.999954602131 : 4.53978687024e-05}) <= on.tolerance);
      CHECK(error(y.lse, {sign > 0 ? 2000.0000453989 : -1989.9999546011}) <= on.tolerance);
    });
  }
}

}  // namespace flashsteps
