// The larger verbs in float and double, compiled once for all steps.
#include "common/attention/verbs_columns.hpp"

namespace flashsteps {

template Tile<float> multiply(const Tile<float>&, const View<float>&);
template void add_product(Tile<float>&, const Tile<float>&, const View<float>&);
template void rescale_add_product(Tile<float>&, const Tile<float>&, const Tile<float>&, const View<float>&);
template void divide(Tile<float>&, const Tile<float>&);
template Tile<float> row_max(const Tile<float>&);
template Tile<float> row_sum(const Tile<float>&);
template void rescale_add_row_sum(Tile<float>&, const Tile<float>&, const Tile<float>&);
template Tile<float> exp_shifted(Tile<float>, const Tile<float>&);
template Tile<float> log_sum_exp(Tile<float>, const Tile<float>&);
template void mask_causal(Tile<float>&, Range, Range, Index);
template void add_scaled(Tile<float>&, const Tile<float>&, const View<float>&);
template Tile<double> multiply(const Tile<double>&, const View<double>&);
template void add_product(Tile<double>&, const Tile<double>&, const View<double>&);
template void rescale_add_product(Tile<double>&, const Tile<double>&, const Tile<double>&, const View<double>&);
template void divide(Tile<double>&, const Tile<double>&);
template Tile<double> row_max(const Tile<double>&);
template Tile<double> row_sum(const Tile<double>&);
template void rescale_add_row_sum(Tile<double>&, const Tile<double>&, const Tile<double>&);
template Tile<double> exp_shifted(Tile<double>, const Tile<double>&);
template Tile<double> log_sum_exp(Tile<double>, const Tile<double>&);
template void mask_causal(Tile<double>&, Range, Range, Index);
template void add_scaled(Tile<double>&, const Tile<double>&, const View<double>&);
template Tile<float> exp_shifted_columns(Tile<float>, const Tile<float>&);
template Tile<float> probabilities_columns(Tile<float>, const View<float>&);
template Tile<float> softmax_gradient_columns(const Tile<float>&, Tile<float>, const View<float>&);
template Tile<float> transposed(const Tile<float>&);
template Tile<double> exp_shifted_columns(Tile<double>, const Tile<double>&);
template Tile<double> probabilities_columns(Tile<double>, const View<double>&);
template Tile<double> softmax_gradient_columns(const Tile<double>&, Tile<double>, const View<double>&);
template Tile<double> transposed(const Tile<double>&);

}  // namespace flashsteps
