#include "common/runner/evaluate.hpp"

#include "common/runner/checks.hpp"
#include "common/runner/output_folder.hpp"
#include "common/runner/tile_trace.hpp"
#include "common/runner/unsafe_softmax.hpp"
#include "common/runner/whole_file.hpp"

#include <fmt/format.h>

namespace flashsteps {
namespace {

constexpr Result forward_results[] = {Result::o, Result::lse}, gradient_results[] = {Result::dq, Result::dk, Result::dv};

template <class T> const Tensor<T>& tensor_of(const Output<T>& out, Result result) {
  switch (result) {
    case Result::o: return out.o;
    case Result::lse: return out.lse;
    case Result::dq: return out.dq;
    case Result::dk: return out.dk;
    default: return out.dv;
  }
}

/// Evaluates a step in the number type T.
template <class T> class Evaluation {
 public:
  Evaluation(const Step& step, const Options& options) : step_(step), options_(options), p_(make_problem<T>(step, options)), out_(p_) {
    check_trace();
    if (options.trace_tiles) tile_file_.emplace(*options.trace_tiles);
    if (options.output) folder_.emplace(*options.output);
  }

  Outcome run() {
    describe();
    choose_all_tiles();
    if (tile_file_) check_tile_trace(p_.sizes(step_.forward().pieces), choice(step_.forward()).tiles);
    run_forward_forms();
    run_backward_forms();
    std::stable_partition(outcome_.forms.begin(), outcome_.forms.end(), [&](const FormOutcome& f) { return f.name == step_.main().name; });
    compare_with_reference();
    standard_costs();
    write();
    return std::move(outcome_);
  }

 private:
  const Step& step_;
  const Options& options_;
  Problem<T> p_;
  Output<T> out_;                          // of the step's own forward and backward form
  std::optional<OutputFolder> folder_;
  std::optional<WholeFile> tile_file_;
  Outcome outcome_;
  Judgement<T> judgement_;                 // of out_
  RowSample sample_;
  std::vector<TileChoice> choices_;        // by form

  void check_trace() const {
    if (!options_.trace_row && !options_.trace_tiles) return;
    if (options_.trace_row && *options_.trace_row >= p_.seq_q()) throw BadInput(fmt::format("--trace {}: there are {} query rows, the first is 0", *options_.trace_row, p_.seq_q()));
    if (options_.trace_head >= p_.heads()) throw BadInput(fmt::format("--trace-head {}: there are {} query heads, the first is 0", options_.trace_head, p_.heads()));
    if (p_.batch() == 0) throw BadInput(options_.trace_row ? "--trace: batch is 0, there is no row" : "--trace-tiles: batch is 0, there is no head");
  }

  void describe() {
    outcome_.step = &step_;
    outcome_.dtype = options_.dtype;
    outcome_.causal = p_.causal;
    outcome_.batch = p_.batch(), outcome_.heads = p_.heads(), outcome_.kv_heads = p_.kv_heads();
    outcome_.seq_q = p_.seq_q(), outcome_.seq_k = p_.seq_k(), outcome_.head_dim = p_.head_dim(), outcome_.value_dim = p_.value_dim();
    outcome_.source = p_.source;
    outcome_.scale = double(p_.scale);
    const double a_row = double(p_.seq_k()) * double(p_.head_dim() + p_.value_dim()) * (step_.has_backward() ? 3.5 : 1);
    sample_ = sample_rows(p_.seq_q(), p_.batch() * p_.heads(), a_row, most_multiply_adds, options_.seed);
    outcome_.rows = p_.batch() * p_.heads() * p_.seq_q();
    outcome_.rows_checked = p_.batch() * p_.heads() * Index(sample_.rows.size());
  }

  void choose_all_tiles() {
    for (const Form& form : step_.forms) {
      choices_.push_back(tiles_of(step_, form, p_, options_));
      note(choices_.back().note);
    }
  }
  void note(const std::string& line) {
    if (!line.empty()) outcome_.notes.push_back(line);
  }
  const TileChoice& choice(const Form& form) const { return choices_[&form - step_.forms.data()]; }

  void add_checks(const std::string& form, const std::string& against, const Judgement<T>& judgement, bool gradients) {
    const std::span<const Result> results = gradients ? std::span<const Result>(gradient_results) : std::span<const Result>(forward_results);
    for (const Result r : results) outcome_.checks.push_back({form, against, result_text[int(r)], judgement.of(r)});
  }
  /// Two outputs of the same problem may each be off by the budget.
  void add_checks(const std::string& form, const std::string& against, const Output<T>& a, const Output<T>& b, bool gradients) {
    const std::span<const Result> results = gradients ? std::span<const Result>(gradient_results) : std::span<const Result>(forward_results);
    for (const Result r : results)
      outcome_.checks.push_back({form, against, result_text[int(r)],
                                 {largest_distance(tensor_of(a, r), tensor_of(b, r), r == Result::lse ? Spoiled::same : Spoiled::either), 2 * judgement_.of(r).budget}});
  }

  void run_forward_forms() {
    for (const Form& form : step_.forms) {
      if (form.backward()) continue;
      const bool own = &form == &step_.forward();
      Output<T> other = own ? Output<T>(Problem<T>{}) : Output<T>(p_);
      Output<T>& out = own ? out_ : other;
      std::vector<Moment<T>> moments;
      const Form& traced = step_.number == 1 ? step_.forms.back() : step_.forward();  // standard attention has no running m and l
      const bool trace = options_.trace_row && &form == &traced;
      outcome_.forms.push_back(execute(form, p_, out, choice(form).tiles, choice(form).capacity, step_.kv_head, options_.repeat, options_.trace_head,
                                       trace ? &moments : nullptr, options_.trace_row.value_or(0)));
      const Judgement<T> judgement = judge(p_, out, false, sample_);
      if (own) judgement_ = judgement;
      add_checks(form.name, "definition", judgement, false);
      if (!own && !form.backward()) add_checks(form.name, step_.forward().name, out, out_, false);
      if (trace) keep_trace(form, moments);
    }
    if (step_.number == 1) unsafe_softmax();
  }

  void run_backward_forms() {
    if (!step_.has_backward()) return;
    const Form& own = *step_.backward();
    for (const Form& form : step_.forms) {
      if (!form.backward()) continue;
      Output<T> other = &form == &own ? Output<T>(Problem<T>{}) : out_;
      Output<T>& out = &form == &own ? out_ : other;
      outcome_.forms.push_back(execute(form, p_, out, choice(form).tiles, choice(form).capacity, step_.kv_head, options_.repeat));
      const Judgement<T> judgement = judge_gradients(form, out);
      if (&form == &own) judgement_ = judgement;
      add_checks(form.name, "definition", judgement, true);
      if (&form != &own) add_checks(own.name, form.name, out_, out, true);
    }
  }

  /// Where only a sample of the rows is held to the definition, so is their contribution to dK and dV: the form runs once more with
  /// dO = 0 in all other rows.
  Judgement<T> judge_gradients(const Form& form, const Output<T>& out) {
    if (sample_.all) return judge(p_, out, true, sample_);
    Output<T> of_sample = out;
    const Problem<T> masked = with_rows_of_d_o(p_, sample_.rows);
    Memory memory(form.tiled ? choice(form).capacity : std::numeric_limits<Index>::max());
    execute_once(form, masked, of_sample, choice(form).tiles, step_.kv_head, memory);
    of_sample.dq = out.dq;                 // rows of dQ depend on no other row of dO
    return judge(masked, of_sample, true, sample_);
  }

  void compare_with_reference() {
    const Form* before = step_.before ? &step_.before->forms[step_.beside] : nullptr;
    switch (step_.reference) {
      case Reference::own_forms: return;
      case Reference::step_before:
        if (step_.has_backward()) return beside_own_form();
        return beside(*before, p_, *step_.before);
      case Reference::one_row: return beside_one_row();
      case Reference::repeated: return beside_repeated();
    }
  }

  /// 06: column order is laid beside the standard backward pass, which is a form of its own.
  void beside_own_form() {
    for (const FormOutcome& form : outcome_.forms)
      if (form.name == "standard") outcome_.before_backward = form, outcome_.before_backward_name = "standard";
  }
  /// Runs a form of the step before, for its costs and its values.
  void beside(const Form& form, const Problem<T>& p, const Step& before) {
    Output<T> out(p);
    run_before(form, p, out);
    outcome_.before_name = before.name;
    add_checks(step_.forward().name, form.home, out_, out, false);
  }
  /// Runs a form of the step before on a problem. A backward form needs O and L in `out`.
  void run_before(const Form& form, const Problem<T>& p, Output<T>& out) {
    const TileChoice taken = form.tiled ? shrink_to_fit(form, p.sizes(form.pieces), choice(form.backward() ? *step_.backward() : step_.forward()).tiles,
                                                        options_.sram.value_or(default_capacity))
                                        : TileChoice{{1, 1}, 0, ""};
    note(taken.note);
    const FormOutcome outcome = execute(form, p, out, taken.tiles, taken.capacity, [](Index h, Index, Index) { return h; }, options_.repeat);
    if (form.backward()) outcome_.before_backward = outcome, outcome_.before_backward_name = form.home;
    else outcome_.before = outcome, outcome_.before_name = form.home;
  }

  /// 07: costs beside 05 without a mask; values row by row, or, without a mask, beside 05 and 06.
  void beside_one_row() {
    const Form &forward = step_.before->forward(), &backward = *step_.before->backward();
    Problem<T> whole = p_;
    whole.causal = false;
    Output<T> out(p_);
    run_before(forward, whole, out);
    run_before(backward, whole, out);
    if (!p_.causal) {
      add_checks(step_.forward().name, forward.home, out_, out, false);
      add_checks(step_.backward()->name, backward.home, out_, out, true);
      return;
    }
    const double a_row = double(p_.seq_k()) * double(p_.head_dim() + p_.value_dim()) * 3.5;
    const RowSample rows = sample_rows(p_.seq_q(), p_.batch() * p_.heads(), a_row, most_multiply_adds / 10, options_.seed);
    Output<T> one_row(p_);
    one_row_at_a_time(forward, &backward, p_, choice(step_.forward()).tiles, rows, one_row);
    if (rows.all) {
      add_checks(step_.forward().name, forward.home + ", row by row", out_, one_row, false);
      add_checks(step_.backward()->name, backward.home + ", row by row", out_, one_row, true);
      return;
    }
    outcome_.notes.push_back(fmt::format("row by row: {} of {} query rows, O and L alone", p_.batch() * p_.heads() * Index(rows.rows.size()), outcome_.rows));
    Output<T> mine = one_row;              // NaN in both but for the sampled rows
    for (Index b = 0; b < p_.batch(); ++b)
      for (Index h = 0; h < p_.heads(); ++h)
        for (const Index i : rows.rows) {
          for (Index e = 0; e < p_.value_dim(); ++e) mine.o.at(b, h, i, e) = out_.o.at(b, h, i, e);
          mine.lse.at(b, h, i, 0) = out_.lse.at(b, h, i, 0);
        }
    add_checks(step_.forward().name, forward.home + ", row by row", mine, one_row, false);
  }

  /// 08: beside 07 on K and V repeated for every head; their gradients are summed over the group.
  void beside_repeated() {
    const Problem<T> repeated = repeat_heads(p_);
    Output<T> out(repeated), summed(p_);
    run_before(step_.before->forward(), repeated, out);
    add_checks(step_.forward().name, step_.before->name, out_, out, false);
    run_before(*step_.before->backward(), repeated, out);
    sum_groups(out, p_, summed);
    add_checks(step_.backward()->name, step_.before->name, out_, summed, true);
  }

  /// What standard attention and its backward pass cost on this input, with a head of K and V for every query head.
  void standard_costs() {
    for (const Step* step = &step_; step; step = step->before)
      for (const Form& form : step->forms) {
        std::optional<FormOutcome>& costs = form.backward() ? outcome_.standard_backward : outcome_.standard;
        if (form.name != "standard" || costs) continue;
        const HeadSizes sizes = p_.sizes(Pieces::heads);
        costs = FormOutcome{.name = form.name, .home = form.home, .backward = form.backward()};
        costs->traffic_formula = traffic_formula(form, sizes, p_.count(Pieces::heads)).total();
        costs->peak_formula = form.on_chip(sizes);
      }
  }

  void unsafe_softmax() {
    UnsafeOutcome unsafe;
    unsafe.headroom = std::numeric_limits<double>::infinity();
    if constexpr (std::is_same_v<T, float>) {
      for (Index b = 0; b < p_.batch(); ++b)
        for (Index h = 0; h < p_.heads(); ++h) {
          const UnsafeSoftmax one = unsafe_softmax_in_half(raw_head(p_, b, h, h, false));
          unsafe.rows += one.rows, unsafe.nan_rows += one.nan_rows, unsafe.zero_rows += one.zero_rows;
          unsafe.headroom = std::min(unsafe.headroom, one.headroom);
        }
      outcome_.unsafe = unsafe;
    }
  }

  void keep_trace(const Form& form, const std::vector<Moment<T>>& moments) {
    TraceOutcome trace{*options_.trace_row, options_.trace_head, form.name, {}};
    for (const Moment<T>& m : moments) trace.moments.push_back({m.sweep, m.keys, double(m.m), double(m.l), std::vector<double>(m.o.begin(), m.o.end())});
    outcome_.trace = trace;
  }

  void write() {
    if (tile_file_) tile_file_->write(tile_trace(step_, options_, p_, choice(step_.forward())));
    write_folder();
    if (tile_file_) tile_file_->commit();
  }
  void write_folder() {
    if (!folder_) return;
    folder_->add("o.npy", out_.o.shape(), out_.o.numbers.data());
    folder_->add("lse.npy", {p_.batch(), p_.heads(), p_.seq_q()}, out_.lse.numbers.data());
    if (step_.has_backward()) {
      folder_->add("dq.npy", out_.dq.shape(), out_.dq.numbers.data());
      folder_->add("dk.npy", out_.dk.shape(), out_.dk.numbers.data());
      folder_->add("dv.npy", out_.dv.shape(), out_.dv.numbers.data());
    }
    folder_->commit();
  }
};

}  // namespace

Outcome evaluate(const Step& step, const Options& options) {
  return options.dtype == Dtype::float64 ? Evaluation<double>(step, options).run() : Evaluation<float>(step, options).run();
}

}  // namespace flashsteps
