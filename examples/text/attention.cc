#include "examples/text/attention.h"

#include <algorithm>
#include <cmath>

namespace text {
namespace {

/// Replaces the scores of row r by weights that add up to 1; those of later characters are 0.
template <typename T>
void CausalSoftmax(View<T> scores, T scale) {
  for (size_t r = 0; r < scores.rows; ++r) {
    const std::span<T> row = scores.row(r);
    const T most = *std::max_element(row.begin(), row.begin() + static_cast<ptrdiff_t>(r) + 1);
    T sum = 0;
    for (size_t i = 0; i <= r; ++i) {
      row[i] = std::exp((row[i] - most) * scale);
      sum += row[i];
    }
    for (size_t i = 0; i <= r; ++i) row[i] /= sum;
    for (size_t i = r + 1; i < row.size(); ++i) row[i] = 0;
  }
}

/// Replaces d loss / d weights by d loss / d scores.
template <typename T>
void CausalSoftmaxBackward(std::type_identity_t<ConstView<T>> weights, T scale, View<T> slopes) {
  for (size_t r = 0; r < slopes.rows; ++r) {
    const std::span<T> slope = slopes.row(r);
    const std::span<const T> weight = weights.row(r);
    T sum = 0;
    for (size_t i = 0; i <= r; ++i) sum += slope[i] * weight[i];
    for (size_t i = 0; i < slope.size(); ++i) slope[i] = scale * weight[i] * (slope[i] - sum);
  }
}

/// Queries, keys and values of one head of one window.
template <typename T>
struct Head {
  View<T> queries, keys, values;  // [length, width / heads]
};

template <typename T>
Head<T> HeadOf(View<T> projected, size_t length, size_t window, size_t head, size_t heads) {
  const size_t width = projected.columns / 3;
  const size_t size = width / heads;
  const auto part = [&](size_t number) {
    return projected.part(window * length, length, number * width + head * size, size);
  };
  return {part(0), part(1), part(2)};
}

template <typename T>
T ScaleOf(size_t head_size) {
  return T(1) / std::sqrt(static_cast<T>(head_size));
}

}  // namespace

template <typename T>
void Attention<T>::Forward(ConstView<T> projected, size_t length, View<T> mixed) {
  length_ = length;
  const size_t windows = projected.rows / length;
  const size_t size = mixed.columns / heads_;
  const View<T> all = weights_.Resize(windows * heads_ * length, length);
  for (size_t window = 0; window < windows; ++window) {
    for (size_t head = 0; head < heads_; ++head) {
      const Head<const T> in = HeadOf(projected, length, window, head, heads_);
      const View<T> weights = all.part((window * heads_ + head) * length, length, 0, length);
      MultiplyRightTransposed(in.queries, in.keys, weights);
      CausalSoftmax(weights, ScaleOf<T>(size));
      Multiply(weights, in.values, mixed.part(window * length, length, head * size, size));
    }
  }
}

template <typename T>
void Attention<T>::Backward(ConstView<T> projected, ConstView<T> d_mixed, View<T> d_projected) {
  const size_t length = length_;
  const size_t windows = projected.rows / length;
  const size_t size = d_mixed.columns / heads_;
  const View<T> all = weights_.view();
  const View<T> slopes = slopes_.Resize(length, length);
  for (size_t window = 0; window < windows; ++window) {
    for (size_t head = 0; head < heads_; ++head) {
      const Head<const T> in = HeadOf(projected, length, window, head, heads_);
      const Head<T> out = HeadOf(d_projected, length, window, head, heads_);
      const View<T> weights = all.part((window * heads_ + head) * length, length, 0, length);
      const ConstView<T> slope = d_mixed.part(window * length, length, head * size, size);
      MultiplyLeftTransposed(weights, slope, out.values);
      MultiplyRightTransposed(slope, in.values, slopes);
      CausalSoftmaxBackward(weights, ScaleOf<T>(size), slopes);
      Multiply(slopes, in.keys, out.queries);
      MultiplyLeftTransposed(slopes, in.queries, out.keys);
    }
  }
}

template class Attention<float>;
template class Attention<double>;

}  // namespace text
