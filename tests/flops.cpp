// The floating-point operations of every step: its closed forms, summed over the tiles that it visits, are what its code does when
// it runs on a number that counts. Beside them the counts of the papers, as formulas.
#include "tests/counted.hpp"

#include "tests/case.hpp"
#include "tests/catch.hpp"
#include "tests/steps.hpp"
#include <cstdio>

namespace flashsteps {
namespace {

static_assert(std::is_trivially_destructible_v<Counted> && lanes<Counted> == 1);

/// The shapes: the fixed ones, those without a query or a key, and 70 random ones.
std::vector<CaseShape> shapes() {
  std::vector<CaseShape> all = fixed_shapes();
  for (const CaseShape& s : {CaseShape{0, 9, 4, 3, 4, 4}, CaseShape{9, 0, 4, 3, 4, 4}, CaseShape{1, 0, 1, 1, 1, 1}, CaseShape{9, 1, 2, 2, 5, 5}}) all.push_back(s);
  for (unsigned seed = 1; seed <= 70; ++seed) all.push_back(random_shape(seed, 40, 12));
  return all;
}
HeadSizes sizes_of(const CaseShape& s, Index group = 1, bool d_lse = false) {
  return {s.nq, s.nk, s.d, s.dv, s.br, s.bc, s.causal ? s.nk - s.nq : s.nk, group, d_lse};
}
std::string text(const HeadSizes& x) {
  std::string s = "nq nk d dv br bc diagonal group";
  for (const Index n : {x.nq, x.nk, x.d, x.dv, x.br, x.bc, x.diagonal, x.group}) s += " " + std::to_string(n);
  return s + (x.d_lse ? " with dL" : "");
}
/// What `run` does.
template <class Run> Flops count(Run run) {
  const Flops before = counted;
  run();
  return {counted.matmul - before.matmul, counted.other - before.other};
}
void check_equal(const Form& form, const HeadSizes& x, const Flops& found) {
  const Flops formula = form.flops(x);
  CAPTURE(form.home, form.name, text(x));
  CHECK(found.matmul == formula.matmul);
  CHECK(found.other == formula.other);
}

/// A forward form of a step, run on a number that counts. `causal`: does it take a mask?
void forward_counts(const Form& form, void (*run)(const Head<Counted>&, Memory&), bool causal) {
  for (CaseShape shape : shapes())
    for (const bool mask : {false, true}) {
      if (mask && !causal) continue;
      shape.causal = mask;
      Case<Counted> problem(shape, 0.4, 7);
      const Head<Counted> head = problem.head();
      Memory memory;
      check_equal(form, sizes_of(shape), count([&] { run(head, memory); }));
    }
}
using Group = std::span<const Head<Counted>>;
using GroupGradients = std::span<const Gradients<Counted>>;

/// A backward form: with dL and without, and in groups if it takes them.
void backward_counts(const Form& form, Flops (*run)(Group, GroupGradients), bool causal, bool grouped) {
  unsigned seed = 0;
  for (CaseShape shape : shapes())
    for (const bool mask : {false, true}) {
      if (mask && !causal) continue;
      shape.causal = mask;
      const Index group = grouped ? Index(1 + seed % 4) : 1;
      const bool d_lse = ++seed % 3 == 0;
      std::vector<Case<Counted>> cases;
      std::vector<Head<Counted>> heads;
      std::vector<Gradients<Counted>> gradients;
      cases.reserve(group);
      for (Index h = 0; h < group; ++h) {
        Case<Counted>& c = cases.emplace_back(shape, 0.4, seed + unsigned(h));
        c.with_d_lse = d_lse;
        heads.push_back(c.head());
        gradients.push_back(c.gradients());
        heads.back().k = heads.front().k, heads.back().v = heads.front().v;
        gradients.back().dk = gradients.front().dk, gradients.back().dv = gradients.front().dv;
        Memory memory;
        step08::forward(heads.back(), memory);
      }
      check_equal(form, sizes_of(shape, group, d_lse), run(heads, gradients));
    }
}
template <void (*backward)(const Head<Counted>&, const Gradients<Counted>&, Memory&)> Flops one_head(Group group, GroupGradients gradients) {
  Memory memory;
  return count([&] { backward(group.front(), gradients.front(), memory); });
}
Flops standard_backward(Group group, GroupGradients gradients) {
  const Head<Counted>& head = group.front();
  const Workspace<Counted> p(tensor::p, head.q.rows(), head.k.rows());
  Memory memory;
  step06::store_probabilities<Counted>(head, p, memory);
  return count([&] { step06::backward_standard<Counted>(head, p, gradients.front(), memory); });
}
Flops grouped_backward(Group group, GroupGradients gradients) {
  Memory memory;
  return count([&] { step08::backward<Counted>(group, gradients, memory); });
}
const Form& form_of(const Step& step, const std::string& name) {
  for (const Form& form : step.forms)
    if (form.name == name) return form;
  FAIL("no form " << name);
  return step.main();
}

}  // namespace

TEST_CASE("a number counts its operations") {
  const Counted a = 2., b = 3.;
  CHECK(count([&] { (void)(a + b), (void)(a - b), (void)(a * b), (void)(a / b), (void)exp(a), (void)log(b), (void)std::max(a, b); }) == Flops{0, 7});
  CHECK(count([&] { (void)(a == b), (void)(a != b), (void)-a, (void)Counted(a), (void)abs(a); }) == Flops{});
  CHECK(count([&] { Counted sum = 0.; sum += a, sum -= b, sum *= a, sum /= b; }) == Flops{0, 4});
  CHECK(count([&] { Counted sum = 0.; add_term(sum, a, b); }) == Flops{2, 0});
  CHECK(count([&] { (void)(Counted{} + a), (void)(a * Counted(0)); }) == Flops{});
  Counted stored;
  stored = Counted(0);
  CHECK(count([&] { (void)(stored + a), (void)(a * stored); }) == Flops{0, 2});
  CHECK(count([&] { const LibraryProduct<Counted> here(3, 4, 5); (void)(a + b); }) == Flops{120, 0});
  CHECK(count([&] { (void)(a + b); }) == Flops{0, 1});
}

TEST_CASE("step01 counts the operations of its closed forms") {
  forward_counts(form_of(step01::step(), "standard"), step01::standard<Counted>, false);
  forward_counts(form_of(step01::step(), "three sweeps"), step01::three_sweeps<Counted>, false);
}
TEST_CASE("step02 counts the operations of its closed forms") { forward_counts(step02::step().main(), step02::two_sweeps<Counted>, false); }
TEST_CASE("step03 counts the operations of its closed forms") {
  forward_counts(form_of(step03::step(), "one sweep"), step03::one_sweep<Counted>, false);
  forward_counts(form_of(step03::step(), "one sweep, normalised"), step03::one_sweep_normalised<Counted>, false);
}
TEST_CASE("step04 counts the operations of its closed forms") { forward_counts(step04::step().main(), step04::forward<Counted>, false); }
TEST_CASE("step05 step06 count the operations of the closed forms of the forward pass") {
  forward_counts(step05::step().main(), step05::forward<Counted>, false);
  forward_counts(step06::step().forward(), step05::forward<Counted>, false);
}
TEST_CASE("step06 counts the operations of its closed forms") {
  backward_counts(form_of(step06::step(), "column order"), one_head<step06::backward<Counted>>, false, false);
  backward_counts(form_of(step06::step(), "row order"), one_head<step06::backward_row_order<Counted>>, false, false);
  backward_counts(form_of(step06::step(), "standard"), standard_backward, false, false);
}
TEST_CASE("step07 counts the operations of its closed forms") {
  forward_counts(step07::step().forward(), step07::forward<Counted>, true);
  backward_counts(*step07::step().backward(), one_head<step07::backward<Counted>>, true, false);
}
TEST_CASE("step08 counts the operations of its closed forms") {
  forward_counts(step08::step().forward(), step08::forward<Counted>, true);
  backward_counts(*step08::step().backward(), grouped_backward, true, true);
}
TEST_CASE("step01 step02 step03 step04 step05 step06 step07 step08 have no form that is not counted here") {
  std::vector<std::size_t> forms;
  for (const Step* step : all_steps()) forms.push_back(step->forms.size());
  CHECK(forms == std::vector<std::size_t>{2, 1, 2, 1, 1, 4, 2, 2});
}

// ---- The papers' counts, as formulas ---------------------------------------------------------------------------------

namespace {

/// Operations outside matrix products, one row and one tile of bc keys (5.3).
Index fa1_literal(Index bc, Index dv) { return 4 * bc + 4 * dv + 7; }
Index fa1_folded(Index bc, Index dv) { return 4 * bc + 3 * dv + 9; }
Index fa2(Index bc, Index dv) { return 4 * bc + dv + 3; }
Index fa2_end(Index dv) { return dv + 3; }

std::string fixed(double x, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, x);
  return text;
}

}  // namespace

