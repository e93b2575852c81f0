// Known faults of other implementations, tried on every step: gradients. Ids and values: shared/cases/attention-faults.md.
// O and L come from step 07; a backward pass without masks gets a causal head row by row, with the keys that the row sees.
//   C19   (a) needs a tensor of 2^31 elements: that part is for CUDA. (b) the offsets of tiles are held to 64 bits here
//   C20   the views of the steps have a stride between rows: the transposed view is one, and so is the row that is repeated (stride 0)
//   C31   nothing adds in arrival order on the CPU: everything, dQ too, is the same in every run
#include "tests/fault_gradients.hpp"

namespace flashsteps {
namespace {

TEMPLATE_TEST_CASE("C04 leading rows without a key have no gradient - step06 step07 step08", "", float, double) { on_cpu<TestType>(c04); }

TEMPLATE_TEST_CASE("C17 nothing is read beyond the last row - step06 step07 step08", "", float, double) { on_cpu<TestType>(c17); }

TEMPLATE_TEST_CASE("C18 gradients of empty sequences - step06 step07 step08", "", float, double) { on_cpu<TestType>(c18_gradients); }

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

TEMPLATE_TEST_CASE("C20 the output gradient as a strided view - step06 step07 step08", "", float, double) {
  using T = TestType;
  on_cpu<T>(c20);
  for (const BackwardForm<T>& form : backward_forms<T>())
    for (const auto& [br, bc] : small_tiles) {
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
      CHECK(error(joined(expanded, &Case<T>::dq), c20_ones_dq) <= tolerance<T>);
    }
}

TEMPLATE_TEST_CASE("C22 dK and dV are sums over the group - step06 step07 step08", "", float, double) { on_cpu<TestType>(c22); }

TEMPLATE_TEST_CASE("C30 no mask where none was asked for - step06 step07 step08", "", float, double) { on_cpu<TestType>(c30); }

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
