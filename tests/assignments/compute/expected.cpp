// What a case is held to: results by the definition in a wider type, and how far from them a result may be (common/attention/budget.hpp).
// Takes the arguments of the program that is judged. For a backward form it also writes the O and L that are given to it.
#include "common/attention/budget.hpp"
#include "fifty.hpp"
#include "job.hpp"
#include <iostream>

using namespace flashsteps;

namespace {

std::vector<Index> all_rows(Index n) {
  std::vector<Index> rows(n);
  for (Index i = 0; i < n; ++i) rows[i] = i;
  return rows;
}

// A row of a variant: scores capped softly, less what the distance of query and key takes, or of the nearest keys alone
template <class R, class T> RowResult<R> bent_row(const RawHead<T>& head, Index i, const Options& options) {
  using std::exp, std::log, std::tanh;
  const R minus_infinity = -std::numeric_limits<R>::infinity();
  RowResult<R> row{{}, std::vector<R>(head.value_dim, R(0)), minus_infinity};
  R top = minus_infinity, sum(0);
  for (Index j = 0; j < head.keys(i); ++j) {
    R s(0);
    for (Index x = 0; x < head.head_dim; ++x) s += R(head.q(i, x)) * R(head.k(j, x));
    s *= R(head.scale);
    const R cap(options.softcap), distance = R(i + head.diagonal - j);
    if (cap > R(0)) s = cap * R(tanh(R(s / cap)));
    s -= R(options.slope) * distance;
    if (options.window > 0 && distance >= R(options.window)) s = minus_infinity;
    row.p.push_back(s);
    if (s > top) top = s;
  }
  for (R& p : row.p) p = top == minus_infinity ? R(0) : R(exp(p - top)), sum += p;
  if (sum == R(0)) return row;
  row.lse = top + R(log(sum));
  for (Index j = 0; j < head.keys(i); ++j) {
    row.p[j] /= sum;
    for (Index e = 0; e < head.value_dim; ++e) row.o[e] += row.p[j] * R(head.v(j, e));
  }
  return row;
}

template <class T> class Expected {
 public:
  explicit Expected(const Options& options) : job_(options) {}
  void write() {
    const std::string& form = job_.options.form;
    if (form == "kv_head") return kv_head();
    if (form == "kind_of_tile") return kinds();
    if (form == "merge") return merge();
    if (form == "softmax" || form == "max_sum") return softmax(form);
    attention(form.starts_with("backward"));
  }

 private:
  // In 50 digits there is nothing wider
  static constexpr bool exact = !std::is_arithmetic_v<T>;
  using R = typename std::conditional_t<exact, std::type_identity<T>, WiderType<std::conditional_t<exact, float, T>>>::type;
  Job<T> job_;

  template <class X> void put(const std::string& name, Index rows, Index cols, const std::vector<X>& numbers) const {
    if constexpr (exact) {
      Matrix<T> matrix(rows, cols);
      matrix.numbers.assign(numbers.begin(), numbers.end());
      matrix.write(job_.options.out + "/" + name + ".txt");
    } else {
      Matrix<double> matrix(rows, cols);
      for (std::size_t n = 0; n < numbers.size(); ++n) matrix.numbers[n] = double(numbers[n]);
      matrix.write(job_.options.out + "/" + name + ".txt");
    }
  }
  void put_budget(const std::string& name, double budget) const {
    if constexpr (!exact) put("budget_" + name, 1, 1, std::vector<double>{budget});
  }
  void put_budgets(const std::vector<RawHead<T>>& heads, bool backward) const {
    if constexpr (!exact) {
      Judgement<T> judgement;
      const Index size = job_.options.heads / job_.options.kv_heads;
      for (Index g = 0; g < job_.options.kv_heads; ++g) {
        const std::vector<RawHead<T>> group(heads.begin() + g * size, heads.begin() + (g + 1) * size);
        judgement += Judgement<T>().add_group(group, std::vector<Results<T>>(group.size()), all_rows(group.front().seq_q));
      }
      for (const Result result : backward ? std::vector{Result::dq, Result::dk, Result::dv} : std::vector{Result::o, Result::lse})
        put_budget(result_text[int(result)], judgement.of(result).budget);
    }
  }

  std::vector<RawHead<T>> heads(bool backward) {
    std::vector<RawHead<T>> heads;
    for (Index h = 0; h < job_.options.heads; ++h) {
      const Index g = group_of(job_, h);
      Matrix<T>&q = job_.in("q"), &k = job_.in("k"), &v = job_.in("v");
      RawHead<T> head{{q.head(h, job_.options.heads), q.cols}, {k.head(g, job_.options.kv_heads), k.cols}, {v.head(g, job_.options.kv_heads), v.cols}, {}, {},
                      job_.seq_q(), job_.seq_k(), q.cols, v.cols, T(job_.options.scale), job_.diagonal()};
      if (backward) head.d_o = {job_.in("do").head(h, job_.options.heads), v.cols};
      if (backward && job_.has("dlse")) head.d_lse = {job_.in("dlse").head(h, job_.options.heads), 1};
      heads.push_back(head);
    }
    return heads;
  }

  void attention(bool backward) {
    const std::vector<RawHead<T>> heads = this->heads(backward);
    const Options& options = job_.options;
    const bool bent = options.window > 0 || options.softcap > 0 || options.slope != 0;
    if (backward && options.softcap > 0) throw std::invalid_argument("there are no gradients of capped scores here");
    const Index nq = job_.seq_q(), nk = job_.seq_k(), d = job_.in("q").cols, dv = job_.in("v").cols, size = job_.options.heads / job_.options.kv_heads;
    std::vector<R> o, lse, dq, dk, dv_;
    for (Index g = 0; g < job_.options.kv_heads; ++g) {
      GradientSums<R> sums(heads[g * size]);
      for (Index h = g * size; h < (g + 1) * size; ++h) {
        std::fill(sums.dq.begin(), sums.dq.end(), R(0));
        for (Index i = 0; i < nq; ++i) {
          const RowResult<R> row = bent ? bent_row<R>(heads[h], i, options) : define_row<R>(heads[h], i);
          o.insert(o.end(), row.o.begin(), row.o.end());
          lse.push_back(row.lse);
          if (backward) define_gradient_row(heads[h], i, row, sums);
        }
        dq.insert(dq.end(), sums.dq.begin(), sums.dq.end());
      }
      dk.insert(dk.end(), sums.dk.begin(), sums.dk.end());
      dv_.insert(dv_.end(), sums.dv.begin(), sums.dv.end());
    }
    if (backward) {  // what goes in is rounded to T
      const auto rounded = [](const std::vector<R>& x) { return std::vector<T>(x.begin(), x.end()); };
      put("o", job_.options.heads * nq, dv, rounded(o)), put("lse", job_.options.heads * nq, 1, rounded(lse));
      put("dq", job_.options.heads * nq, d, dq), put("dk", job_.options.kv_heads * nk, d, dk), put("dv", job_.options.kv_heads * nk, dv, dv_);
    } else {
      put("o", job_.options.heads * nq, dv, o), put("lse", job_.options.heads * nq, 1, lse);
    }
    put_budgets(heads, backward);
  }

  // A softmax is the attention of one query of length 1 to the keys x, with values that are the unit vectors
  void softmax(const std::string& form) {
    Matrix<T>& x = job_.in("x");
    const Index n = x.rows;
    const T one(1);
    std::vector<T> unit(form == "softmax" ? n * n : 0, T(0));
    for (Index i = 0; i < n && !unit.empty(); ++i) unit[i * n + i] = one;
    const RawHead<T> head{{&one, 1}, {x.numbers.data(), 1}, {unit.data(), n}, {}, {}, 1, n, 1, form == "softmax" ? n : 0, one, n};
    const RowResult<R> row = define_row<R>(head, 0);
    if (form == "softmax") {
      put("a", n, 1, row.o);
      if constexpr (!exact) put_budget("a", Judgement<T>().add(head, {}, {0}).of(Result::o).budget);
      return;
    }
    R m = -std::numeric_limits<R>::infinity(), l(0);
    for (const T& number : x.numbers) m = std::max(m, R(number));
    for (const T& number : x.numbers) l += exp_of(R(number), m);
    put_sum(m, l, x.numbers, std::vector<T>(n, one));
  }
  // (m, l) and (m', l') are sums over two sets of scores; so is their union
  void merge() {
    const Matrix<T>& x = job_.in("x");
    std::vector<T> m, l;
    for (Index i = 0; i < x.rows; ++i) m.push_back(x.numbers[2 * i]), l.push_back(x.numbers[2 * i + 1]);
    R top = -std::numeric_limits<R>::infinity(), sum(0);
    for (const T& number : m) top = std::max(top, R(number));
    for (Index i = 0; i < x.rows; ++i) sum += R(l[i]) * exp_of(R(m[i]), top);
    put_sum(top, sum, m, l);
  }
  static R exp_of(const R& x, const R& m) {
    using std::exp;
    return m == -std::numeric_limits<R>::infinity() ? R(0) : R(exp(x - m));
  }
  // l may be off by twice what the plain sum in T is, or by the rounding of its exponents
  void put_sum(const R& m, const R& l, const std::vector<T>& scores, const std::vector<T>& weights) const {
    put("m", 1, 1, std::vector<R>{m}), put("l", 1, 1, std::vector<R>{l});
    if constexpr (!exact) {
      T plain(0);
      double largest = 0;
      for (std::size_t i = 0; i < scores.size(); ++i) {
        if (m > -std::numeric_limits<R>::infinity()) plain += weights[i] * std::exp(scores[i] - T(m));
        if (std::abs(scores[i]) < std::numeric_limits<T>::infinity()) largest = std::max(largest, double(std::abs(scores[i])));
      }
      const double u = std::numeric_limits<T>::epsilon() / 2;
      put_budget("m", 0);
      put_budget("l", 2 * std::max(double(std::abs(R(plain) - l)), 2 * u * (1 + largest) * double(l)));
    }
  }

  // Of a tile no pair is seen, every pair, or some
  void kinds() {
    const Matrix<T>& x = job_.in("x");
    std::vector<T> kinds;
    for (Index n = 0; n < x.rows; ++n) {
      const auto at = [&](Index col) { return Index(x.numbers[n * x.cols + col]); };
      Index seen = 0, pairs = 0;
      for (Index i = at(0); i < at(1); ++i)
        for (Index j = at(2); j < at(3); ++j) ++pairs, seen += j <= i + at(4);
      kinds.push_back(T(seen == 0 ? 0 : seen == pairs ? 1 : 2));
    }
    put("kind", x.rows, 1, kinds);
    put_budget("kind", 0);
  }
  void kv_head() {
    std::vector<T> index;
    for (Index h = 0; h < job_.options.heads; ++h) index.push_back(T(group_of(job_, h)));
    put("index", job_.options.heads, 1, index);
    put_budget("index", 0);
  }
};

}  // namespace

int main(int count, char** words) {
  try {
    const Options options = read_options(count, words);
    if (options.type == "fifty") Expected<Fifty>(options).write();
    else if (options.type == "double") Expected<double>(options).write();
    else Expected<float>(options).write();
  } catch (const std::exception& fault) {
    std::cerr << "error: " << fault.what() << '\n';
    return 2;
  }
}