TEST_CASE("FLOPs of the specification outside matrix products") {
  // Appendix A.3: a row of nk keys, the last tile ragged
  const auto row = [](Index nk, Index bc, Index dv, Index (*tile)(Index, Index)) {
    Index sum = 0;
    for (const Range j : tiles(nk, bc)) sum += tile(j.size(), dv);
    return sum;
  };
  CHECK(row(1024, 128, 64, fa1_literal) == 6200);
  CHECK(row(1024, 128, 64, fa1_folded) == 5704);
  CHECK(row(1024, 128, 64, fa2) + fa2_end(64) == 4699);
  CHECK(row(100, 7, 5, fa1_literal) == 805);
  CHECK(row(100, 7, 5, fa1_folded) == 760);
  CHECK(row(100, 7, 5, fa2) + fa2_end(5) == 528);

  // 5.3: what they cost beside the products, at 16 times the price
  const auto share = [](Index other, Index bc, Index d) { return fixed(16. * double(other) / double(2 * bc * 2 * d), 3); };
  struct Row { Index d, bc; const char *literal, *folded, *fa2; };
  for (const Row& r : {Row{64, 128, "0.378", "0.348", "0.283"}, Row{128, 64, "0.378", "0.317", "0.189"}, Row{128, 128, "0.252", "0.221", "0.157"}}) {
    CAPTURE(r.d, r.bc);
    CHECK(share(fa1_literal(r.bc, r.d), r.bc, r.d) == r.literal);
    CHECK(share(fa1_folded(r.bc, r.d), r.bc, r.d) == r.folded);
    CHECK(share(fa2(r.bc, r.d), r.bc, r.d) == r.fa2);
  }
}

