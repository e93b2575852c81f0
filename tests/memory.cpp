// The memory of every step: what it reads, writes and adds atomically, per tensor, and what it holds on chip, measured on ragged
// shapes and held to the step's own closed forms; these in turn are held to those of the mathematical specification.
#include "tests/case.hpp"
#include "tests/catch.hpp"
#include "tests/memory_formulas.hpp"
#include "tests/steps.hpp"

namespace flashsteps {
namespace {

/// A problem for one form of a step: a group of heads that share K and V.
struct Problem {
  CaseShape shape;
  Index group = 1;
  bool d_lse = false;
  unsigned seed = 0;

  HeadSizes sizes() const {
    const Index diagonal = shape.causal ? shape.nk - shape.nq : shape.nk;
    return {shape.nq, shape.nk, shape.d, shape.dv, shape.br, shape.bc, diagonal, group, d_lse};
  }
  std::string text() const {
    std::string s = "seed " + std::to_string(seed) + ": nq nk d dv br bc";
    for (const Index n : {shape.nq, shape.nk, shape.d, shape.dv, shape.br, shape.bc}) s += " " + std::to_string(n);
    return s + (shape.causal ? " causal" : "") + " group " + std::to_string(group) + (d_lse ? " with dL" : "");
  }
};

/// Its numbers, and a run of a form on them.
class Run {
 public:
  explicit Run(const Problem& problem) {
    for (Index h = 0; h < problem.group; ++h) {
      cases_.emplace_back(problem.shape, 0.4f, problem.seed + unsigned(h));
      cases_.back().with_d_lse = problem.d_lse;
    }
    for (Case<float>& c : cases_) {
      heads_.push_back(c.head());
      gradients_.push_back(c.gradients());
      heads_.back().k = heads_.front().k, heads_.back().v = heads_.front().v;
      gradients_.back().dk = gradients_.front().dk, gradients_.back().dv = gradients_.front().dv;
      Memory elsewhere;
      step08::forward(heads_.back(), elsewhere);
    }
  }
  void operator()(const Form& form, Memory& memory) const {
    if (form.backward()) form.in_float.backward(heads_, gradients_, memory);
    else form.in_float.forward(heads_.front(), memory);
  }

