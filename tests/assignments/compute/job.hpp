#pragma once
// What one run of a program works on: its arguments, and the matrices that come in and go out as files.
#include "common/attention/head.hpp"
#include "common/memory/memory.hpp"
#include "options.hpp"
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace flashsteps {

/// @{
/// A number as text, exactly.
inline std::string to_text(double x) {
  char text[40];
  std::snprintf(text, sizeof text, "%a", x);
  return text;
}
inline std::string to_text(float x) { return to_text(double(x)); }
inline void from_text(const std::string& text, float& x) { x = float(std::strtod(text.c_str(), nullptr)); }
inline void from_text(const std::string& text, double& x) { x = std::strtod(text.c_str(), nullptr); }
template <class T> std::string to_text(const T& x) {
  if (x != x) return "nan";
  return x - x == T(0) ? x.str(60) : x > T(0) ? "inf" : "-inf";
}
template <class T> void from_text(const std::string& text, T& x) {
  const bool decimal = text.find_first_of("xXnN") == std::string::npos;
  x = decimal ? T(text) : T(std::strtod(text.c_str(), nullptr));
}
/// @}

/// A matrix of a file [rows x cols].
template <class T> struct Matrix {
  Index rows = 0, cols = 0;
  std::vector<T> numbers;

  /// Nothing but NaN: what nobody writes shows.
  Matrix(Index rows, Index cols) : rows(rows), cols(cols), numbers(rows * cols, std::numeric_limits<T>::quiet_NaN()) {}
  Matrix() = default;
  /// @param path  a file: `rows cols`, and a number a line
  explicit Matrix(const std::string& path) {
    std::ifstream file(path);
    if (!(file >> rows >> cols) || rows < 0 || cols < 0) throw std::runtime_error(path + ": wanted are rows and columns");
    std::string text;
    for (Index n = rows * cols; n > 0 && file >> text; --n) from_text(text, numbers.emplace_back());
    if (Index(numbers.size()) != rows * cols) throw std::runtime_error(path + ": ends too early");
  }
  void write(const std::string& path) const {
    std::ofstream file(path);
    file << rows << ' ' << cols << '\n';
    for (const T& x : numbers) file << to_text(x) << '\n';
  }
  /// The rows of one head of several, that are stacked.
  T* head(Index h, Index heads) { return numbers.data() + h * (rows / heads) * cols; }
};

/// One run: matrices by name, and the memory that counts.
template <class T> struct Job {
  explicit Job(const Options& options) : options(options) {}

  const Options& options;
  Memory memory{options.capacity};
  Counts formula{};  ///< counts that a form states instead of making them
  std::map<std::string, Matrix<T>> matrices, results;

  /// A matrix that came in, read when it is first asked for.
  Matrix<T>& in(const std::string& name) {
    const auto [at, is_new] = matrices.try_emplace(name);
    if (is_new) at->second = Matrix<T>(options.in + "/" + name + ".txt");
    return at->second;
  }
  bool has(const std::string& name) const { return std::ifstream(options.in + "/" + name + ".txt").good(); }
  /// A matrix that goes out.
  Matrix<T>& out(const std::string& name, Index rows, Index cols) { return results.insert_or_assign(name, Matrix<T>(rows, cols)).first->second; }

  Index seq_q() { return in("q").rows / options.heads; }
  Index seq_k() { return in("k").rows / options.kv_heads; }
  Index diagonal() { return options.causal ? seq_k() - seq_q() : seq_k(); }
  /// Query head h, with the keys and values of head g, and with the O and L that go out, or came in.
  Head<T> head(Index h, Index g, Matrix<T>& o, Matrix<T>& lse) {
    Matrix<T>&q = in("q"), &k = in("k"), &v = in("v");
    const Index nq = seq_q(), nk = seq_k();
    return {{tensor::q, q.head(h, options.heads), nq, q.cols}, {tensor::k, k.head(g, options.kv_heads), nk, k.cols}, {tensor::v, v.head(g, options.kv_heads), nk, v.cols},
            {tensor::o, o.head(h, options.heads), nq, o.cols}, {tensor::lse, lse.head(h, options.heads), nq, 1},
            T(options.scale), options.br, options.bc, diagonal(), {}};
  }
  /// The gradients of query head h, with those of keys and values of head g.
  Gradients<T> gradients(Index h, Index g, Matrix<T>& dq, Matrix<T>& dk, Matrix<T>& dv) {
    Matrix<T>& d_o = in("do");
    const Index nq = seq_q(), nk = seq_k();
    return {{tensor::d_o, d_o.head(h, options.heads), nq, d_o.cols},
            has("dlse") ? Slow<const T>{tensor::d_lse, in("dlse").head(h, options.heads), nq, 1} : Slow<const T>{},
            {tensor::dq, dq.head(h, options.heads), nq, dq.cols}, {tensor::dk, dk.head(g, options.kv_heads), nk, dk.cols}, {tensor::dv, dv.head(g, options.kv_heads), nk, dv.cols}};
  }
};

/// The keys and values of query head h, where neighbours share them.
template <class T> Index group_of(const Job<T>& job, Index h) { return h / (job.options.heads / job.options.kv_heads); }

}  // namespace flashsteps
