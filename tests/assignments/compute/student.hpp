#pragma once
// What a file student_NN.cpp is made of: the forms of a step in the number type STUDENT_TYPE, and their names.
// Each such file is compiled once a type, and is the only one that sees the code of the step.
#include "probe.hpp"
#include "job.hpp"
#ifdef STUDENT_FIFTY
#include "fifty.hpp"
#endif

namespace flashsteps {

template <class T> using Forms = std::map<std::string, void (*)(Job<T>&)>;

/// Runs a form and writes what it gave. end.txt, which says how it ended, is the last file.
template <class T> void run_form(const Forms<T>& forms, const Options& options) {
  const auto form = forms.find(options.form);
  if (form == forms.end()) throw std::invalid_argument("there is no form " + options.form);
  Job<T> job(options);
  std::string end = "done";
  try {
    form->second(job);
  } catch (const NotImplemented& hole) {
    end = "not implemented " + hole.task;
  } catch (const DoesNotFit& fault) {
    end = std::string("does not fit ") + fault.what();
  } catch (const std::exception& fault) {
    end = std::string("exception ") + fault.what();
  }
  for (const auto& [name, matrix] : job.results) matrix.write(options.out + "/" + name + ".txt");
  {
    std::ofstream file(options.out + "/probes.txt");
    for (const std::string& line : probed) file << line << '\n';
  }
  {
    std::ofstream file(options.out + "/counts.txt");
    Counts counts = job.memory.counts();
    counts += job.formula;
    for (int n = 0; n < name_count; ++n)
      if (const Traffic& t = counts.of[n]; !(t == Traffic{})) file << tensor::text[n] << ' ' << t.reads << ' ' << t.writes << ' ' << t.atomics << '\n';
    file << "peak " << job.memory.peak() << '\n';
  }
  std::ofstream(options.out + "/end.txt") << end << '\n';
}

/// Attention forward, head by head.
template <class T> void run_forward(Job<T>& job, void (*step)(const Head<T>&, Memory&), Index (*kv_head)(Index, Index, Index) = nullptr) {
  const Options& x = job.options;
  Matrix<T>&o = job.out("o", job.in("q").rows, job.in("v").cols), &lse = job.out("lse", job.in("q").rows, 1);
  for (Index h = 0; h < x.heads; ++h) {
    const Index g = kv_head ? kv_head(h, x.heads, x.kv_heads) : group_of(job, h);
    if (g < 0 || g >= x.kv_heads) throw std::out_of_range("query head " + std::to_string(h) + " wants key-value head " + std::to_string(g) + " of " + std::to_string(x.kv_heads));
    step(job.head(h, g, o, lse), job.memory);
  }
}

/// Attention backward, group by group. body(heads, gradients) is called for each.
template <class T, class Body> void run_backward(Job<T>& job, Body body) {
  const Options& x = job.options;
  Matrix<T>&dq = job.out("dq", job.in("q").rows, job.in("q").cols), &dk = job.out("dk", job.in("k").rows, job.in("k").cols),
           &dv = job.out("dv", job.in("v").rows, job.in("v").cols);
  const Index size = x.heads / x.kv_heads;
  for (Index g = 0; g < x.kv_heads; ++g) {
    std::vector<Head<T>> heads;
    std::vector<Gradients<T>> gradients;
    for (Index h = g * size; h < (g + 1) * size; ++h) heads.push_back(job.head(h, g, job.in("o"), job.in("lse"))), gradients.push_back(job.gradients(h, g, dq, dk, dv));
    body(heads, gradients);
  }
}

/// x and a of a softmax.
template <class T> void run_softmax(Job<T>& job, void (*softmax)(const Slow<const T>&, const Slow<T>&, Memory&)) {
  Matrix<T>& x = job.in("x");
  Matrix<T>& a = job.out("a", x.rows, 1);
  softmax({tensor::x, x.numbers.data(), x.rows, 1}, {tensor::a, a.numbers.data(), x.rows, 1}, job.memory);
}

}  // namespace flashsteps

/// Makes main() know the forms of a type.
#define STUDENT_FORMS(...)                                                                                                         \
  namespace {                                                                                                                     \
  void run_this(const flashsteps::Options& options) { flashsteps::run_form<flashsteps::Number>(__VA_ARGS__, options); }           \
  const bool registered = (flashsteps::types().push_back({STUDENT_NAME, run_this}), true);                                        \
  }
