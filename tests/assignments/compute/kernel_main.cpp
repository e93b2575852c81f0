// Runs one kernel once, on the CPU layer, and writes down what came of it. Nothing is compared here.
//
//   kernel_05 --in DIR --out DIR [--heads N] [--br N --bc N] [--scale X] [--order forward|reverse|random] [--seed N] [--trace]
//             [--until TASK [--times N]]
//
// DIR/in: q.txt k.txt v.txt. DIR/out: o.txt lse.txt; probes.txt, what the threads showed, a row each; with --trace trace.txt and counts.txt,
// elements that crossed the border of global memory; and at last end.txt. With --until every thread ends at its N-th call of that probe, and
// holes of later tasks do nothing: what is shown there depends on no later task.
#include "common/cuda/buffer.hpp"
#include "common/cuda_on_cpu/counters.hpp"
#include "common/cuda_on_cpu/device.hpp"
#include "kernel.hpp"
#include "kernel_probe.hpp"
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <map>
#include <sstream>

namespace flashsteps {
namespace {

struct Arguments {
  std::string in, out, order = "forward", until;
  int heads = 1, br = 0, bc = 0, times = 1;
  float scale = 1;
  unsigned long seed = 1;
  bool trace = false;
} arguments;

std::string not_implemented;  // the task of the hole that a thread fell into
int threads_of_block = 1;
/// By task, by call, by thread of the grid: what it showed.
std::map<std::string, std::vector<std::map<long, std::vector<float>>>> records;
std::map<std::pair<std::string, long>, int> calls;

/// Numbers of tasks: 1.2 comes before 1.10.
bool before(const std::string& a, const std::string& b) {
  int x[2] = {}, y[2] = {};
  std::sscanf(a.c_str(), "%d.%d", &x[0], &x[1]);
  std::sscanf(b.c_str(), "%d.%d", &y[0], &y[1]);
  return std::pair(x[0], x[1]) < std::pair(y[0], y[1]);
}

}  // namespace

namespace kernel_run {

void reached(const char* task) {
  if (!arguments.until.empty() && before(arguments.until, task)) return;
  if (not_implemented.empty()) not_implemented = task;
  throw cuda_on_cpu::ThreadExit();
}

void record(const char* task, const float* values, int n) {
  const long thread = long(cuda_on_cpu::block_index.x) * threads_of_block + cuda_on_cpu::thread_index.x;
  const std::size_t call = std::size_t(calls[{task, thread}]++);
  auto& of = records[task];
  if (of.size() <= call) of.resize(call + 1);
  of[call][thread].assign(values, values + n);
  if (arguments.until == task && int(call) + 1 == arguments.times) throw cuda_on_cpu::ThreadExit();
}

}  // namespace kernel_run

namespace {

struct Matrix {
  int rows = 0, cols = 0;
  std::vector<float> numbers;
};
Matrix read(const std::string& name) {
  std::ifstream file(arguments.in + "/" + name + ".txt");
  Matrix x;
  if (!(file >> x.rows >> x.cols)) throw std::runtime_error("cannot read " + name + ".txt");
  for (std::string word; file >> word;) x.numbers.push_back(std::strtof(word.c_str(), nullptr));
  if (x.numbers.size() != std::size_t(x.rows) * std::size_t(x.cols)) throw std::runtime_error(name + ".txt is short");
  return x;
}

/// A file of the output folder. Written at once, so that there is either all of it or nothing.
void write(const std::string& name, const std::string& text) {
  std::ofstream file(arguments.out + "/" + name + ".txt");
  file << text;
  if (!file.flush()) throw std::runtime_error("cannot write " + name + ".txt");
}
std::string text(float x) {
  if (x != x) return "nan";
  if (x - x != 0) return x > 0 ? "inf" : "-inf";
  char line[40];
  std::snprintf(line, sizeof line, "%a", double(x));
  return line;
}
std::string text(int rows, int cols, const std::vector<float>& numbers) {
  std::string all = std::to_string(rows) + " " + std::to_string(cols) + "\n";
  for (const float x : numbers) all += text(x) + "\n";
  return all;
}

/// What the threads showed: a matrix for each call, a row a thread. What a thread did not show is NaN.
std::string probes(long threads) {
  std::string all;
  for (const auto& [task, of] : records)
    for (const auto& by_thread : of) {
      std::size_t cols = 0;
      for (const auto& [thread, values] : by_thread) cols = std::max(cols, values.size());
      std::vector<float> numbers(std::size_t(threads) * cols, std::numeric_limits<float>::quiet_NaN());
      for (const auto& [thread, values] : by_thread)
        if (thread < threads) std::copy(values.begin(), values.end(), numbers.begin() + std::ptrdiff_t(std::size_t(thread) * cols));
      all += "probe " + task + " " + text(int(threads), int(cols), numbers);
    }
  return all;
}

/// A finding of the tracer as `ARRAYS: text`, with the element of shared memory that it speaks of, by the kernel's name.
std::string finding(std::string line, const std::vector<kernel_run::Array>& arrays) {
  std::string names;
  if (const auto at = line.find("shared byte "); at != std::string::npos) {
    const std::size_t byte = std::strtoul(line.c_str() + at + 12, nullptr, 10);
    for (const kernel_run::Array& a : arrays) {
      if (byte < a.offset || byte >= a.offset + a.bytes) continue;
      const std::size_t row = (byte - a.offset) / a.row_bytes, col = (byte - a.offset) % a.row_bytes / 4;
      names = a.name;
      line.replace(at, line.find_first_not_of("0123456789", at + 12) - at, "sm." + a.name + "[" + std::to_string(row) + "]" + (a.row_bytes > 4 ? "[" + std::to_string(col) + "]" : ""));
      break;
    }
  }
  for (auto at = line.find('\''); names.empty() && at != std::string::npos; at = line.find('\'', at + 1)) {
    const auto end = line.find('\'', at + 1);
    if (end == std::string::npos) break;
    names = line.substr(at + 1, end - at - 1);
  }
  return (names.empty() ? "-" : names) + ": " + line + "\n";
}

std::string one_line(std::string s) {
  std::string line;
  for (const char c : s)
    if (c != '\n') line += c;
    else line += ";";
  return line;
}

/// Runs the kernel. What the tracer found goes into `found`. @return what end.txt shall say
std::string run(std::string& found) {
  const Matrix q = read("q"), k = read("k"), v = read("v");
  gpu::Problem p;
  p.batch = 1, p.heads = p.kv_heads = arguments.heads;
  p.seq_q = q.rows / p.heads, p.seq_k = k.rows / p.heads, p.head_dim = q.cols, p.value_dim = v.cols;
  p.scale = arguments.scale, p.diagonal = p.seq_k;
  const gpu::Kernels all = kernel_run::kernels();
  const auto fits = [&](const gpu::Compiled& c) {
    return c.dim >= std::max(p.head_dim, p.value_dim) && (c.br == 1 || arguments.br == 0 || (c.br == arguments.br && c.bc == arguments.bc));
  };
  const auto compiled = std::find_if(all.begin(), all.end(), fits);
  if (compiled == all.end()) return "exception the kernel's list of compiled shapes has none for this case";

  gpu::Buffer<float> q_(q.numbers, "q"), k_(k.numbers, "k"), v_(v.numbers, "v");
  gpu::Buffer<float> o(std::size_t(p.heads) * p.seq_q * p.value_dim, "o"), lse(std::size_t(p.heads) * p.seq_q, "lse");
  const auto tensor = [](auto& buffer, int rows, int cols) { return gpu::Tensor{buffer.data(), 0, std::int64_t(rows) * cols, cols}; };
  p.q = tensor(q_, p.seq_q, p.head_dim), p.k = tensor(k_, p.seq_k, p.head_dim), p.v = tensor(v_, p.seq_k, p.value_dim);
  p.o = tensor(o, p.seq_q, p.value_dim), p.lse = tensor(lse, p.seq_q, 1);

  using namespace cuda_on_cpu;
  settings().order = arguments.order == "reverse" ? Order::reverse : arguments.order == "random" ? Order::random : Order::forward;
  settings().seed = arguments.seed;
  settings().trace = arguments.trace && trace_is_linked();
  threads_of_block = compiled->threads;
  std::string end;
  try {
    compiled->start(p);
    gpu::synchronize();
  } catch (const std::exception& e) {
    std::istringstream lines(e.what());
    std::string line;
    std::getline(lines, line);
    if (line == "the tracer found:") {
      const auto arrays = kernel_run::arrays(*compiled);
      while (std::getline(lines, line)) found += finding(line.substr(line.find_first_not_of(' ')), arrays);
    } else {
      end = "exception " + one_line(e.what());
    }
  }
  settings().trace = false;
  const long blocks = long(p.heads) * (compiled->br == 1 ? p.seq_q : (p.seq_q + compiled->br - 1) / compiled->br);
  write("probes", probes(blocks * compiled->threads));
  if (end.empty() && !not_implemented.empty()) end = "not implemented " + not_implemented;
  if (end.empty() && arguments.until.empty()) {
    write("o", text(p.heads * p.seq_q, p.value_dim, o.download()));
    write("lse", text(p.heads * p.seq_q, 1, lse.download()));
  }
  if (arguments.trace) {
    std::string counts;
    for (const BufferCounters& b : buffer_counters()) counts += b.name + " " + std::to_string(b.read_bytes / 4) + " " + std::to_string(b.written_bytes / 4) + " 0\n";
    write("counts", counts);
    write("trace", std::string(trace_is_linked() ? "traced" : "not traced") + "\n" + found);
  }
  return end.empty() ? "done" : end;
}

bool parse(int argc, char** argv) {
  for (int a = 1; a < argc; ++a) {
    const std::string name = argv[a];
    if (name == "--trace") {
      arguments.trace = true;
      continue;
    }
    if (a + 1 == argc) return false;
    const std::string value = argv[++a];
    if (name == "--in") arguments.in = value;
    else if (name == "--out") arguments.out = value;
    else if (name == "--order") arguments.order = value;
    else if (name == "--until") arguments.until = value;
    else if (name == "--heads") arguments.heads = std::atoi(value.c_str());
    else if (name == "--br") arguments.br = std::atoi(value.c_str());
    else if (name == "--bc") arguments.bc = std::atoi(value.c_str());
    else if (name == "--times") arguments.times = std::atoi(value.c_str());
    else if (name == "--seed") arguments.seed = std::strtoul(value.c_str(), nullptr, 10);
    else if (name == "--scale") arguments.scale = std::strtof(value.c_str(), nullptr);
    else if (name != "--form" && name != "--type" && name != "--kv-heads") return false;
  }
  return !arguments.in.empty() && !arguments.out.empty() && arguments.heads > 0;
}

}  // namespace
}  // namespace flashsteps

int main(int argc, char** argv) {
  using namespace flashsteps;
  if (!parse(argc, argv)) {
    std::fprintf(stderr, "use: --in DIR --out DIR [--heads N] [--br N --bc N] [--scale X] [--order forward|reverse|random] [--seed N] [--trace] [--until TASK [--times N]]\n");
    return 2;
  }
  std::string end, found;
  try {
    end = run(found);
  } catch (const std::exception& e) {
    end = "exception " + one_line(e.what());
  }
  try {
    write("end", end + "\n");
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 2;
  }
  return 0;
}
