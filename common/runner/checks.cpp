#include "common/runner/checks.hpp"

#include <random>

namespace flashsteps {

RowSample sample_rows(Index rows, Index heads, double multiply_adds_a_row, double most, std::uint64_t seed) {
  RowSample sample;
  const double wanted = most / std::max(1.0, multiply_adds_a_row * double(heads));
  if (double(rows) <= wanted) {
    for (Index i = 0; i < rows; ++i) sample.rows.push_back(i);
    return sample;
  }
  sample.all = false;
  // One row from each of so many equal parts: the first and the last part are always there
  std::mt19937_64 random(seed);
  const Index parts = std::max<Index>(1, Index(wanted));
  for (Index part = 0; part < parts; ++part) {
    const Index begin = Index(double(rows) * double(part) / double(parts)), end = std::max(begin + 1, Index(double(rows) * double(part + 1) / double(parts)));
    sample.rows.push_back(std::uniform_int_distribution<Index>(begin, std::min(end, rows) - 1)(random));
  }
  return sample;
}

template <class T> Judgement<T> judge(const Problem<T>& p, const Output<T>& out, bool gradients, const RowSample& sample, const Rounding<T>& rounding) {
  Judgement<T> total(rounding);
  Progress progress("definition", p.batch() * p.kv_heads());
  const auto judge_group = [&](Index group, Judgement<T>& mine) {
    const Index b = group / p.kv_heads(), kv = group % p.kv_heads();
    if (gradients) {
      std::vector<RawHead<T>> heads;
      std::vector<Results<T>> results;
      for (Index h = 0; h < p.heads(); ++h) {
        if (defined_kv_head(h, p.heads(), p.kv_heads()) != kv) continue;
        heads.push_back(raw_head(p, b, h, kv, true));
        results.push_back({out.o.raw(b, h), out.lse.raw(b, h), out.dq.raw(b, h), out.dk.raw(b, kv), out.dv.raw(b, kv)});
      }
      mine.add_group(heads, results, sample.rows);
    } else {
      for (Index h = 0; h < p.heads(); ++h)
        if (defined_kv_head(h, p.heads(), p.kv_heads()) == kv)
          mine.add(raw_head(p, b, h, kv, false), {out.o.raw(b, h), out.lse.raw(b, h), {}, {}, {}}, sample.rows);
    }
    progress.advance();
  };
  in_parallel(p.batch() * p.kv_heads(), [&] { return Judgement<T>(rounding); }, judge_group, [&](const Judgement<T>& mine) { total += mine; });
  return total;
}

template <class T> Problem<T> with_rows_of_d_o(const Problem<T>& p, const std::vector<Index>& rows) {
  Problem<T> masked = p;
  std::vector<bool> kept(p.seq_q());
  for (const Index i : rows) kept[i] = true;
  for (Index b = 0; b < p.batch(); ++b)
    for (Index h = 0; h < p.heads(); ++h)
      for (Index i = 0; i < p.seq_q(); ++i)
        for (Index e = 0; !kept[i] && e < p.value_dim(); ++e) masked.d_o.at(b, h, i, e) = T(0);
  return masked;
}

template <class T> double largest_distance(const Tensor<T>& a, const Tensor<T>& b, Spoiled spoiled) {
  if (a.layout != b.layout || a.shape() != b.shape()) return std::numeric_limits<double>::quiet_NaN();
  double worst = 0;
  for (std::size_t i = 0; i < a.numbers.size(); ++i) worst = worse(double(distance(Wider<T>(a.numbers[i]), Wider<T>(b.numbers[i]), spoiled)), worst);
  return worst;
}

template <class T>
void one_row_at_a_time(const Form& forward, const Form* backward, const Problem<T>& p, TileShape tiles, const RowSample& sample, Output<T>& out) {
  const auto zero = [](Tensor<T>& x) { std::fill(x.numbers.begin(), x.numbers.end(), T(0)); };
  if (backward) zero(out.dk), zero(out.dv);
  Progress progress("row by row", p.batch() * p.heads() * Index(sample.rows.size()));
  const auto run_group = [&](Index group, Memory& memory) {
    const Index b = group / p.kv_heads(), kv = group % p.kv_heads();
    std::vector<T> dk_row(p.seq_k() * p.head_dim()), dv_row(p.seq_k() * p.value_dim());
    std::vector<Wider<T>> dk(dk_row.size()), dv(dv_row.size());  // sums over the rows
    for (Index h = 0; h < p.heads(); ++h) {
      if (defined_kv_head(h, p.heads(), p.kv_heads()) != kv) continue;
      const Head<T> head = head_of(p, out, b, h, kv, tiles);
      const RawHead<T> raw = raw_head(p, b, h, kv, false);
      for (const Index i : sample.rows) {
        const Range seen{0, raw.keys(i)};
        Head<T> row = head.rows({i, i + 1});
        row.k = head.k[seen], row.v = head.v[seen], row.diagonal = seen.size();
        forward.algorithm<T>().forward(row, memory);
        progress.advance();
        if (!backward) continue;
        Gradients<T> gradients = gradients_of(p, out, b, h, kv);
        gradients.d_o = gradients.d_o[{i, i + 1}], gradients.dq = gradients.dq[{i, i + 1}];
        gradients.dk = {tensor::dk, dk_row.data(), seen.size(), p.head_dim()};
        gradients.dv = {tensor::dv, dv_row.data(), seen.size(), p.value_dim()};
        backward->algorithm<T>().backward(std::span<const Head<T>>(&row, 1), std::span<const Gradients<T>>(&gradients, 1), memory);
        for (Index x = 0; x < seen.size() * p.head_dim(); ++x) dk[x] += dk_row[x];
        for (Index x = 0; x < seen.size() * p.value_dim(); ++x) dv[x] += dv_row[x];
      }
    }
    if (!backward) return;
    for (Index j = 0; j < p.seq_k(); ++j) {
      for (Index x = 0; x < p.head_dim(); ++x) out.dk.at(b, kv, j, x) = T(dk[j * p.head_dim() + x]);
      for (Index e = 0; e < p.value_dim(); ++e) out.dv.at(b, kv, j, e) = T(dv[j * p.value_dim() + e]);
    }
  };
  in_parallel(p.batch() * p.kv_heads(), [] { return Memory(); }, run_group, [](const Memory&) {});
}

template <class T> Problem<T> repeat_heads(const Problem<T>& p) {
  Problem<T> repeated = p;
  const auto repeat = [&](const Tensor<T>& x) {
    Tensor<T> y(x.batch, p.heads(), x.rows, x.cols, x.layout, T(0));
    for (Index b = 0; b < x.batch; ++b)
      for (Index h = 0; h < p.heads(); ++h)
        for (Index i = 0; i < x.rows; ++i)
          for (Index c = 0; c < x.cols; ++c) y.at(b, h, i, c) = x.at(b, defined_kv_head(h, p.heads(), p.kv_heads()), i, c);
    return y;
  };
  repeated.k = repeat(p.k), repeated.v = repeat(p.v);
  return repeated;
}

template <class T> void sum_groups(const Output<T>& repeated, const Problem<T>& p, Output<T>& out) {
  const auto sum = [&](const Tensor<T>& parts, Tensor<T>& whole) {
    std::vector<Wider<T>> wide(whole.numbers.size());
    for (Index b = 0; b < whole.batch; ++b)
      for (Index h = 0; h < p.heads(); ++h)
        for (Index i = 0; i < whole.rows; ++i)
          for (Index c = 0; c < whole.cols; ++c)
            wide[whole.offset(b, defined_kv_head(h, p.heads(), p.kv_heads())) + i * whole.row_stride() + c] += parts.at(b, h, i, c);
    for (std::size_t x = 0; x < wide.size(); ++x) whole.numbers[x] = T(wide[x]);
  };
  sum(repeated.dk, out.dk);
  sum(repeated.dv, out.dv);
  out.dq = repeated.dq;
}

template Judgement<float> judge(const Problem<float>&, const Output<float>&, bool, const RowSample&, const Rounding<float>&);
template Problem<float> with_rows_of_d_o(const Problem<float>&, const std::vector<Index>&);
template double largest_distance(const Tensor<float>&, const Tensor<float>&, Spoiled);
template void one_row_at_a_time(const Form&, const Form*, const Problem<float>&, TileShape, const RowSample&, Output<float>&);
template Problem<float> repeat_heads(const Problem<float>&);
template void sum_groups(const Output<float>&, const Problem<float>&, Output<float>&);
template Judgement<double> judge(const Problem<double>&, const Output<double>&, bool, const RowSample&, const Rounding<double>&);
template Problem<double> with_rows_of_d_o(const Problem<double>&, const std::vector<Index>&);
template double largest_distance(const Tensor<double>&, const Tensor<double>&, Spoiled);
template void one_row_at_a_time(const Form&, const Form*, const Problem<double>&, TileShape, const RowSample&, Output<double>&);
template Problem<double> repeat_heads(const Problem<double>&);
template void sum_groups(const Output<double>&, const Problem<double>&, Output<double>&);

}  // namespace flashsteps
