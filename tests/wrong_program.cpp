// The program of a step with one mistake, to show that a program finds it out: wrong_program MISTAKE [arguments of the program].
// Only the list of steps that goes in is wrong; the runner is the one of the shipped programs.
#include "common/runner/program.hpp"
#include "steps/all.hpp"

#include <cstdio>
#include <map>
#include <string>

namespace flashsteps {
namespace {

const Step& right(int number) { return *all_steps()[number - 1]; }
void forward(int number, const Head<float>& head, Memory& memory) { right(number).forward().in_float.forward(head, memory); }
void backward(int number, std::span<const Head<float>> group, std::span<const Gradients<float>> gradients, Memory& memory) {
  right(number).backward()->in_float.backward(group, gradients, memory);
}

/// Writes x into one row of a matrix, where nobody counts.
void write(const Slow<float>& matrix, Index row, float x) {
  Memory elsewhere;
  if (row < matrix.rows()) elsewhere.fill(matrix[{row, row + 1}], x);
}
/// The forms of a copy that are to be wrong.
Form& forward_form(Step& step) { return step.forms[&step.forward() - step.forms.data()]; }
Form& backward_form(Step& step) { return step.forms[step.backward() - step.forms.data()]; }

struct Mistake {
  int number;                              // of the step
  void (*make)(Step&);
};

const std::map<std::string, Mistake> mistakes{
    {"none", {5, [](Step&) {}}},
    // Values
    {"scale", {5, [](Step& step) {
       step.forms[0].in_float.forward = [](const Head<float>& head, Memory& memory) {
         Head<float> wrong = head;
         wrong.scale *= 1.001f;
         forward(5, wrong, memory);
       };
     }}},
    {"lse in base 2", {5, [](Step& step) {
       step.forms[0].in_float.forward = [](const Head<float>& head, Memory& memory) {
         forward(5, head, memory);
         Memory elsewhere;
         const auto lse = elsewhere.load_lanes(head.lse);
         for (Index i = 0; i < lse.rows(); ++i) write(head.lse, i, lse(i) * 1.442695f);
       };
     }}},
    {"one row", {5, [](Step& step) {         // off by little, and only the last row of a tile
       step.forms[0].in_float.forward = [](const Head<float>& head, Memory& memory) {
         forward(5, head, memory);
         write(head.o, head.o.rows() - 1, 0.01f);
       };
     }}},
    {"nan", {5, [](Step& step) {
       step.forms[0].in_float.forward = [](const Head<float>& head, Memory& memory) {
         forward(5, head, memory);
         write(head.o, 0, std::numeric_limits<float>::quiet_NaN());
       };
     }}},
    {"infinity", {5, [](Step& step) {
       step.forms[0].in_float.forward = [](const Head<float>& head, Memory& memory) {
         forward(5, head, memory);
         write(head.lse, 0, std::numeric_limits<float>::infinity());
       };
     }}},
    {"unwritten", {5, [](Step& step) {       // counted as if it were written
       step.forms[0].in_float.forward = [](const Head<float>& head, Memory& memory) {
         const Workspace<float> o(tensor::o, head.o.rows(), head.o.cols());
         Head<float> wrong = head;
         wrong.o = o;
         forward(5, wrong, memory);
       };
     }}},
    {"other form", {3, [](Step& step) {      // a form that is not the main one
       step.forms[1].in_float.forward = [](const Head<float>& head, Memory& memory) {
         right(3).forms[1].in_float.forward(head, memory);
         write(head.o, 0, 0.01f);
       };
     }}},
    // Costs: right values, but the traffic or the footprint is not what the closed form says
    {"traffic", {5, [](Step& step) {
       step.forms[0].traffic = [](const HeadSizes& x) {
         Counts c = right(5).forms[0].traffic(x);
         c[tensor::k].reads += 1;
         return c;
       };
     }}},
    {"traffic of another tensor", {5, [](Step& step) {
       step.forms[0].traffic = [](const HeadSizes& x) {
         Counts c = right(5).forms[0].traffic(x);
         c[tensor::k].reads += 1, c[tensor::v].reads -= 1;
         return c;
       };
     }}},
    {"extra read", {5, [](Step& step) {
       step.forms[0].in_float.forward = [](const Head<float>& head, Memory& memory) {
         forward(5, head, memory);
         memory.load(head.q[{0, 1}]);
       };
     }}},
    {"footprint", {5, [](Step& step) {
       step.forms[0].on_chip = [](const HeadSizes& x) { return right(5).forms[0].on_chip(x) + 1; };
     }}},
    // Gradients
    {"gradients", {6, [](Step& step) {
       backward_form(step).in_float.backward = [](std::span<const Head<float>> group, std::span<const Gradients<float>> gradients, Memory& memory) {
         backward(6, group, gradients, memory);
         write(gradients.front().dk, 0, 0.25f);
       };
     }}},
    {"gradients nan", {6, [](Step& step) {
       backward_form(step).in_float.backward = [](std::span<const Head<float>> group, std::span<const Gradients<float>> gradients, Memory& memory) {
         backward(6, group, gradients, memory);
         write(gradients.front().dv, gradients.front().dv.rows() - 1, std::numeric_limits<float>::quiet_NaN());
       };
     }}},
    {"gradients unwritten", {7, [](Step& step) {
       backward_form(step).in_float.backward = [](std::span<const Head<float>> group, std::span<const Gradients<float>> gradients, Memory& memory) {
         const Workspace<float> dq(tensor::dq, gradients.front().dq.rows(), gradients.front().dq.cols());
         Gradients<float> wrong = gradients.front();
         wrong.dq = dq;
         backward(7, group, std::span<const Gradients<float>>(&wrong, 1), memory);
       };
     }}},
    // The mask, and the head of K and V
    {"mask", {7, [](Step& step) {            // row i sees key i + 1, too
       forward_form(step).in_float.forward = [](const Head<float>& head, Memory& memory) {
         Head<float> wrong = head;
         wrong.diagonal += 1;
         forward(7, wrong, memory);
       };
     }}},
    {"no mask", {7, [](Step& step) {
       forward_form(step).in_float.forward = [](const Head<float>& head, Memory& memory) {
         Head<float> wrong = head;
         wrong.diagonal = head.k.rows();
         forward(7, wrong, memory);
       };
     }}},
    {"head of K and V", {8, [](Step& step) { step.kv_head = [](Index h, Index, Index kv_heads) { return h % kv_heads; }; }}},
};

}  // namespace
}  // namespace flashsteps

int main(int argc, char** argv) {
  using namespace flashsteps;
  const auto mistake = argc < 2 ? mistakes.end() : mistakes.find(argv[1]);
  if (mistake == mistakes.end()) {
    std::fprintf(stderr, "use: wrong_program MISTAKE [arguments], with one of:\n");
    for (const auto& [name, unused] : mistakes) std::fprintf(stderr, "%s\n", name.c_str());
    return 2;
  }
  const auto [number, make] = mistake->second;
  Step step = right(number);
  make(step);
  std::vector<const Step*> steps = all_steps();
  steps[number - 1] = &step;
  argv[1] = argv[0];
  return run_program(steps, number, argc - 1, argv + 1);
}
