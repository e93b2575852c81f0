// Known faults of other implementations, tried on every step: gradients. Ids and values: shared/cases/attention-faults.md.
// O and L come from step 07; a backward pass without masks gets a causal head row by row, with the keys that the row sees.
//   C19   (a) needs a tensor of 2^31 elements: that part is for CUDA. (b) the offsets of tiles are held to 64 bits here
//   C20   the views of the steps have a stride between rows: the transposed view is one, and so is the row that is repeated (stride 0)
//   C31   nothing adds in arrival order on the CPU: everything, dQ too, is the same in every run
#include "tests/fault_case.hpp"

namespace flashsteps {
namespace {

const TileSizes small = all_pairs({1, 2, 3, 5, 8});

std::vector<double> zeros(Index n) { return std::vector<double>(n, 0.0); }

TEMPLATE_TEST_CASE("C04 leading rows without a key have no gradient - step06 step07 step08", "", float, double) {
  using T = TestType;
  every_backward(rule_o<T>({5, 2, 4, 4, 1, 1, true}), small, [](const Case<T>& y) {
    CHECK(all_are(y.dq, 0, 0, 12));
    CHECK(error_at(y.dq, 0, zeros(16)) <= tolerance<T>);
    CHECK(error_at(y.dq, 16, {-0.00957502371447, 0.017235042686, 0.00191500474289, -0.0114900284574}) <= tolerance<T>);
    CHECK(error(y.dk, {0.0134050332003, 0.0114900284574, 0.00957502371447, -0.00383000948579, -0.0134050332003, -0.0114900284574, -0.00957502371447,
                       0.00383000948579}) <= tolerance<T>);
    CHECK(error(y.dv_, {-0.375, 0.71369474428, -0.0174631628535, 0.767463162854, 0, 0.16130525572, -0.107536837146, 0.107536837146}) <= tolerance<T>);
  });
  every_backward(rule_o<T>({76, 1, 32, 32, 1, 1, true}), {{64, 64}, {16, 16}, {7, 1}, {76, 3}, {1, 1}}, [](const Case<T>& y) {
    CHECK(all_are(y.dq, 0, 0, 75 * 32));
    CHECK(error(y.dq, zeros(76 * 32)) <= tolerance<T>);
    CHECK(error(y.dk, zeros(32)) <= tolerance<T>);
    CHECK(error(y.dv_, std::vector<double>(y.d_o.begin() + 75 * 32, y.d_o.end())) <= tolerance<T>);
    CHECK(error_at(y.dv_, 0, {0.5, 0.125, 0.625, 0}) <= tolerance<T>);
  });
}

TEMPLATE_TEST_CASE("C17 nothing is read beyond the last row - step06 step07 step08", "", float, double) {
  using T = TestType;
  const std::vector<double> dk_right{0.012178240516,   -0.04095510973,   -0.0375333156882, -0.0995593066281, -0.0160037328544, 0.017217106481,   -0.056282874013,
                                     0.0373123498751,  -0.0298481482846, 0.118171019561,   0.102497478185,   0.0442387638162,  0.00367623614562, -0.0323869366394,
                                     0.0387498449257,  0.0270008243608,  0.0299974044773,  -0.0620460796724, -0.0474311334098, -0.00899263142395};
  const auto check = [&](const std::vector<T>& dq, const std::vector<T>& dk, const std::vector<T>& dv) {
    CHECK(error(dk, dk_right) <= tolerance<T>);
    CHECK(error_at(dv, 0, {0.0319829691066, -0.0218967003676, 0.103528808094, 0.169268606856}) <= tolerance<T>);
    CHECK(error_at(dv, 16, {0.120966566968, -0.0561825974911, 0.0326462537976, 0.0465662579438}) <= tolerance<T>);
    CHECK(checksum_error(dq, 0.121717207386, -6.49133842648) <= tolerance<T>);
  };
  const TileSizes larger{{8, 8}, {64, 64}, {6, 16}, {16, 6}, {2, 3}, {1, 4}};
  std::vector<Case<T>> heads = rule_o_heads<T>({5, 5, 4, 4}, 2, 1);
  every_backward(heads, larger, [&](const std::vector<Case<T>>& each) {
    std::vector<T> dk = each[0].dk, dv = each[0].dv_;
    for (std::size_t n = 0; n < dk.size(); ++n) dk[n] += each[1].dk[n], dv[n] += each[1].dv_[n];
    check(joined(each, &Case<T>::dq), dk, dv);
  });
  for (const auto& [br, bc] : larger) {
    INFO("step08 with the group, tiles " << br << " by " << bc);
    run_group(heads, br, bc);
    check(joined(heads, &Case<T>::dq), heads[0].dk, heads[0].dv_);
  }
}

TEMPLATE_TEST_CASE("C18 gradients of empty sequences - step06 step07 step08", "", float, double) {
  using T = TestType;
  for (const bool causal : {false, true}) {
    every_backward(Case<T>({3, 0, 7, 7, 1, 1, causal}), small, [](const Case<T>& y) { CHECK(all_are(y.dq, 0)); });
    every_backward(Case<T>({0, 3, 7, 7, 1, 1, causal}), small, [](const Case<T>& y) {
      CHECK(all_are(y.dk, 0));
      CHECK(all_are(y.dv_, 0));
    });
    every_backward(Case<T>({0, 0, 7, 7, 1, 1, causal}), small, [](const Case<T>& y) { CHECK(y.dq.size() + y.dk.size() + y.dv_.size() == 0); });
  }
  for (const Index nq : {0, 3}) {
    std::vector<Case<T>> group(3, Case<T>({nq, 3 - nq, 7, 7, 1, 1, true}));
    run_group(group, 2, 2);
    CHECK(all_are(joined(group, &Case<T>::dq), 0));
    CHECK(all_are(group[0].dk, 0));
    CHECK(all_are(group[0].dv_, 0));
  }
}

TEST_CASE("C19 offsets are 64 bits wide - step04 step05 step06 step07 step08", "") {
  const Index b = 16384, heads = 16, h = 0, s = 128, i = 0, d = 64, first = 2147483648;
  CHECK(((b * heads + h) * s + i) * d == first);
  // A view begins where 64-bit arithmetic says: of four rows that lie 2^30 elements apart, the last is read through a base pointer
  // that stands 3 * 2^30 elements before it. Nothing in between is touched.
  const Index apart = Index(1) << 30;
  float number = 7;
  const auto base = reinterpret_cast<const float*>(reinterpret_cast<std::uintptr_t>(&number) - 3 * apart * sizeof(float));
  const Slow<const float> rows(tensor::q, base, 4, 1, apart);
  Memory memory;
  CHECK(memory.load_lanes(rows[Range{3, 4}])(0) == 7);
  CHECK(memory.load(rows[Range{3, 4}])(0, 0) == 7);
  CHECK(rows[Range{1, 3}].size() == 2);
  CHECK(Slow<const float>(tensor::q, nullptr, b * heads * s, d).size() == first);
  // Tiles, and the kinds of tile, behind 2^31 rows
  Index count = 0, last = 0;
  for (const Range x : tiles(first + 1, Index(1) << 20)) ++count, last = x.end;
  CHECK(count == 2049);
  CHECK(last == first + 1);
  CHECK(tile_count(first + 1, 1) == first + 1);
  CHECK(tile_count(first + 1, first) == 2);
  CHECK(kind_of_tile({first, first + 8}, {first, first + 8}, 0) == partial);
  CHECK(kind_of_tile({first, first + 8}, {0, first + 1}, 0) == full);
  CHECK(kind_of_tile({0, 8}, {first, first + 8}, first - 8) == skip);
  CHECK(kind_of_tile({0, 8}, {first, first + 8}, -first) == skip);
}

const std::vector<double> c20_dq{0.0624658217364, -0.116396645944,   0.00324096231242,  0.0541151556873,   0.0724823025888, 0.0365120184782,
                                 -0.0011248169844, -0.000472103236566, -0.00412866274343, -0.00464474558636, 0.0589120108761, 0.0744191319182},
    c20_dk{-0.168309250425, -0.0986618221323,  0.0754314895734, 0.0149187577869,  0.0928777608518, 0.0837430643454,
           0.0870192113119, -0.00686086582203, -0.13102005174,  0.00724599792389, 0.044000840428,  -0.000385132101867},
    c20_dv{0.0989225413122,  -0.126032078326, 0.406264547544,  -0.0336065738287, 0.119812911143,   -0.0903613478451,
           -0.0218017746165, -0.278238371161, 0.0649289288091, -0.269966847808,  -0.0431271541925, -0.326794781032};

TEMPLATE_TEST_CASE("C20 the output gradient as a strided view - step06 step07 step08", "", float, double) {
  using T = TestType;
  every_backward(rule_o_heads<T>({3, 3, 2, 2}, 2, 2), small, [](const std::vector<Case<T>>& each) {
    CHECK(error(joined(each, &Case<T>::dq), c20_dq) <= tolerance<T>);
    CHECK(error(joined(each, &Case<T>::dk), c20_dk) <= tolerance<T>);
    CHECK(error(joined(each, &Case<T>::dv_), c20_dv) <= tolerance<T>);
  });
  const std::vector<double> ones_dq{-0.178268298516, 0.275155204488,  -0.203294020759, 0.231749394399, -0.106792181001, 0.16043326451,
                                    -0.117043367967, -0.145973543342, -0.139854547742, -0.17159949662, -0.106709832341, -0.135158241673};
  for (const BackwardForm<T>& form : backward_forms<T>())
    for (const auto& [br, bc] : small) {
      INFO(form.name << ", tiles " << br << " by " << bc);
      // dO lies as [S, H, D] in (a); in (c) there is one row of ones
      std::vector<Case<T>> heads = rule_o_heads<T>({3, 3, 2, 2, br, bc}, 2, 2), expanded = heads;
      std::vector<T> as_shd(12);
      for (Index h = 0; h < 2; ++h)
        for (Index n = 0; n < 6; ++n) as_shd[(n / 2 * 2 + h) * 2 + n % 2] = heads[h].d_o[n];
      const std::vector<T> one{1, 1};
      for (Index h = 0; h < 2; ++h) {
        Memory memory;
        Gradients<T> gradients = heads[h].gradients();
        gradients.d_o = {tensor::d_o, as_shd.data() + h * 2, 3, 2, 4};
        step07::forward(heads[h].head(), memory);
        form.run(heads[h].head(), gradients, memory);
        gradients = expanded[h].gradients();
        gradients.d_o = {tensor::d_o, one.data(), 3, 2, 0};
        step07::forward(expanded[h].head(), memory);
        form.run(expanded[h].head(), gradients, memory);
        for (Index e = 0; e < 2; ++e) CHECK(std::abs(expanded[h].dv_[e] + expanded[h].dv_[2 + e] + expanded[h].dv_[4 + e] - T(3)) <= 3 * tolerance<T>);
      }
      CHECK(error(joined(heads, &Case<T>::dq), c20_dq) <= tolerance<T>);
      CHECK(error(joined(heads, &Case<T>::dk), c20_dk) <= tolerance<T>);
      CHECK(error(joined(heads, &Case<T>::dv_), c20_dv) <= tolerance<T>);
      CHECK(error(joined(expanded, &Case<T>::dq), ones_dq) <= tolerance<T>);
    }
}

TEMPLATE_TEST_CASE("C22 dK and dV are sums over the group - step06 step07 step08", "", float, double) {
  using T = TestType;
  const auto groups = [](std::vector<Case<T>> heads, auto check) {
    for (const auto& [br, bc] : small) {
      INFO("tiles " << br << " by " << bc);
      std::vector<T> dk, dv;
      for (Index kv = 0; kv < 2; ++kv) {
        std::vector<Case<T>> group;
        for (Index h = 0; h < 4; ++h)
          if (step08::kv_head(h, 4, 2) == kv) group.push_back(heads[h]);
        CHECK(group.size() == 2);
        run_group(group, br, bc);
        dk.insert(dk.end(), group[0].dk.begin(), group[0].dk.end());
        dv.insert(dv.end(), group[0].dv_.begin(), group[0].dv_.end());
      }
      check(dk, dv);
    }
    // The steps before know single heads: their sums
    every_backward(heads, small, [&](const std::vector<Case<T>>& each) {
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
  groups(heads, [](const std::vector<T>& dk, const std::vector<T>& dv) {
    CHECK(error(dk, zeros(4)) <= tolerance<T>);
    CHECK(error(dv, {3, 3, 7, 7}) <= tolerance<T>);
  });
  groups(rule_o_heads<T>({2, 2, 2, 2}, 4, 2), [](const std::vector<T>& dk, const std::vector<T>& dv) {
    CHECK(error(dk, {-0.209198275462, -0.0446923145294, 0.209198275462, 0.0446923145294, 0.123453837644, 0.101604025654, -0.123453837644, -0.101604025654}) <=
          tolerance<T>);
    CHECK(error(dv, {0.244491961973, -0.295811842245, 0.755508038027, -0.204188157755, -0.0567924074738, 0.330788990601, -0.568207592526, 0.169211009399}) <=
          tolerance<T>);
  });
}

TEMPLATE_TEST_CASE("C30 no mask where none was asked for - step06 step07 step08", "", float, double) {
  using T = TestType;
  Case<T> x({2, 2, 1, 1}, T(1));
  x.q = x.k = {0, 0}, x.d_o = {1, 2};
  every_backward(x, small, [](const Case<T>& y) { CHECK(error(y.dv_, {1.5, 1.5}) <= tolerance<T>); });
  x.causal = true;
  every_backward(x, small, [](const Case<T>& y) { CHECK(error(y.dv_, {2, 1}) <= tolerance<T>); });
  const auto half = [](const std::vector<double>& both) { return std::vector<double>(both.begin(), both.begin() + 6); };
  every_backward(rule_o<T>({3, 3, 2, 2}), small, [&](const Case<T>& y) {
    CHECK(error(y.dq, half(c20_dq)) <= tolerance<T>);
    CHECK(error(y.dk, half(c20_dk)) <= tolerance<T>);
    CHECK(error(y.dv_, half(c20_dv)) <= tolerance<T>);
    CHECK(in_budget(y, true));
  });
  every_backward(rule_o<T>({3, 3, 2, 2, 1, 1, true}), small, [](const Case<T>& y) {
    if (std::is_same_v<T, double>) CHECK(in_budget(y, true));
    CHECK(largest_distance<double>(y.dv_, y.template define_gradients<double>().dv) <= tolerance<T>);
    CHECK(largest_distance<double>(y.dq, y.template define_gradients<double>().dq) <= tolerance<T>);
  });
}

TEST_CASE("C31 twenty runs are one and the same - step05 step06 step07 step08", "") {
  std::vector<Case<float>> heads = rule_o_heads<float>({512, 512, 64, 64, 64, 64}, 2, 2), first;
  for (const bool causal : {false, true})
    for (const BackwardForm<float>& form : backward_forms<float>()) {
      if (causal && !form.masks) continue;
      INFO(form.name << (causal ? ", causal" : ""));
      for (int run = 0; run < 20; ++run) {
        for (Case<float>& x : heads) {
          Memory memory;
          x.causal = causal;
          x.poison();
          causal ? step07::forward(x.head(), memory) : step05::forward(x.head(), memory);
          form.run(x.head(), x.gradients(), memory);
        }
        if (run == 0) first = heads;
        for (int h = 0; h < 2; ++h)
          for (const auto tensor : {&Case<float>::o, &Case<float>::lse, &Case<float>::dq, &Case<float>::dk, &Case<float>::dv_})
            CHECK(same_bits(heads[h].*tensor, first[h].*tensor));
      }
      CHECK(in_budget(first[1], true));
    }
}

}  // namespace
}  // namespace flashsteps
