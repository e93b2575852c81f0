// Runs the kernels of the steps without Eigen and without Catch2, so that it compiles in seconds with any compiler and any options:
//
//   kernel_driver digests [FILE]      a line for each kernel and shape, a digest of the bits of its results; with FILE, held to it
//   kernel_driver check KERNEL ...    runs these kernels in several schedules and holds them to plain loops in double; traced where it can be
//   kernel_driver list
//
// Exit status: 0 right, 1 wrong values, 2 usage, 3 a mistake that the layer reported (on stderr).
#include "common/cuda/buffer.hpp"
#include "common/cuda/problem.hpp"
#include "common/cuda_on_cpu/counters.hpp"
#include "common/cuda_on_cpu/half.hpp"
#include "common/cuda_on_cpu/settings.hpp"
#include "steps/01_safe_softmax_3pass/kernels.hpp"
#include "steps/02_online_softmax_2pass/kernels.hpp"
#include "steps/03_fa_1pass/kernels.hpp"
#include "steps/04_fa1_tiled/kernels.hpp"
#include "steps/05_fa2_loop_swap/kernels.hpp"
#include "steps/06_backward_recompute/kernels.hpp"
#include "steps/07_causal_early_exit/kernels.hpp"
#include "steps/08_gqa/kernels.hpp"

#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <limits>
#include <map>
#include <sstream>
#include <string>

namespace flashsteps {
namespace {

struct Entry {
  const char* name;
  gpu::Kernels kernels;
  bool backward = false, causal = false, groups = false, atomics = false;
};
std::vector<Entry> entries() {
  return {{"01 standard", step01::standard_kernels()},
          {"01 three sweeps", step01::forward_kernels()},
          {"02", step02::forward_kernels()},
          {"03", step03::forward_kernels()},
          {"04", step04::forward_kernels()},
          {"04 tensor cores", step04::forward_tensor_core_kernels()},
          {"05", step05::forward_kernels()},
          {"05 tensor cores", step05::forward_tensor_core_kernels()},
          {"06 column order", step06::backward_kernels(), true, false, false, true},
          {"06 two kernels", step06::backward_two_kernels(), true},
          {"07", step07::forward_kernels(), false, true},
          {"07 tensor cores", step07::forward_tensor_core_kernels(), false, true},
          {"07 backward", step07::backward_kernels(), true, true, false, true},
          {"08", step08::forward_kernels(), false, true, true},
          {"08 tensor cores", step08::forward_tensor_core_kernels(), false, true, true},
          {"08 backward", step08::backward_kernels(), true, true, true, true}};
}

struct Shape {
  int nq, nk, d, dv;
  std::string text() const { return std::to_string(nq) + "x" + std::to_string(nk) + "x" + std::to_string(d) + "x" + std::to_string(dv); }
};

/// Two batch entries of two heads, or of four on two of K and V, of exact numbers: sums of eighths that every type holds.
struct Case {
  Shape shape;
  int heads, kv_heads = 2, diagonal;
  float scale;
  gpu::Element element;
  std::vector<float> q, k, v, d_o;
  static constexpr int batch = 2;

