#include "common/runner/checks.hpp"
#include "common/runner/device_problem.hpp"
#include "common/runner/evaluate.hpp"
#include "common/runner/output_folder.hpp"

#include <chrono>
#include <fmt/format.h>

namespace flashsteps {
namespace {

gpu::Element element_of(Dtype dtype) {
  return dtype == Dtype::half ? gpu::Element::half : dtype == Dtype::bfloat16 ? gpu::Element::bfloat16 : gpu::Element::float32;
}

/// Evaluates the kernels of a step that compute in one type.
class KernelEvaluation {
 public:
  KernelEvaluation(const std::vector<const Step*>& steps, const Step& step, const Options& options)
      : step_(step), options_(options), element_(element_of(options.dtype)), rounding_(rounding(element_)), p_(rounded(element_, make_problem<float>(step, options))) {
    for (const Kernel& kernel : step.kernels)
      if (kernel.tensor_cores == (element_ != gpu::Element::float32)) kernels_.push_back(&kernel);
    if (kernels_.empty()) refuse_type(steps);
    if (std::none_of(kernels_.begin(), kernels_.end(), [](const Kernel* k) { return k->backward; })) p_.gradients = false;
    for (const Kernel* kernel : kernels_) compiled_.push_back(&choose(*kernel));
    if (options.output) folder_.emplace(*options.output);
  }

  Outcome run() {
    describe();
    gpu::use_cores(threads());
    out_.emplace(p_);
    if (p_.gradients) forward_on_cpu(step_, p_, forward_.emplace(p_));
    for (std::size_t i = 0; i < kernels_.size(); ++i) evaluate(*kernels_[i], *compiled_[i]);
    write();
    return std::move(outcome_);
  }

 private:
  const Step& step_;
  const Options& options_;
  const gpu::Element element_;
  const Rounding<float> rounding_;
  Problem<float> p_;
  std::vector<const Kernel*> kernels_;
  std::vector<const gpu::Compiled*> compiled_;
  std::optional<OutputFolder> folder_;
  std::optional<Output<float>> out_;       // of the first forward and the first backward kernel
  std::optional<Output<float>> forward_;   // O and L on the CPU, which backward kernels take
  bool have_forward_ = false, have_backward_ = false;
  RowSample sample_;
  Outcome outcome_;

  [[noreturn]] void refuse_type(const std::vector<const Step*>& steps) const {
    std::string others;
    for (const Step* other : steps)
      if (std::any_of(other->kernels.begin(), other->kernels.end(), [](const Kernel& k) { return k.tensor_cores; }))
        others += fmt::format("{}{:02}", others.empty() ? "" : ", ", other->number);
    throw BadInput(fmt::format("--dtype {}: step {} has no such kernel; steps {} have, and this one takes float", word(options_.dtype), step_.name, others));
  }

  /// The compiled shape that the options ask for.
  const gpu::Compiled& choose(const Kernel& kernel) const {
    const Index widest = std::max(p_.head_dim(), p_.value_dim());
    Index most = 0;
    for (const gpu::Compiled& c : kernel.compiled) most = std::max<Index>(most, c.dim);
    if (widest > most)
      throw BadInput(fmt::format("{} {}: kernels take up to {}; wider tiles do not fit on chip, and FlashAttention would move more than standard attention; --device cpu takes any",
                                 p_.head_dim() > most ? "head_dim" : "value_dim", widest, most));
    const gpu::Compiled* found = find_compiled(kernel.compiled, element_, p_.head_dim(), p_.value_dim(), options_.br, options_.bc);
    if (!found) {
      std::string list;
      const gpu::Compiled* least = find_compiled(kernel.compiled, element_, p_.head_dim(), p_.value_dim());
      for (const gpu::Compiled& c : kernel.compiled)
        if (c.element == element_ && c.dim == least->dim) list += fmt::format("{}{} x {}", list.empty() ? "" : ", ", c.br, c.bc);
      throw BadInput(fmt::format("no kernel \"{}\" has {}{}{} at this head_dim; compiled are the tiles (--br x --bc) {}", kernel.name,
                                 options_.br ? fmt::format("--br {}", *options_.br) : "", options_.br && options_.bc ? " " : "",
                                 options_.bc ? fmt::format("--bc {}", *options_.bc) : "", list));
    }
    const std::optional<gpu::Device> device = gpu::device();
    if (device && found->capability > device->capability)
      throw BadInput(fmt::format("kernel \"{}\" needs a card of compute capability {}.{}; {} has {}.{}", kernel.name, found->capability / 10, found->capability % 10,
                                 device->name, device->capability / 10, device->capability % 10));
    if (device && found->shared_bytes > device->shared_bytes)
      throw BadInput(fmt::format("kernel \"{}\" at head_dim {} takes {} bytes of shared memory a block; {} has {}", kernel.name, widest, found->shared_bytes, device->name,
                                 device->shared_bytes));
    return *found;
  }