 private:
  std::vector<Case<float>> cases_;
  std::vector<Head<float>> heads_;
  std::vector<Gradients<float>> gradients_;
};

/// The shapes of every test here: the fixed ones, those without a query or a key, and 120 random ones.
std::vector<CaseShape> shapes() {
  std::vector<CaseShape> all = fixed_shapes();
  for (const CaseShape& s : {CaseShape{0, 9, 4, 3, 4, 4}, CaseShape{9, 0, 4, 3, 4, 4}, CaseShape{1, 0, 1, 1, 1, 1}, CaseShape{0, 1, 1, 1, 1, 1}, CaseShape{9, 1, 2, 2, 5, 5}})
    all.push_back(s);
  for (unsigned seed = 1; seed <= 120; ++seed) all.push_back(random_shape(seed));
  return all;
}
/// The problems of one form: with a mask and without, groups and dL where the form has them.
std::vector<Problem> problems(const Step& step, const Form& form) {
  std::vector<Problem> all;
  unsigned seed = 1;
  for (CaseShape shape : shapes())
    for (const bool causal : {false, true}) {
      if (causal && !(step.causal && form.home == step.name)) continue;
      shape.causal = causal;
      const bool grouped = step.gqa && form.backward();
      const std::vector<Index> groups = !grouped ? std::vector<Index>{1} : seed <= 60 ? std::vector<Index>{1, 2, 3, 4} : std::vector<Index>{Index(1 + seed % 4)};
      for (const Index group : groups) all.push_back({shape, group, form.backward() && seed % 2 == 0, seed});
      ++seed;
    }
  return all;
}

std::string text(const Counts& measured, const Counts& formula) {
  std::string s;
  for (int n = 0; n < name_count; ++n) {
    const Traffic &a = measured.of[n], &b = formula.of[n];
    if (a == b) continue;
    for (const Traffic* t : {&a, &b})
      s += (t == &a ? std::string(tensor::text[n]) + " measured " : ", formula ") + std::to_string(t->reads) + " " + std::to_string(t->writes) + " " + std::to_string(t->atomics);
    s += "; ";
  }
  return s;
}

/// Measured = closed form, for every form of one step.
void holds_to_its_forms(const Step& step) {
  for (const Form& form : step.forms) {
    CAPTURE(step.name, form.name);
    for (const Problem& problem : problems(step, form)) {
      const HeadSizes sizes = problem.sizes();
      const Run run(problem);
      Memory memory;
      run(form, memory);
      const Counts formula = form.traffic(sizes);
      const Index peak = form.on_chip(sizes);
      CAPTURE(problem.text(), text(memory.counts(), formula));
      CHECK(memory.counts() == formula);
      CHECK(memory.peak() == peak);

      // A chip of exactly that size is enough, one element less is not
      Memory exact(peak);
      CHECK_NOTHROW(run(form, exact));
      if (peak == 0) continue;
      Memory small(peak - 1);
      CHECK_THROWS_AS(run(form, small), DoesNotFit);
    }
  }
}

formula::Sizes printed(const HeadSizes& x) { return {x.nq, x.nk, x.d, x.dv, x.br, x.bc}; }

/// A step's totals = the formula of the specification, over the problems of a form.
template <class Formula> void totals(const Step& step, const Form& form, Formula formula) {
  CAPTURE(step.name, form.name);
  for (const Problem& problem : problems(step, form)) {
    CAPTURE(problem.text());
    const HeadSizes sizes = problem.sizes();
    Traffic expected = formula(sizes);
    if (sizes.d_lse) expected.reads += sizes.group * sizes.nq;
    const Traffic total = form.traffic(sizes).total();
    CHECK(total.reads == expected.reads);
    CHECK(total.writes == expected.writes);
    CHECK(total.atomics == expected.atomics);
  }
}
/// A step's footprint = the formula, wherever there is a query and a key.
template <class Formula> void footprints(const Step& step, const Form& form, Formula formula) {
  CAPTURE(step.name, form.name);
  for (const Problem& problem : problems(step, form)) {
    const HeadSizes x = problem.sizes();
    if (x.nq == 0 || x.nk == 0 || problem.shape.causal) continue;
    CAPTURE(problem.text());
    CHECK(form.on_chip(x) == formula(std::min(x.br, x.nq), std::min(x.bc, x.nk), x.d, x.dv));
  }
}
const Form& form_of(const Step& step, const std::string& name) {
  for (const Form& form : step.forms)
    if (form.name == name) return form;
  FAIL("no form " << name);
  return step.main();
}
/// With L: one write more a row.
Traffic with_lse(Traffic t, Index nq) { return t += {0, nq}; }

}  // namespace

TEST_CASE("step01 memory is its closed forms") { holds_to_its_forms(step01::step()); }
TEST_CASE("step02 memory is its closed forms") { holds_to_its_forms(step02::step()); }
TEST_CASE("step03 memory is its closed forms") { holds_to_its_forms(step03::step()); }
TEST_CASE("step04 memory is its closed forms") { holds_to_its_forms(step04::step()); }
TEST_CASE("step05 memory is its closed forms") { holds_to_its_forms(step05::step()); }
TEST_CASE("step06 memory is its closed forms") { holds_to_its_forms(step06::step()); }
TEST_CASE("step07 memory is its closed forms") { holds_to_its_forms(step07::step()); }
TEST_CASE("step08 memory is its closed forms") { holds_to_its_forms(step08::step()); }

TEST_CASE("step01 step02 step03 totals are those of standard attention and of p sweeps") {
  totals(step01::step(), form_of(step01::step(), "standard"), [](const HeadSizes& x) { return with_lse(formula::standard(printed(x)), x.nq); });
  const auto sweeps = [](Index p) {
    return [p](const HeadSizes& x) {
      formula::Sizes rows = printed(x);
      rows.br = 1;
      return with_lse(formula::sweeps(rows, p), x.nq);
    };
  };
  totals(step01::step(), form_of(step01::step(), "three sweeps"), sweeps(3));
  totals(step02::step(), step02::step().main(), sweeps(2));
  totals(step03::step(), form_of(step03::step(), "one sweep"), sweeps(1));
  totals(step03::step(), form_of(step03::step(), "one sweep, normalised"), sweeps(1));
}

TEST_CASE("step04 totals are those of FlashAttention-1") {
  const Form& form = step04::step().main();
  totals(step04::step(), form, [](const HeadSizes& x) {
    Traffic t = formula::fa1(printed(x));
    return t += formula::fa1_lse(printed(x));
  });
  footprints(step04::step(), form, formula::fa1_footprint);
}

TEST_CASE("step05 totals are those of FlashAttention-2") {
  const Form& form = step05::step().main();
  totals(step05::step(), form, [](const HeadSizes& x) { return formula::fa2(printed(x)); });
  footprints(step05::step(), form, formula::fa2_footprint);
}

TEST_CASE("step06 totals are those of the three backward passes") {
  const Step& step = step06::step();
  totals(step, form_of(step, "standard"), [](const HeadSizes& x) { return formula::standard_backward(printed(x)); });
  totals(step, form_of(step, "column order"), [](const HeadSizes& x) { return formula::column_order(printed(x)); });
  totals(step, form_of(step, "row order"), [](const HeadSizes& x) { return formula::row_order(printed(x)); });
  footprints(step, form_of(step, "column order"), formula::column_order_footprint);
}

TEST_CASE("step07 step08 totals are those of the tiles that are visited") {
  for (const Step* step : {&step07::step(), &step08::step()}) {
    totals(*step, step->forward(), [](const HeadSizes& x) { return formula::causal(printed(x), x.diagonal); });
    totals(*step, *step->backward(), [](const HeadSizes& x) { return formula::causal_backward(printed(x), x.diagonal, x.group); });
    footprints(*step, step->forward(), formula::fa2_footprint);
    footprints(*step, *step->backward(), formula::column_order_footprint);
  }
}

TEST_CASE("step07 step08 without a mask the visited tiles are all tiles") {
  for (const CaseShape& s : shapes()) {
    const formula::Sizes x{s.nq, s.nk, s.d, s.dv, s.br, s.bc};
    CAPTURE(s.nq, s.nk, s.d, s.dv, s.br, s.bc);
    CHECK(formula::causal(x, s.nk) == formula::fa2(x));
    CHECK(formula::causal_backward(x, s.nk, 1) == formula::column_order(x));
  }
}

TEST_CASE("step01 step02 softmax touches every element four times and three times") {
  for (const Index n : {0, 1, 2, 7, 64, 331}) {
    std::vector<float> x(n), a(n);
    for (Index i = 0; i < n; ++i) x[i] = float(i % 5);
    const Slow<const float> in(tensor::x, x.data(), n, 1);
    const Slow<float> out(tensor::a, a.data(), n, 1);
    CAPTURE(n);
    Counts expected;
    Memory three;
    step01::softmax(in, out, three);
    expected[tensor::x].reads = 3 * n, expected[tensor::a].writes = n;
    CHECK(three.counts() == expected);
    Memory two;
    step02::softmax(in, out, two);
    expected[tensor::x].reads = 2 * n;
    CHECK(two.counts() == expected);
    Memory blocks;
    step02::max_sum(in, 5, blocks);
    expected[tensor::x].reads = n, expected[tensor::a].writes = 0;
    CHECK(blocks.counts() == expected);
  }
}

TEST_CASE("step01 step04 step05 step06 counts of the small example") {
  // Appendix A.2, with L stated apart
  const HeadSizes x{5, 7, 3, 2, 2, 3, 7};
  const auto total = [&](const Step& step, const std::string& form) { return form_of(step, form).traffic(x).total(); };
  const auto less = [](Traffic t, const Traffic& part) { return t += {-part.reads, -part.writes, -part.atomics}; };
  CHECK(less(total(step01::step(), "standard"), {0, 5}) == Traffic{120, 80});
  CHECK(less(total(step04::step(), "column tiles outside"), {10, 5}) == Traffic{140, 80});
  CHECK(total(step05::step(), "row tiles outside") == Traffic{120, 15});
  CHECK(total(step06::step(), "standard") == Traffic{245, 120});
  CHECK(total(step06::step(), "column order") == Traffic{160, 55, 45});
  CHECK(total(step06::step(), "row order") == Traffic{145, 50, 105});
}

}  // namespace flashsteps