  Case(const Shape& s, const Entry& e, gpu::Element element)
      : shape(s), heads(e.groups ? 4 : 2), diagonal(e.causal ? s.nk - s.nq : s.nk), scale(1 / std::sqrt(float(s.d))), element(element) {
    std::uint64_t state = 1;
    const auto draw = [&](int rows, int cols, int heads) {
      std::vector<float> x(std::size_t(batch) * heads * rows * cols);
      for (float& y : x) y = float(int((state = state * 6364136223846793005u + 1442695040888963407u) >> 59) - 16) / 8;
      return x;
    };
    q = draw(s.nq, s.d, heads), k = draw(s.nk, s.d, kv_heads), v = draw(s.nk, s.dv, kv_heads), d_o = draw(s.nq, s.dv, heads);
  }
  bool sees(int i, int j) const { return j <= i + diagonal; }
};

using Results = std::map<std::string, std::vector<float>>;

/// Results by plain loops in double.
Results reference(const Case& c, bool backward) {
  const auto [nq, nk, d, dv] = c.shape;
  Results r;
  std::vector<double> dq(c.q.size()), dk(c.k.size()), dvv(c.v.size());
  r["o"].resize(c.d_o.size()), r["lse"].resize(std::size_t(Case::batch) * c.heads * nq);
  for (int b = 0; b < Case::batch; ++b)
    for (int h = 0; h < c.heads; ++h) {
      const std::size_t head = std::size_t(b) * c.heads + h, kv = std::size_t(b) * c.kv_heads + h / (c.heads / c.kv_heads);
      for (int i = 0; i < nq; ++i) {
        const std::size_t row = head * nq + i;
        const float *q = &c.q[row * d], *d_o = &c.d_o[row * dv];
        std::vector<double> s(nk), o(dv);
        double top = -INFINITY, sum = 0;
        for (int j = 0; j < nk && c.sees(i, j); ++j) {
          for (int x = 0; x < d; ++x) s[j] += double(q[x]) * double(c.k[(kv * nk + j) * d + x]);
          s[j] *= double(c.scale);
          top = std::max(top, s[j]);
        }
        for (int j = 0; j < nk && c.sees(i, j); ++j) sum += s[j] = std::exp(s[j] - top);
        for (int j = 0; j < nk && c.sees(i, j); ++j)
          for (int e = 0; e < dv; ++e) o[e] += (s[j] / sum) * double(c.v[(kv * nk + j) * dv + e]);
        double delta = 0;
        for (int e = 0; e < dv; ++e) r["o"][row * dv + e] = float(o[e]), delta += o[e] * double(d_o[e]);
        r["lse"][row] = sum == 0 ? -INFINITY : float(top + std::log(sum));
        for (int j = 0; backward && j < nk && c.sees(i, j); ++j) {
          const double p = s[j] / sum;
          double dp = 0;
          for (int e = 0; e < dv; ++e) dp += double(d_o[e]) * double(c.v[(kv * nk + j) * dv + e]), dvv[(kv * nk + j) * dv + e] += p * double(d_o[e]);
          const double ds = double(c.scale) * p * (dp - delta);
          for (int x = 0; x < d; ++x) dq[row * d + x] += ds * double(c.k[(kv * nk + j) * d + x]), dk[(kv * nk + j) * d + x] += ds * double(q[x]);
        }
      }
    }
  if (backward) {
    r["dq"].assign(dq.begin(), dq.end()), r["dk"].assign(dk.begin(), dk.end()), r["dv"].assign(dvv.begin(), dvv.end());
  }
  return r;
}

std::vector<std::uint16_t> narrow(const std::vector<float>& x, gpu::Element e) {
  std::vector<std::uint16_t> bits;
  for (const float y : x) bits.push_back(e == gpu::Element::half ? cuda_on_cpu::half_from_float(y) : cuda_on_cpu::bfloat16_from_float(y));
  return bits;
}
std::vector<float> widen(const std::vector<std::uint16_t>& bits, gpu::Element e) {
  std::vector<float> x;
  for (const std::uint16_t y : bits) x.push_back(e == gpu::Element::half ? cuda_on_cpu::half_to_float(y) : cuda_on_cpu::bfloat16_to_float(y));
  return x;
}

/// What the kernel makes of it. A backward kernel gets O and L of the reference.
template <class T> Results run(const Case& c, const gpu::Compiled& kernel, const Entry& e, const Results& forward) {
  const auto [nq, nk, d, dv] = c.shape;
  const auto convert = [&](const std::vector<float>& x) {
    if constexpr (std::is_same_v<T, float>) return x;
    else return narrow(x, c.element);
  };
  const auto tensor = [](auto& buffer, int heads, int rows, int cols) {
    return gpu::Tensor{buffer.data(), std::int64_t(heads) * rows * cols, std::int64_t(rows) * cols, cols};
  };
  gpu::Buffer<T> q(convert(c.q), "q"), k(convert(c.k), "k"), v(convert(c.v), "v"), o(c.d_o.size(), "o");
  gpu::Buffer<float> lse(std::size_t(Case::batch) * c.heads * nq, "lse"), d_o(c.d_o, "do"), dq(c.q.size(), "dq"), dk(c.k.size(), "dk"), dvv(c.v.size(), "dv");
  if constexpr (std::is_same_v<T, float>)
    if (e.backward) o.upload(forward.at("o")), lse.upload(forward.at("lse"));
  gpu::Problem p;
  p.q = tensor(q, c.heads, nq, d), p.k = tensor(k, c.kv_heads, nk, d), p.v = tensor(v, c.kv_heads, nk, dv);
  p.o = tensor(o, c.heads, nq, dv), p.lse = tensor(lse, c.heads, nq, 1), p.d_o = tensor(d_o, c.heads, nq, dv);
  p.dq = tensor(dq, c.heads, nq, d), p.dk = tensor(dk, c.kv_heads, nk, d), p.dv = tensor(dvv, c.kv_heads, nk, dv);
  p.batch = Case::batch, p.heads = c.heads, p.kv_heads = c.kv_heads, p.seq_q = nq, p.seq_k = nk, p.head_dim = d, p.value_dim = dv;
  p.scale = c.scale, p.diagonal = c.diagonal;
  kernel.start(p);
  gpu::synchronize();
  if (e.backward) return {{"dq", dq.download()}, {"dk", dk.download()}, {"dv", dvv.download()}};
  if constexpr (std::is_same_v<T, float>) return {{"o", o.download()}, {"lse", lse.download()}};
  else return {{"o", widen(o.download(), c.element)}, {"lse", lse.download()}};
}
Results run(const Case& c, const gpu::Compiled& kernel, const Entry& e, const Results& forward) {
  return kernel.element == gpu::Element::float32 ? run<float>(c, kernel, e, forward) : run<std::uint16_t>(c, kernel, e, forward);
}

const char* text(gpu::Element e) { return e == gpu::Element::float32 ? "float" : e == gpu::Element::half ? "half" : "bfloat16"; }
std::string text(const Entry& e, const gpu::Compiled& k) {
  return std::string(e.name) + ", " + text(k.element) + ", tile " + std::to_string(k.br) + "x" + std::to_string(k.bc) + ", dim " + std::to_string(k.dim);
}

// FNV-1a over the bits
std::string digest(const Results& results) {
  std::uint64_t hash = 14695981039346656037u;
  for (const auto& [name, numbers] : results)
    for (const float x : numbers) {
      std::uint32_t bits;
      std::memcpy(&bits, &x, sizeof bits);
      if (x != x) bits = 0x7fffffffu;  // compilers may differ in the sign of a NaN
      for (int byte = 0; byte < 4; ++byte) hash = (hash ^ ((bits >> (8 * byte)) & 0xff)) * 1099511628211u;
    }
  char line[17];
  std::snprintf(line, sizeof line, "%016llx", static_cast<unsigned long long>(hash));
  return line;
}

int digests(const char* file) {
  std::ostringstream all;
  for (const Entry& e : entries()) {
    if (e.atomics) continue;  // their last bits depend on the order
    for (const gpu::Compiled& kernel : e.kernels)
      for (const Shape& s : {Shape{37, 50, kernel.dim / 2 + 5, kernel.dim - 7}, Shape{70, 66, kernel.dim, kernel.dim}}) {
        const Case c(s, e, kernel.element);
        all << text(e, kernel) << ", " << s.text() << ": " << digest(run(c, kernel, e, e.backward ? reference(c, true) : Results())) << "\n";
      }
  }
  if (!file) return std::fputs(all.str().c_str(), stdout) < 0;
  std::ifstream in(file);
  std::istringstream mine(all.str());
  int wrong = 0;
  for (std::string expected, got;;) {
    const bool more = bool(std::getline(in, expected)), more_of_mine = bool(std::getline(mine, got));
    if (!more && !more_of_mine) break;
    if (!more || !more_of_mine || expected != got) std::fprintf(stderr, "expected  %s\ngot       %s\n", more ? expected.c_str() : "", more_of_mine ? got.c_str() : ""), ++wrong;
    if (!more || !more_of_mine) break;
  }
  return wrong > 0;
}

/// The first of the kernel's compiled shapes of each element, on shapes with tails and with whole tiles, in several schedules.
int check(const Entry& e) {
  using namespace cuda_on_cpu;
  int wrong = 0;
  std::map<std::pair<gpu::Element, int>, int> tried;
  for (const gpu::Compiled& kernel : e.kernels) {
    if (kernel.dim > 64 || tried[{kernel.element, kernel.dim}]++ > 0) continue;
    for (const Shape& s : {Shape{100, 100, kernel.dim, kernel.dim}, Shape{20, 37, kernel.dim - 12, kernel.dim - 3}}) {
      const Case c(s, e, kernel.element);
      const Results expected = reference(c, e.backward);
      const double most = kernel.element == gpu::Element::float32 ? 1e-4 : kernel.element == gpu::Element::half ? 1e-2 : 8e-2;
      for (const Order order : {Order::forward, Order::reverse, Order::random})
        for (const Landing landing : {Landing::late, Landing::early}) {
          settings().order = order, settings().landing = landing;
          settings().trace = trace_is_linked();
          if (settings().trace && (order != Order::forward || landing != Landing::late)) continue;
          for (const auto& [name, numbers] : run(c, kernel, e, expected)) {
            const std::vector<float>& right = expected.at(name);
            for (std::size_t i = 0; i < numbers.size(); ++i) {
              const bool same = numbers[i] == right[i] || std::abs(double(numbers[i]) - double(right[i])) <= most * std::max(1.0, std::abs(double(right[i])));
              if (same) continue;
              std::fprintf(stderr, "%s, %s: %s[%zu] is %g, not %g (order %d, landing %d)\n", text(e, kernel).c_str(), s.text().c_str(), name.c_str(), i, double(numbers[i]),
                           double(right[i]), int(order), int(landing));
              ++wrong;
              break;
            }
          }
        }
    }
  }
  if (settings().trace) std::fputs(counters_table().c_str(), stdout);
  return wrong > 0;
}

}  // namespace
}  // namespace flashsteps

int main(int argc, char** argv) try {
  using namespace flashsteps;
  const std::string mode = argc > 1 ? argv[1] : "";
  if (mode == "digests") return digests(argc > 2 ? argv[2] : nullptr);
  if (mode == "list") {
    for (const Entry& e : entries()) std::printf("%s\n", e.name);
    return 0;
  }
  if (mode == "check" && argc > 2) {
    int status = 0;
    for (int a = 2; a < argc; ++a) {
      bool found = false;
      for (const Entry& e : entries())
        if (std::string(e.name) == argv[a]) found = true, status |= check(e);
      if (!found) return std::fprintf(stderr, "no kernel '%s'\n", argv[a]), 2;
    }
    return status;
  }
  std::fprintf(stderr, "use: kernel_driver digests [FILE] | check KERNEL ... | list\n");
  return 2;
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 3;
}
