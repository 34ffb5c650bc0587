#include "examples/text/block.h"

#include <algorithm>

namespace text {

template <typename T>
BlockParameters<T>::BlockParameters(std::span<T> all, size_t width) {
  Cutter<T> cutter(all);
  attention_norm = cutter.NextNorm(width);
  projection = cutter.NextLinear(width, 3 * width);
  mixture = cutter.NextLinear(width, width);
  network_norm = cutter.NextNorm(width);
  expansion = cutter.NextLinear(width, 4 * width);
  contraction = cutter.NextLinear(4 * width, width);
}

size_t BlockSize(size_t width) {
  const size_t norms = 2 * (2 * width);
  const size_t weights = (3 + 1 + 4 + 4) * width * width;
  const size_t biases = (3 + 1 + 4 + 1) * width;
  return norms + weights + biases;
}

template <typename T>
void Block<T>::Forward(const BlockParameters<const T>& parameters, size_t length, View<T> x) {
  const size_t rows = x.rows, width = x.columns;
  const View<T> attention_input = attention_input_.Resize(rows, width);
  const View<T> projected = projected_.Resize(rows, 3 * width);
  const View<T> mixed = mixed_.Resize(rows, width);
  const View<T> delta = delta_.Resize(rows, width);
  attention_norm_.Forward(x, parameters.attention_norm, attention_input);
  Linear(attention_input, parameters.projection, projected);
  attention_.Forward(projected, length, mixed);
  Linear(mixed, parameters.mixture, delta);
  Add(delta, x);

  const View<T> network_input = network_input_.Resize(rows, width);
  const View<T> hidden = hidden_.Resize(rows, 4 * width);
  network_norm_.Forward(x, parameters.network_norm, network_input);
  Linear(network_input, parameters.expansion, hidden);
  for (T& value : hidden_.values()) value = std::max(value, T(0));
  Linear(hidden, parameters.contraction, delta);
  Add(delta, x);
}

template <typename T>
void Block<T>::Backward(const BlockParameters<const T>& parameters,
                        const BlockParameters<T>& gradients, View<T> dx) {
  const size_t rows = dx.rows, width = dx.columns;
  const View<T> delta = delta_.Resize(rows, width);
  const View<T> d_hidden = wide_delta_.Resize(rows, 4 * width);
  LinearBackward(hidden_.view(), parameters.contraction, dx, gradients.contraction, d_hidden);
  const std::span<T> hidden = hidden_.values(), slopes = wide_delta_.values();
  for (size_t i = 0; i < slopes.size(); ++i) slopes[i] = hidden[i] > T(0) ? slopes[i] : T(0);
  LinearBackward(network_input_.view(), parameters.expansion, d_hidden, gradients.expansion, delta);
  network_norm_.Backward(delta, parameters.network_norm, gradients.network_norm, dx);

  LinearBackward(mixed_.view(), parameters.mixture, dx, gradients.mixture, delta);
  const View<T> d_projected = wide_delta_.Resize(rows, 3 * width);
  attention_.Backward(projected_.view(), delta, d_projected);
  LinearBackward(attention_input_.view(), parameters.projection, d_projected, gradients.projection,
                 delta);
  attention_norm_.Backward(delta, parameters.attention_norm, gradients.attention_norm, dx);
}

template struct BlockParameters<float>;
template struct BlockParameters<double>;
template struct BlockParameters<const float>;
template struct BlockParameters<const double>;
template class Block<float>;
template class Block<double>;

}  // namespace text
