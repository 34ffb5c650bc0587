#include "examples/text/layers.h"

#include <algorithm>
#include <cmath>

namespace text {

template <typename T>
void Add(std::type_identity_t<ConstView<T>> values, View<T> to) {
  for (size_t r = 0; r < to.rows; ++r) {
    const std::span<const T> from = values.row(r);
    const std::span<T> into = to.row(r);
    for (size_t i = 0; i < into.size(); ++i) into[i] += from[i];
  }
}

template <typename T>
void AddRows(std::type_identity_t<ConstView<T>> values, std::span<T> to) {
  for (size_t r = 0; r < values.rows; ++r) {
    const std::span<const T> row = values.row(r);
    for (size_t i = 0; i < to.size(); ++i) to[i] += row[i];
  }
}

template <typename T>
void Linear(std::type_identity_t<ConstView<T>> x, const LinearParameters<const T>& parameters,
            View<T> y) {
  for (size_t r = 0; r < y.rows; ++r) std::ranges::copy(parameters.bias, y.row(r).begin());
  Multiply(x, Whole(parameters.weight, y.columns), y, Into::kAdd);
}

template <typename T>
void LinearBackward(std::type_identity_t<ConstView<T>> x,
                    const LinearParameters<const T>& parameters,
                    std::type_identity_t<ConstView<T>> dy, const LinearParameters<T>& gradients,
                    View<T> dx) {
  MultiplyLeftTransposed(x, dy, Whole(gradients.weight, dy.columns));
  std::ranges::fill(gradients.bias, T(0));
  AddRows(dy, gradients.bias);
  MultiplyRightTransposed(dy, Whole(parameters.weight, dy.columns), dx);
}

template <typename T>
void Norm<T>::Forward(ConstView<T> x, const NormParameters<const T>& parameters, View<T> y) {
  constexpr T kSmall = T(1e-5);  // keeps rows of equal elements from a division by 0
  const auto width = static_cast<T>(x.columns);
  const View<T> normal = normal_.Resize(x.rows, x.columns);
  inverse_.resize(x.rows);
  for (size_t r = 0; r < x.rows; ++r) {
    const std::span<const T> in = x.row(r);
    T sum = 0;
    for (const T value : in) sum += value;
    const T mean = sum / width;
    T squares = 0;
    for (const T value : in) squares += (value - mean) * (value - mean);
    inverse_[r] = T(1) / std::sqrt(squares / width + kSmall);
    const std::span<T> to = normal.row(r), out = y.row(r);
    for (size_t i = 0; i < in.size(); ++i) {
      to[i] = (in[i] - mean) * inverse_[r];
      out[i] = to[i] * parameters.gain[i] + parameters.bias[i];
    }
  }
}

template <typename T>
void Norm<T>::Backward(ConstView<T> dy, const NormParameters<const T>& parameters,
                       const NormParameters<T>& gradients, View<T> dx) {
  const auto width = static_cast<T>(dy.columns);
  std::ranges::fill(gradients.gain, T(0));
  std::ranges::fill(gradients.bias, T(0));
  AddRows(dy, gradients.bias);
  const View<T> normals = normal_.view();
  for (size_t r = 0; r < dy.rows; ++r) {
    const std::span<const T> in = dy.row(r);
    const std::span<T> normal = normals.row(r), out = dx.row(r);
    T sum = 0, along = 0;  // of d loss / d normal, and of its product with the normal
    for (size_t i = 0; i < in.size(); ++i) {
      gradients.gain[i] += in[i] * normal[i];
      const T slope = in[i] * parameters.gain[i];
      sum += slope;
      along += slope * normal[i];
    }
    for (size_t i = 0; i < in.size(); ++i) {
      const T slope = in[i] * parameters.gain[i];
      out[i] += inverse_[r] * (slope - sum / width - normal[i] * (along / width));
    }
  }
}

#define TEXT_INSTANTIATE(T)                                                                     \
  template void Add<T>(ConstView<T>, View<T>);                                                  \
  template void AddRows<T>(ConstView<T>, std::span<T>);                                         \
  template void Linear<T>(ConstView<T>, const LinearParameters<const T>&, View<T>);             \
  template void LinearBackward<T>(ConstView<T>, const LinearParameters<const T>&, ConstView<T>, \
                                  const LinearParameters<T>&, View<T>);                         \
  template class Norm<T>
TEXT_INSTANTIATE(float);
TEXT_INSTANTIATE(double);
#undef TEXT_INSTANTIATE

}  // namespace text
