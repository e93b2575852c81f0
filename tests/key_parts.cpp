// The backward pass of few heads on many threads: the keys are shared out in whole column tiles, what is counted does not depend on the
// number of threads, and neither do the bits of dK and dV.
#include "common/runner/checks.hpp"
#include "common/runner/execute.hpp"
#include "steps/all.hpp"
#include "tests/catch.hpp"

#include <cstring>

namespace flashsteps {
namespace {

struct Shape {
  Index heads, kv_heads, nq, nk;
  TileShape tiles;
  bool causal;
};

template <class T> Problem<T> problem(const Step& step, const Shape& x) {
  Options options;
  options.heads = x.heads, options.kv_heads = x.kv_heads, options.seq_q = x.nq, options.seq_k = x.nk;
  options.head_dim = 5, options.value_dim = 3, options.seed = 7, options.causal = x.causal;
  return make_problem<T>(step, options);
}

template <class T> struct Solved {
  Output<T> out;
  Counts counts;
  Index peak;
};

/// The forward pass, then the backward pass on so many threads.
template <class T> Solved<T> solve(const Step& step, const Problem<T>& p, TileShape tiles, int count) {
  Solved<T> result{Output<T>(p), {}, 0};
  Memory forward, memory;
  execute_once(step.forward(), p, result.out, tiles, step.kv_head, forward);
  omp_set_num_threads(count);
  execute_once(*step.backward(), p, result.out, tiles, step.kv_head, memory);
  result.counts = memory.counts(), result.peak = memory.peak();
  return result;
}

template <class T> bool same_bits(const Tensor<T>& a, const Tensor<T>& b) {
  return a.numbers.size() == b.numbers.size() && std::memcmp(a.numbers.data(), b.numbers.data(), a.numbers.size() * sizeof(T)) == 0;
}

const std::vector<Shape> shapes = {
    {1, 1, 37, 41, {8, 4}, false}, {1, 1, 37, 41, {8, 4}, true}, {1, 1, 41, 37, {4, 8}, true}, {2, 2, 16, 16, {16, 16}, true}, {1, 1, 5, 2, {2, 2}, true},
    {1, 1, 2, 5, {2, 2}, true},    {1, 1, 9, 0, {4, 4}, false},  {1, 1, 0, 9, {4, 4}, false},  {1, 1, 1, 1, {1, 1}, false},   {1, 1, 33, 7, {3, 1}, true},
};

TEMPLATE_TEST_CASE("keys shared out between threads: counts are the closed form, dK and dV keep their bits step06 step07 step08", "", float, double) {
  const int before = omp_get_max_threads();
  for (const Step* step : {&step06::step(), &step07::step(), &step08::step()})
    for (Shape x : shapes) {
      if (x.causal && !step->causal) continue;
      if (step->gqa) x.heads *= 3;
      CAPTURE(step->name, x.heads, x.kv_heads, x.nq, x.nk, x.tiles.br, x.tiles.bc, x.causal);
      const Problem<TestType> p = problem<TestType>(*step, x);
      const Form& form = *step->backward();
      const Counts formula = traffic_formula(form, sizes_of(form, p, x.tiles), p.count(form.pieces));
      const Solved<TestType> one = solve(*step, p, x.tiles, 1);
      REQUIRE(one.counts == formula);
      for (const int count : {2, 3, 5, 16}) {
        CAPTURE(count);
        const Solved<TestType> some = solve(*step, p, x.tiles, count), again = solve(*step, p, x.tiles, count);
        CHECK(some.counts == formula);
        CHECK(some.peak == one.peak);
        CHECK(same_bits(some.out.dk, one.out.dk));
        CHECK(same_bits(some.out.dv, one.out.dv));
        CHECK(same_bits(some.out.dq, again.out.dq));
        const Judgement<TestType> judgement = judge(p, some.out, true, sample_rows(x.nq, x.heads, 1, 1e9, 1));
        for (const Result r : {Result::dq, Result::dk, Result::dv}) CHECK(judgement.of(r).equal());
      }
    }
  omp_set_num_threads(before);
}

TEST_CASE("keys shared out between threads: whole tiles, all keys, in order, and about as much work each") {
  for (const Index nq : {0, 1, 7, 64, 100})
    for (const Index nk : {0, 1, 8, 63, 64, 65, 200})
      for (const Index bc : {1, 8, 64})
        for (const bool causal : {false, true}) {
          CAPTURE(nq, nk, bc, causal);
          std::vector<float> numbers(std::max(nq, nk) + 1);
          const Index br = 8;
          const Head<float> head{{tensor::q, numbers.data(), nq, 1}, {tensor::k, numbers.data(), nk, 1}, {tensor::v, numbers.data(), nk, 1}, {tensor::o, numbers.data(), nq, 1},
                                 {tensor::lse, numbers.data(), nq, 1}, 1, br, bc, causal ? nk - nq : nk};
          const auto work = [&](Range keys) {
            Index sum = 0;
            for (const Range j : tiles(nk, bc))
              if (j.begin >= keys.begin && j.begin < keys.end) {
                ++sum;
                for (const Range i : tiles(nq, br)) sum += kind_of_tile(i, j, head.diagonal) != skip;
              }
            return sum;
          };
          for (const Index parts : {1, 2, 3, 7}) {
            const std::vector<Range> runs = key_parts(head, parts);
            REQUIRE(!runs.empty());
            CHECK(Index(runs.size()) <= parts);
            CHECK(runs.front().begin == 0);
            CHECK(runs.back().end == nk);
            for (std::size_t r = 1; r < runs.size(); ++r) CHECK(runs[r].begin == runs[r - 1].end);
            for (const Range& keys : runs) {
              CHECK(keys.begin % bc == 0);
              CHECK((nk == 0 || keys.size() > 0));
              CHECK(work(keys) <= work({0, nk}) / parts + tile_count(nq, br) + 1);
            }
          }
        }
}

}  // namespace
}  // namespace flashsteps