  void describe() {
    outcome_.step = &step_;
    outcome_.dtype = options_.dtype, outcome_.device = options_.device, outcome_.device_name = gpu::device()->name;
    outcome_.causal = p_.causal;
    outcome_.batch = p_.batch(), outcome_.heads = p_.heads(), outcome_.kv_heads = p_.kv_heads();
    outcome_.seq_q = p_.seq_q(), outcome_.seq_k = p_.seq_k(), outcome_.head_dim = p_.head_dim(), outcome_.value_dim = p_.value_dim();
    outcome_.source = p_.source, outcome_.scale = double(p_.scale);
    const double a_row = double(p_.seq_k()) * double(p_.head_dim() + p_.value_dim()) * (p_.gradients ? 3.5 : 1);
    sample_ = sample_rows(p_.seq_q(), p_.batch() * p_.heads(), a_row, most_multiply_adds, options_.seed);
    outcome_.rows = p_.batch() * p_.heads() * p_.seq_q();
    outcome_.rows_checked = p_.batch() * p_.heads() * Index(sample_.rows.size());
  }

  /// The shortest of the asked-for runs.
  double time(const Kernel& kernel, const gpu::Compiled& compiled, const Problem<float>& p, Output<float>& out, const Output<float>* forward) const {
    DeviceProblem device(p, compiled.element);
    if (kernel.backward) device.upload_forward(*forward);
    double best = std::numeric_limits<double>::infinity();
    for (int r = 0; r < options_.repeat; ++r) {
      const auto start = std::chrono::steady_clock::now();
      compiled.start(device.problem());
      gpu::synchronize();
      best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
    if (kernel.backward) device.download_backward(out);
    else device.download_forward(out);
    return best;
  }

  void evaluate(const Kernel& kernel, const gpu::Compiled& compiled) {
    KernelOutcome mine{.name = kernel.name, .form = kernel.form, .backward = kernel.backward, .tiles = {compiled.br, compiled.bc}, .threads = compiled.threads,
                       .shared_bytes = Index(compiled.shared_bytes), .bytes_of_element = element_ == gpu::Element::float32 ? 4 : 2};
    HeadSizes sizes = p_.sizes(kernel.backward ? Pieces::groups : Pieces::heads);
    sizes.br = compiled.br, sizes.bc = compiled.bc;
    mine.traffic_formula = times(kernel.traffic(sizes), p_.count(kernel.backward ? Pieces::groups : Pieces::heads));
    Output<float> out = kernel.backward ? *forward_ : Output<float>(p_);
    if (options_.trace_kernel) gpu::begin_trace();
    mine.seconds = time(kernel, compiled, p_, out, forward_ ? &*forward_ : nullptr);
    if (options_.trace_kernel) compare_traced(mine, gpu::end_trace());

    const Judgement<float> judgement = judge_kernel(kernel, compiled, out);
    add_checks(kernel, "definition", out, nullptr, judgement);
    if (!kernel.form.empty()) beside_cpu(kernel, compiled, out, judgement);
    beside_before(kernel, out, judgement, mine);
    keep(kernel, out);
    outcome_.kernels.push_back(std::move(mine));
  }

  /// Where only a sample of the rows is held to the definition, gradients are those of its rows: the kernel runs once more with dO = 0 elsewhere.
  Judgement<float> judge_kernel(const Kernel& kernel, const gpu::Compiled& compiled, const Output<float>& out) const {
    if (!kernel.backward || sample_.all) return judge(p_, out, kernel.backward, sample_, rounding_);
    const Problem<float> masked = with_rows_of_d_o(p_, sample_.rows);
    Output<float> of_sample = *forward_;
    run_kernel(kernel, compiled, masked, of_sample);
    of_sample.dq = out.dq;                 // rows of dQ depend on no other row of dO
    return judge(masked, of_sample, true, sample_, rounding_);
  }

  /// With `other`, both may be off by the budget; without, `out` was held to the definition.
  void add_checks(const Kernel& kernel, const std::string& against, const Output<float>& out, const Output<float>* other, const Judgement<float>& judgement) {
    const auto add = [&](Result r, const Tensor<float>& a, const Tensor<float>* b) {
      Comparison c = judgement.of(r);
      if (b) c = {largest_distance(a, *b, r == Result::lse ? Spoiled::same : Spoiled::either), 2 * c.budget};
      outcome_.checks.push_back({kernel.name, against, result_text[int(r)], c});
    };
    if (kernel.backward) {
      add(Result::dq, out.dq, other ? &other->dq : nullptr), add(Result::dk, out.dk, other ? &other->dk : nullptr), add(Result::dv, out.dv, other ? &other->dv : nullptr);
    } else {
      add(Result::o, out.o, other ? &other->o : nullptr), add(Result::lse, out.lse, other ? &other->lse : nullptr);
    }
  }

  /// The same algorithm on the CPU, in float and in the same tiles.
  void beside_cpu(const Kernel& kernel, const gpu::Compiled& compiled, const Output<float>& out, const Judgement<float>& judgement) {
    const Form& form = step_.form(kernel.form);
    Output<float> cpu = kernel.backward ? *forward_ : Output<float>(p_);
    outcome_.forms.push_back(execute(form, p_, cpu, {compiled.br, compiled.bc}, std::numeric_limits<Index>::max(), step_.kv_head, 1));
    outcome_.forms.back().capacity = 0;    // its tiles are those of the kernel, whatever fits on the chip of the model
    add_checks(kernel, "on the CPU", out, &cpu, judgement);
  }

  /// The kernel of the step before: without the mask if it has none, and with K and V repeated if it has no groups.
  void beside_before(const Kernel& kernel, const Output<float>& out, const Judgement<float>& judgement, KernelOutcome& mine) {
    const auto [before, step] = kernel_before(step_, kernel);
    if (!before) return;
    const gpu::Compiled* shape = find_compiled(before->compiled, before->tensor_cores ? element_ : gpu::Element::float32, p_.head_dim(), p_.value_dim());
    const bool repeat = step_.gqa && !step->gqa, unmask = p_.causal && !step->causal;
    Problem<float> p = repeat ? repeat_heads(p_) : p_;
    if (unmask) p.causal = false;
    Output<float> other(p), forward(p);
    if (kernel.backward) forward_on_cpu(*step, p, forward), other = forward;
    mine.before_name = fmt::format("{} {}", step->name, before->name);
    mine.before_seconds = time(*before, *shape, p, other, &forward);
    if (kernel.backward && repeat) {
      Output<float> summed(p_);
      sum_groups(other, p_, summed);
      other = std::move(summed);
    }
    if (!unmask) return add_checks(kernel, mine.before_name, out, &other, judgement);
    // With a mask the kernel before computes something else: this one without a mask is held to it
    Output<float> without = kernel.backward ? forward : Output<float>(p);
    const gpu::Compiled& own = *compiled_[std::size_t(std::find(kernels_.begin(), kernels_.end(), &kernel) - kernels_.begin())];
    run_kernel(kernel, own, p, without);
    add_checks(kernel, mine.before_name + ", without a mask", without, &other, judge(p, without, kernel.backward, sample_, rounding_));
  }

  void compare_traced(KernelOutcome& mine, gpu::Counters counters) const {
    for (int n = 0; n < name_count; ++n) {
      const Traffic& formula = mine.traffic_formula.of[n];
      const gpu::Counters::Array seen = counters.of(tensor::text[n]);
      const auto runs = std::uint64_t(options_.repeat), bytes = std::uint64_t(mine.bytes_of(Name{n}));
      mine.traced_is_formula = mine.traced_is_formula && seen.read_bytes == runs * bytes * std::uint64_t(formula.reads) &&
                               seen.written_bytes == runs * bytes * std::uint64_t(formula.writes + formula.atomics);
    }
    mine.traced = std::move(counters);
  }

  void keep(const Kernel& kernel, Output<float>& out) {
    bool& have = kernel.backward ? have_backward_ : have_forward_;
    if (std::exchange(have, true)) return;
    if (kernel.backward) {
      out_->dq = std::move(out.dq), out_->dk = std::move(out.dk), out_->dv = std::move(out.dv);
      if (!have_forward_) out_->o = forward_->o, out_->lse = forward_->lse;
    } else {
      out_->o = std::move(out.o), out_->lse = std::move(out.lse);
    }
  }

  void write() {
    if (!folder_) return;
    if (element_ == gpu::Element::half) {
      std::vector<std::uint16_t> bits;
      for (const float x : out_->o.numbers) bits.push_back(to_bits(element_, x));
      folder_->add("o.npy", out_->o.shape(), bits.data());
    } else {
      folder_->add("o.npy", out_->o.shape(), out_->o.numbers.data());
    }
    folder_->add("lse.npy", {p_.batch(), p_.heads(), p_.seq_q()}, out_->lse.numbers.data());
    if (have_backward_) {
      folder_->add("dq.npy", out_->dq.shape(), out_->dq.numbers.data());
      folder_->add("dk.npy", out_->dk.shape(), out_->dk.numbers.data());
      folder_->add("dv.npy", out_->dv.shape(), out_->dv.numbers.data());
    }
    folder_->commit();
  }
};

}  // namespace

Outcome evaluate_kernels(const std::vector<const Step*>& steps, const Step& step, const Options& options) { return KernelEvaluation(steps, step, options).run(); }

}  // namespace flashsteps
