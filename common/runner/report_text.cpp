#include "common/runner/report.hpp"

#include <fmt/format.h>

namespace flashsteps {
namespace {

/// Escape sequences, or none.
struct Paint {
  bool color;
  std::string bold(const std::string& s) const { return color ? "\033[1m" + s + "\033[0m" : s; }
  std::string good(const std::string& s) const { return color ? "\033[32m" + s + "\033[0m" : s; }
  std::string bad(const std::string& s) const { return color ? "\033[31m" + s + "\033[0m" : s; }
};

std::string percent(double share) { return share < 0.01 ? "under 1 %" : fmt::format("{:.0f} %", 100 * share); }
std::string ratio(double a, double b) { return b > 0 ? fmt::format("{:.3g} x", a / b) : "- x"; }

/// One line a form and what it is held to: "o 1.2e-07 (12 % of the budget), lse ...".
std::string check_lines(const Outcome& outcome, const Paint& paint) {
  std::string text;
  const std::vector<Check>& checks = outcome.checks;
  for (std::size_t i = 0; i < checks.size();) {
    std::string parts;
    bool equal = true;
    const std::string form = checks[i].form, against = checks[i].against;
    for (; i < checks.size() && checks[i].form == form && checks[i].against == against; ++i) {
      const Comparison& c = checks[i].comparison;
      equal = equal && c.equal();
      const std::string error = c.max_error == 0 ? "0, bit for bit" : fmt::format("{:.1e}, {} of the budget", c.max_error, percent(c.share()));
      parts += fmt::format("{}{} {}", parts.empty() ? "" : "; ", checks[i].of, error);
    }
    text += fmt::format("  {:<12}{} = {}: {}\n", equal ? paint.good("equal") + std::string(7, ' ') : paint.bad("NOT EQUAL") + std::string(3, ' '), form, against, parts);
  }
  return text;
}

std::string cost_line(const char* label, const std::string& value) { return fmt::format("  {:<12}{}\n", label, value); }

std::string traffic_line(const FormOutcome& form) {
  std::string line = fmt::format("{} read, {} written", with_commas(form.traffic.reads), with_commas(form.traffic.writes));
  if (form.traffic_formula.atomics > 0) line += fmt::format(", {} added atomically", with_commas(form.traffic.atomics));
  return line;
}

std::string costs(const Outcome& outcome, const FormOutcome& form, const Paint& paint) {
  std::string text;
  const FormOutcome *before = outcome.beside(form), *standard = outcome.beside_standard(form);
  const std::string& name = outcome.beside_name(form);
  text += cost_line("traffic", traffic_line(form) + (form.counted_is_formula ? paint.good(" = formula") : paint.bad(" IS NOT the formula")));
  if (before)
    text += cost_line("", fmt::format("{} {} ({})", ratio(double(moved(form.traffic)), double(moved(before->traffic))), name, traffic_line(*before)));
  if (standard && before != standard && name != standard->name)
    text += cost_line("", fmt::format("{} standard attention{}", ratio(double(moved(form.traffic)), double(moved(standard->traffic_formula))),
                                      form.backward ? ", backward" : ""));
  text += cost_line("on chip", fmt::format("{} elements at most{}{}", with_commas(form.peak), form.tiled ? fmt::format(" of {}", with_commas(form.capacity)) : "",
                                           before ? fmt::format("; {} {}", name, with_commas(before->peak)) : ""));
  text += cost_line("flops", fmt::format("{} in matrix products, {} others{}", with_commas(form.flops.matmul), with_commas(form.flops.other),
                                         before ? fmt::format("; {} {} and {}", name, with_commas(before->flops.matmul), with_commas(before->flops.other)) : ""));
  if (form.extra_bytes)
    text += cost_line("memory", fmt::format("{:.1f} MiB beyond inputs and outputs", double(*form.extra_bytes) / (1 << 20)));
  text += cost_line("time", fmt::format("{}{}", duration(form.seconds),
                                        before ? fmt::format("; {} {}, {} that", name, duration(before->seconds), ratio(form.seconds, before->seconds)) : ""));
  return text;
}

/// Where the kernel moved its bytes, tensor by tensor.
std::string traced_lines(const KernelOutcome& kernel, const Paint& paint) {
  std::string text = cost_line("traced", std::string("bytes moved ") + (kernel.traced_is_formula ? paint.good("= formula") : paint.bad("ARE NOT the formula")));
  for (const gpu::Counters::Array& a : kernel.traced->arrays) {
    const auto used = [](std::uint64_t bytes, std::uint64_t sectors) { return sectors == 0 ? 0.0 : 100.0 * double(bytes) / (32.0 * double(sectors)); };
    std::string line = fmt::format("{:<4}", a.name);
    if (a.read_bytes > 0) line += fmt::format(" {:>12} bytes read, {:>3.0f} % of the sectors", with_commas(Index(a.read_bytes)), used(a.read_bytes, a.read_sectors));
    if (a.written_bytes > 0)
      line += fmt::format("{} {:>12} bytes written, {:>3.0f} %", a.read_bytes > 0 ? ";" : "", with_commas(Index(a.written_bytes)), used(a.written_bytes, a.written_sectors));
    if (a.read_bytes + a.written_bytes > 0) text += cost_line("", line);
  }
  const gpu::Counters& c = *kernel.traced;
  text += cost_line("", fmt::format("{} passes over the banks, {:.2f} for one; {} barriers, {} shuffles, {} warp barriers", with_commas(Index(c.passes)),
                                    c.ideal_passes == 0 ? 1.0 : double(c.passes) / double(c.ideal_passes), with_commas(Index(c.barriers)), with_commas(Index(c.shuffles)),
                                    with_commas(Index(c.syncs))));
  if (c.mma > 0) text += cost_line("", fmt::format("{} mma and {} ldmatrix, by warp", with_commas(Index(c.mma)), with_commas(Index(c.ldmatrix))));
  return text;
}

std::string kernel_lines(const Outcome& outcome, const KernelOutcome& kernel, const Paint& paint) {
  std::string text = fmt::format("\n  {}, tile {} x {}\n", paint.bold("kernel " + kernel.name), kernel.tiles.br, kernel.tiles.bc);
  Traffic bytes;
  for (int n = 0; n < name_count; ++n) {
    const Traffic& t = kernel.traffic_formula.of[n];
    const Index each = kernel.bytes_of(Name{n});
    bytes += {each * t.reads, each * t.writes, each * t.atomics};
  }
  std::string line = fmt::format("{} bytes read, {} written", with_commas(bytes.reads), with_commas(bytes.writes));
  if (bytes.atomics > 0) line += fmt::format(", {} added atomically", with_commas(bytes.atomics));
  text += cost_line("formula", line);
  for (const FormOutcome& form : outcome.forms)
    if (form.name == kernel.form)
      text += cost_line("", fmt::format("the CPU version in this tile counts {} elements{}", traffic_line(form), form.counted_is_formula ? "" : paint.bad(" IS NOT its formula")));
  if (kernel.traced) text += traced_lines(kernel, paint);
  text += cost_line("block", fmt::format("{} threads, {} bytes of shared memory", kernel.threads, with_commas(kernel.shared_bytes)));
  text += cost_line("time", fmt::format("{} on {}{}", duration(kernel.seconds), outcome.device_name,
                                        kernel.before_name.empty() ? "" : fmt::format("; {} {}", kernel.before_name, duration(kernel.before_seconds))));
  return text;
}

std::string trace_lines(const TraceOutcome& trace) {
  std::string text = fmt::format("  row {} of head {}, {}: m, l and o as they are held\n", trace.row, trace.head, trace.form);
  text += fmt::format("  {:>5} {:>6} {:>14} {:>14}  {}\n", "sweep", "keys", "m", "l", "o");
  if (trace.moments.empty()) text += "  this row sees no tile\n";
  for (const Moment<double>& m : trace.moments) {
    std::string o;
    for (const double x : m.o) o += fmt::format(" {:.6g}", x);
    text += fmt::format("  {:>5} {:>6} {:>14.8g} {:>14.8g} {}\n", m.sweep, m.keys, m.m, m.l, o);
  }
  return text;
}

}  // namespace

Index moved(const Traffic& traffic) { return traffic.reads + traffic.writes + 2 * traffic.atomics; }

std::string with_commas(Index n) {
  std::string digits = fmt::format("{}", n);
  for (Index at = Index(digits.size()) - 3; at > (n < 0 ? 1 : 0); at -= 3) digits.insert(at, ",");
  return digits;
}

std::string duration(double seconds) {
  if (seconds >= 1) return fmt::format("{:.3g} s", seconds);
  if (seconds >= 1e-3) return fmt::format("{:.3g} ms", seconds * 1e3);
  return fmt::format("{:.3g} us", seconds * 1e6);
}

std::string text_report(const Outcome& outcome, const std::string& next, bool color) {
  const Paint paint{color};
  const Step& step = *outcome.step;
  std::string text = paint.bold(fmt::format("{:02} {}", step.number, step.title)) + "\n";
  text += fmt::format("  {}\n\n", step.idea);
  text += cost_line("input", outcome.source);
  text += cost_line("", fmt::format("batch {}, heads {}{}, seq_q {}, seq_k {}, head_dim {}{}, {}{}", outcome.batch, outcome.heads,
                                    outcome.kv_heads == outcome.heads ? "" : fmt::format(" on {} of K and V", outcome.kv_heads), outcome.seq_q, outcome.seq_k, outcome.head_dim,
                                    outcome.value_dim == outcome.head_dim ? "" : fmt::format(", value_dim {}", outcome.value_dim), word(outcome.dtype),
                                    outcome.causal ? ", causal" : ""));
  for (const std::string& note : outcome.notes) text += cost_line("note", note);
  text += check_lines(outcome, paint);
  if (outcome.rows_checked < outcome.rows)
    text += cost_line("", fmt::format("a sample of {} of the {} query rows was held to the definition", with_commas(outcome.rows_checked), with_commas(outcome.rows)));
  for (const KernelOutcome& kernel : outcome.kernels) text += kernel_lines(outcome, kernel, paint);
  for (const FormOutcome& form : outcome.kernels.empty() ? outcome.forms : std::vector<FormOutcome>()) {
    text += fmt::format("\n  {}{}\n", paint.bold(form.name), form.tiled ? fmt::format(", tiles of {} x {}", form.tiles.br, form.tiles.bc) : "");
    text += costs(outcome, form, paint);
  }
  if (outcome.unsafe) {
    const UnsafeOutcome& u = *outcome.unsafe;
    text += fmt::format("\n  Without the maximum, with scores, exp and sum rounded to half: {} of {} rows are NaN and {} more silently 0.\n", with_commas(u.nan_rows), with_commas(u.rows),
                        with_commas(u.zero_rows));
    if (u.rows > 0 && u.headroom > 1) text += fmt::format("  In float, sums stay a factor of {:.2g} below the largest number.\n", u.headroom);
    if (u.headroom < 1) text += "  In float they overflow too.\n";
  }
  if (outcome.trace) text += "\n" + trace_lines(*outcome.trace);
  if (!next.empty()) text += fmt::format("\n  next: {}\n", next);
  return text;
}

}  // namespace flashsteps