TEST_CASE("step04 step05 FLOPs beside those of the specification") {
  // Our pages scale Q tile by tile (d), start a row sum from zero (1), and add a product to O outside it (dv). FlashAttention-1
  // scales the weights by b (bc) where the literal form scales their product with V (dv), which it adds as the literal form does.
  for (const CaseShape& s : shapes()) {
    const HeadSizes x = sizes_of(s);
    if (x.nq == 0 || x.nk == 0) continue;
    CAPTURE(text(x));
    Index four = 2, five = x.d + fa2_end(x.dv);
    for (const Range j : tiles(x.nk, x.bc)) {
      four += fa1_literal(j.size(), x.dv) + x.d + 1 + j.size() - x.dv;
      five += fa2(j.size(), x.dv) + 1 + x.dv;
    }
    CHECK(step04::step().main().flops(x).other == x.nq * four);
    CHECK(step05::step().main().flops(x).other == x.nq * five);
  }
}

TEST_CASE("step01 step05 step06 matmul FLOPs of forward and backward") {
  // 6.2: with N = Nq = Nk and d = dv, 4 N^2 d forward, 8 N^2 d backward with P stored, 10 N^2 d recomputed
  const HeadSizes x{1024, 1024, 64, 64, 128, 128, 1024};
  const Index one = 2 * x.nq * x.nk * x.d;
  const Index standard = step01::step().main().flops(x).matmul, forward = step05::step().main().flops(x).matmul;
  CHECK(standard == 2 * one);
  CHECK(forward == 2 * one);
  CHECK(form_of(step06::step(), "standard").flops(x).matmul == 4 * one);
  CHECK(form_of(step06::step(), "column order").flops(x).matmul == 5 * one);
  CHECK(form_of(step06::step(), "row order").flops(x).matmul == 5 * one);

  // 15.1: GFLOP over 1024 heads; what the paper prints, 66.6 and 75.2, is smaller by factors of 12.4 and 12.8
  const auto gflop = [](Index matmul) { return 1024 * double(matmul) / 1e9; };
  const double six = gflop(standard + form_of(step06::step(), "standard").flops(x).matmul);
  const double seven = gflop(forward + form_of(step06::step(), "column order").flops(x).matmul);
  CHECK(fixed(gflop(one), 2) == "137.44");
  CHECK(fixed(six, 1) == "824.6");
  CHECK(fixed(seven, 1) == "962.1");
  CHECK(fixed(six / 66.6, 1) == "12.4");
  CHECK(fixed(seven / 75.2, 1) == "12.8");
  CHECK(fixed(64 * double(one) / 1e9, 2) == "8.59");  // the difference of the two, 8.6, is one product over 64 heads
  CHECK(fixed(seven / 312, 1) == "3.1");              // ms at 312 TFLOP/s
}

TEST_CASE("step07 FLOPs of the tiles that are visited") {
  // 7.3, 15.5: 128 x 128 tiles; the products grow with the visited tiles, the speed-up is bounded by 2 T / (T + 1)
  struct Row { Index n, visited, all; const char* bound; };
  for (const Row& r : {Row{1024, 36, 64, "1.78"}, Row{16384, 8256, 16384, "1.98"}}) {
    const HeadSizes x{r.n, r.n, 64, 64, 128, 128, 0};
    const Index tile = 2 * 128 * 128 * 128;
    CHECK(step07::step().main().flops(x).matmul == r.visited * tile);
    CHECK(step05::step().main().flops(x).matmul == r.all * tile);
    CHECK(fixed(double(r.all) / double(r.visited), 2) == r.bound);
  }
}

TEST_CASE("FLOPs behind the throughput of the papers") {
  // 15.4: FlashAttention-1, 14 N^2 d a head, 128 heads, d = 64: TFLOP/s
  const auto rate = [](double n, double ms) { return 128 * 14 * n * n * 64 / ms / 1e9; };
  CHECK(fixed(rate(1024, 2.29), 1) == "52.5");
  CHECK(fixed(rate(4096, 30.09), 1) == "63.9");
  CHECK(fixed(rate(65536, 7492.85), 1) == "65.7");
  // 15.5: FlashAttention-2, N = 16384, d = 128, 16 heads at 230 TFLOP/s: ms
  CHECK(fixed(4. * 16384 * 16384 * 128 * 16 / 230e12 * 1e3, 2) == "9.56");
}

}  // namespace flashsteps
