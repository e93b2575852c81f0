#pragma once
// Cases of lengths, widths and heads, for whatever runs them: OnCpu, OnKernels.
#include "tests/fault_case.hpp"

namespace flashsteps {

/// C14: a length that no tile divides.
template <class On> void c14(On& on) {
  using T = typename On::Number;
  const TileSizes sizes{{128, 128}, {128, 64}, {64, 128}, {48, 80}, {50, 7}, {256, 256}, {200, 191}};
  std::vector<Case<T>> heads = rule_o_heads<T>({192, 192, 16, 16}, 2, 2);
  on.forward(heads, sizes, [&](const std::vector<Case<T>>& each) {
    CHECK(error_at(each[0].o, 0, {0.0603988348033, -0.00502344071795, 0.0977980058412}) <= on.tolerance);
    CHECK(error_at(each[1].o, 191 * 16, {0.0306777415569, -0.0221349192688, -0.0558063721774}) <= on.tolerance);
    CHECK(error_at(each[1].lse, 191, {5.39318170415}) <= on.tolerance);
    CHECK(checksum_error(joined(each, &Case<T>::o), -0.433804441452, -4.13006018371) <= on.tolerance);
  });
  for (Case<T>& x : heads) x.causal = true;
  on.forward(heads, sizes, [&](const std::vector<Case<T>>& each) {
    CHECK(error_at(each[1].o, 100 * 16, {0.0229419682234, 0.0864569102668, 0.0715323305873}) <= on.tolerance);
    CHECK(error_at(each[1].lse, 100, {4.71089572443}) <= on.tolerance);
    CHECK(checksum_error(joined(each, &Case<T>::o), -27.0449937433, -178.404050091) <= on.tolerance);
  });
}

/// C14: lengths around every tile.
template <class On> void c14_lengths(On& on) {
  using T = typename On::Number;
  for (const bool causal : {false, true})
    for (const Index t : {2, 8, 16, 33, 64})
      for (const Index s : {Index(1), t - 1, t, t + 1, 2 * t - 1}) {
        INFO("length " << s << ", tile " << t);
        on.forward(rule_o<T>({s, s, 16, 16, 1, 1, causal}), {{t, t}, {t, t / 2}, {t / 2, t}}, [&](const Case<T>& y) { CHECK(on.in_budget(y)); });
      }
}

/// C15: a head dimension of 63.
template <class On> void c15(On& on) {
  using T = typename On::Number;
  const TileSizes sizes{{16, 16}, {40, 40}, {64, 64}, {7, 13}};
  on.forward(rule_o<T>({40, 40, 63, 63}), sizes, [&](const Case<T>& y) {
    CHECK(error_at(y.o, 0, {-0.0951926709105, -0.0769528350747, 0.144413832112}) <= on.tolerance);
    CHECK(error_at(y.o, 39 * 63 + 60, {0.0101348844526, 0.125648011433, 0.0490729436847}) <= on.tolerance);
    CHECK(error_at(y.lse, 0, {3.77540964723}) <= on.tolerance);
    CHECK(error_at(y.lse, 39, {3.74428103982}) <= on.tolerance);
    CHECK(checksum_error(y.o, 0.589049100991, 9.86621779408) <= on.tolerance);
  });
  for (const Index d : {1, 3, 20, 33, 63, 65, 96, 127}) on.forward(rule_o<T>({40, 40, d, d}), sizes, [&](const Case<T>& y) { CHECK(on.in_budget(y)); });
}

/// C16: the padding of the last tile is no key.
template <class On> void c16(On& on) {
  using T = typename On::Number;
  for (const int sign : {0, -1}) {
    Case<T> x({1, 65, 1, 1}, T(sign == 0 ? 1 : -1));
    x.q = {1}, x.k.assign(65, T(sign == 0 ? 0 : 1)), x.v.assign(65, T(1));
    on.forward(x, {{1, 64}, {64, 64}, {1, 16}, {8, 128}}, [&](const Case<T>& y) {
      CHECK(error(y.o, {1}) <= on.tolerance);
      CHECK(error(y.lse, {sign == 0 ? 4.1743872699 : 3.1743872699}) <= on.tolerance);
    });
  }
}

/// C18: empty sequences.
template <class On> void c18(On& on) {
  using T = typename On::Number;
  for (const bool causal : {false, true}) {
    on.forward(std::vector<Case<T>>(6, Case<T>({0, 0, 7, 7, 1, 1, causal})), small_tiles, [&](const std::vector<Case<T>>& each) {
      CHECK(joined(each, &Case<T>::o).size() + joined(each, &Case<T>::lse).size() == 0);
    });
    on.forward(std::vector<Case<T>>(6, Case<T>({3, 0, 7, 7, 1, 1, causal})), small_tiles, [&](const std::vector<Case<T>>& each) {
      const std::vector<T> o = joined(each, &Case<T>::o), lse = joined(each, &Case<T>::lse);
      CHECK(o.size() == 126);
      CHECK(all_are(o, 0));
      CHECK(lse.size() == 18);
      CHECK(all_are(lse, minus_infinity));
    });
    on.forward(Case<T>({0, 3, 7, 7, 1, 1, causal}), small_tiles, [&](const Case<T>& y) { CHECK(y.o.size() + y.lse.size() == 0); });
  }
}

/// C21: query heads and the head of K and V that they read.
template <class On> void c21(On& on) {
  using T = typename On::Number;
  const TileSizes sizes = all_pairs({1, 2, 3});
  std::vector<Case<T>> heads;
  for (Index h = 0; h < 6; ++h) {
    heads.push_back(Case<T>({1, 1, 1, 1}));
    heads[h].v = {T(step08::kv_head(h, 6, 2) + 1)};
  }
  on.forward(heads, sizes, [&](const std::vector<Case<T>>& each) { CHECK(error(joined(each, &Case<T>::o), {1, 1, 1, 2, 2, 2}) <= on.tolerance); });
  on.forward(rule_o_heads<T>({2, 2, 2, 2}, 6, 2), sizes, [&](const std::vector<Case<T>>& each) {
    CHECK(error_at(each[2].o, 0, {-0.774927020207, -1.13127736742}) <= on.tolerance);
    CHECK(error_at(each[3].o, 0, {0.27125107505, -1.2925021501}) <= on.tolerance);
    CHECK(error_at(each[5].o, 2, {-0.102883769023, -0.544232461954}) <= on.tolerance);
  });
}

/// C33: one key gives V bit for bit.
template <class On> void c33(On& on) {
  using T = typename On::Number;
  for (const Index h : {0, 1, 39999, 65534, 65535, 69999}) {
    const Case<T> x = rule_o<T>({1, 1, 16, 16}, h, h);
    double s = 0;
    for (Index e = 0; e < 16; ++e) s += double(x.q[e]) * double(x.k[e]) / 4;
    on.forward(x, {{1, 1}, {64, 64}}, [&](const Case<T>& y) {
      CHECK(same_bits(y.o, y.v));
      CHECK(error(y.lse, {s}) <= on.tolerance);
      if (h == 65535) CHECK(error_at(y.o, 0, {-1.75, 1.25, -0.625, 0.625}) == 0);
    });
  }
}

}  // namespace flashsteps
