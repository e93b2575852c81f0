#pragma once
// Cases of gradients, for whatever runs them: OnCpu, OnKernels.
#include "tests/fault_case.hpp"

namespace flashsteps {

inline std::vector<double> zeros(Index n) { return std::vector<double>(n, 0.0); }

/// C04: leading rows without a key have no gradient.
template <class On> void c04(On& on) {
  using T = typename On::Number;
  on.backward(rule_o<T>({5, 2, 4, 4, 1, 1, true}), small_tiles, [&](const Case<T>& y) {
    CHECK(all_are(y.dq, 0, 0, 12));
    CHECK(error_at(y.dq, 0, zeros(16)) <= on.tolerance);
    CHECK(error_at(y.dq, 16, {-0.00957502371447, 0.017235042686, 0.00191500474289, -0.0114900284574}) <= on.tolerance);
    CHECK(error(y.dk, {0.0134050332003, 0.0114900284574, 0.00957502371447, -0.00383000948579, -0.0134050332003, -0.0114900284574, -0.00957502371447,
                       0.00383000948579}) <= on.tolerance);
    CHECK(error(y.dv_, {-0.375, 0.71369474428, -0.0174631628535, 0.767463162854, 0, 0.16130525572, -0.107536837146, 0.107536837146}) <= on.tolerance);
  });
  on.backward(rule_o<T>({76, 1, 32, 32, 1, 1, true}), {{64, 64}, {16, 16}, {7, 1}, {76, 3}, {1, 1}}, [&](const Case<T>& y) {
    CHECK(all_are(y.dq, 0, 0, 75 * 32));
    CHECK(error(y.dq, zeros(76 * 32)) <= on.tolerance);
    CHECK(error(y.dk, zeros(32)) <= on.tolerance);
    CHECK(error(y.dv_, std::vector<double>(y.d_o.begin() + 75 * 32, y.d_o.end())) <= on.tolerance);
    CHECK(error_at(y.dv_, 0, {0.5, 0.125, 0.625, 0}) <= on.tolerance);
  });
}

/// C17: nothing is read beyond the last row.
template <class On> void c17(On& on) {
  using T = typename On::Number;
  const std::vector<double> dk_right{
      0.012178240516, -0.04095510973, -0.0375333156882, -0.0995593066281, -0.0160037328544, 0.017217106481, -0.056282874013,
      0.0373123498751, -0.0298481482846, 0.118171019561, 0.102497478185, 0.0442387638162, 0.00367623614562, -0.0323869366394,
      0.0387498449257, 0.0270008243608, 0.0299974044773, -0.0620460796724, -0.0474311334098, -0.00899263142395};
  const auto check = [&](const std::vector<T>& dq, const std::vector<T>& dk, const std::vector<T>& dv) {
    CHECK(error(dk, dk_right) <= on.tolerance);
    CHECK(error_at(dv, 0, {0.0319829691066, -0.0218967003676, 0.103528808094, 0.169268606856}) <= on.tolerance);
    CHECK(error_at(dv, 16, {0.120966566968, -0.0561825974911, 0.0326462537976, 0.0465662579438}) <= on.tolerance);
    CHECK(checksum_error(dq, 0.121717207386, -6.49133842648) <= on.tolerance);
  };
  const TileSizes larger{{8, 8}, {64, 64}, {6, 16}, {16, 6}, {2, 3}, {1, 4}};
  std::vector<Case<T>> heads = rule_o_heads<T>({5, 5, 4, 4}, 2, 1);
  on.backward(heads, larger, [&](const std::vector<Case<T>>& each) {
    std::vector<T> dk = each[0].dk, dv = each[0].dv_;
    for (std::size_t n = 0; n < dk.size(); ++n) dk[n] += each[1].dk[n], dv[n] += each[1].dv_[n];
    check(joined(each, &Case<T>::dq), dk, dv);
  });
  on.groups(heads, 2, larger, [&](const std::vector<Case<T>>& group) { check(joined(group, &Case<T>::dq), group[0].dk, group[0].dv_); });
}

/// C18: gradients of empty sequences.
template <class On> void c18_gradients(On& on) {
  using T = typename On::Number;
  for (const bool causal : {false, true}) {
    on.backward(Case<T>({3, 0, 7, 7, 1, 1, causal}), small_tiles, [&](const Case<T>& y) { CHECK(all_are(y.dq, 0)); });
    on.backward(Case<T>({0, 3, 7, 7, 1, 1, causal}), small_tiles, [&](const Case<T>& y) {
      CHECK(all_are(y.dk, 0));
      CHECK(all_are(y.dv_, 0));
    });
    on.backward(Case<T>({0, 0, 7, 7, 1, 1, causal}), small_tiles, [&](const Case<T>& y) { CHECK(y.dq.size() + y.dk.size() + y.dv_.size() == 0); });
  }
  for (const Index nq : {0, 3})
    on.groups(std::vector<Case<T>>(3, Case<T>({nq, 3 - nq, 7, 7, 1, 1, true})), 3, {{2, 2}}, [&](const std::vector<Case<T>>& group) {
      CHECK(all_are(joined(group, &Case<T>::dq), 0));
      CHECK(all_are(group[0].dk, 0));
      CHECK(all_are(group[0].dv_, 0));
    });
}

/// C20 and C30: dQ, dK and dV of two heads.
inline const std::vector<double> c20_dq{0.0624658217364, -0.116396645944,   0.00324096231242,  0.0541151556873,   0.0724823025888, 0.0365120184782,
                                 -0.0011248169844, -0.000472103236566, -0.00412866274343, -0.00464474558636, 0.0589120108761, 0.0744191319182},
    c20_dk{-0.168309250425, -0.0986618221323,  0.0754314895734, 0.0149187577869,  0.0928777608518, 0.0837430643454,
           0.0870192113119, -0.00686086582203, -0.13102005174,  0.00724599792389, 0.044000840428,  -0.000385132101867},
    c20_dv{0.0989225413122,  -0.126032078326, 0.406264547544,  -0.0336065738287, 0.119812911143,   -0.0903613478451,
           -0.0218017746165, -0.278238371161, 0.0649289288091, -0.269966847808,  -0.0431271541925, -0.326794781032};

/// C20: dQ where dO is 1 everywhere.
inline const std::vector<double> c20_ones_dq{-0.178268298516, 0.275155204488, -0.203294020759, 0.231749394399, -0.106792181001, 0.16043326451,
                                              -0.117043367967, -0.145973543342, -0.139854547742, -0.17159949662, -0.106709832341, -0.135158241673};

/// C20: two heads, every tensor contiguous.
template <class On> void c20(On& on) {
  using T = typename On::Number;
  on.backward(rule_o_heads<T>({3, 3, 2, 2}, 2, 2), small_tiles, [&](const std::vector<Case<T>>& each) {
    CHECK(error(joined(each, &Case<T>::dq), c20_dq) <= on.tolerance);
    CHECK(error(joined(each, &Case<T>::dk), c20_dk) <= on.tolerance);
    CHECK(error(joined(each, &Case<T>::dv_), c20_dv) <= on.tolerance);
  });
}

/// C22: dK and dV are sums over the group.
template <class On> void c22(On& on) {
  using T = typename On::Number;
  const auto groups = [&](std::vector<Case<T>> heads, auto check) {
    on.groups(heads, 2, small_tiles, [&](const std::vector<Case<T>>& each) {
      std::vector<T> dk, dv;
      for (Index h = 0; h < 4; h += 2) {
        dk.insert(dk.end(), each[h].dk.begin(), each[h].dk.end());
        dv.insert(dv.end(), each[h].dv_.begin(), each[h].dv_.end());
      }
      check(dk, dv);
    });
    // The steps before know single heads: their sums
    on.backward(heads, small_tiles, [&](const std::vector<Case<T>>& each) {
      std::vector<T> dk, dv;
      for (Index h = 0; h < 4; h += 2) {
        for (std::size_t n = 0; n < each[h].dk.size(); ++n) dk.push_back(each[h].dk[n] + each[h + 1].dk[n]);
        for (std::size_t n = 0; n < each[h].dv_.size(); ++n) dv.push_back(each[h].dv_[n] + each[h + 1].dv_[n]);
      }
      check(dk, dv);
    });
  };
  std::vector<Case<T>> heads = rule_o_heads<T>({2, 2, 1, 1}, 4, 2);
  for (Index h = 0; h < 4; ++h) heads[h].q = {0, 0}, heads[h].k = {0, 0}, heads[h].d_o = {T(h + 1), T(h + 1)};
  groups(heads, [&](const std::vector<T>& dk, const std::vector<T>& dv) {
    CHECK(error(dk, zeros(4)) <= on.tolerance);
    CHECK(error(dv, {3, 3, 7, 7}) <= on.tolerance);
  });
  groups(rule_o_heads<T>({2, 2, 2, 2}, 4, 2), [&](const std::vector<T>& dk, const std::vector<T>& dv) {
    CHECK(error(dk, {-0.209198275462, -0.0446923145294, 0.209198275462, 0.0446923145294, 0.123453837644, 0.101604025654, -0.123453837644, -0.101604025654}) <=
          on.tolerance);
    CHECK(error(dv, {0.244491961973, -0.295811842245, 0.755508038027, -0.204188157755, -0.0567924074738, 0.330788990601, -0.568207592526, 0.169211009399}) <=
          on.tolerance);
  });
}

/// C30: no mask where none was asked for.
template <class On> void c30(On& on) {
  using T = typename On::Number;
  Case<T> x({2, 2, 1, 1}, T(1));
  x.q = x.k = {0, 0}, x.d_o = {1, 2};
  on.backward(x, small_tiles, [&](const Case<T>& y) { CHECK(error(y.dv_, {1.5, 1.5}) <= on.tolerance); });
  x.causal = true;
  on.backward(x, small_tiles, [&](const Case<T>& y) { CHECK(error(y.dv_, {2, 1}) <= on.tolerance); });
  const auto half = [&](const std::vector<double>& both) { return std::vector<double>(both.begin(), both.begin() + 6); };
  on.backward(rule_o<T>({3, 3, 2, 2}), small_tiles, [&](const Case<T>& y) {
    CHECK(error(y.dq, half(c20_dq)) <= on.tolerance);
    CHECK(error(y.dk, half(c20_dk)) <= on.tolerance);
    CHECK(error(y.dv_, half(c20_dv)) <= on.tolerance);
    CHECK(on.in_budget(y, true));
  });
  on.backward(rule_o<T>({3, 3, 2, 2, 1, 1, true}), small_tiles, [&](const Case<T>& y) {
    if (std::is_same_v<T, double>) CHECK(on.in_budget(y, true));
    CHECK(largest_distance<double>(y.dv_, y.template define_gradients<double>().dv) <= on.tolerance);
    CHECK(largest_distance<double>(y.dq, y.template define_gradients<double>().dq) <= on.tolerance);
  });
}

}  // namespace flashsteps
