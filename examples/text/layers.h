#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "examples/text/products.h"

namespace text {

// Rows of a View are characters, in all windows of a minibatch. Sums go from the first to the last
// element, so that equal values give equal bits in every process. T is float or double.

/// to += values
template <typename T>
void Add(std::type_identity_t<ConstView<T>> values, View<T> to);

/// to += sum of the rows
template <typename T>
void AddRows(std::type_identity_t<ConstView<T>> values, std::span<T> to);

/// The weights of a linear layer, or the gradients of them.
template <typename T>
struct LinearParameters {
  std::span<T> weight;  // [inputs, outputs] row-major
  std::span<T> bias;    // [outputs]
};

/// y = x weight + bias
template <typename T>
void Linear(std::type_identity_t<ConstView<T>> x, const LinearParameters<const T>& parameters,
            View<T> y);
/// Replaces `gradients` and `dx`, given dy = d loss / d y.
template <typename T>
void LinearBackward(std::type_identity_t<ConstView<T>> x,
                    const LinearParameters<const T>& parameters,
                    std::type_identity_t<ConstView<T>> dy, const LinearParameters<T>& gradients,
                    View<T> dx);

/// The weights of a normalisation, or the gradients of them.
template <typename T>
struct NormParameters {
  std::span<T> gain;  // [width]
  std::span<T> bias;  // [width]
};

/// Layer normalisation: every row gets mean 0 and variance 1, then gain and bias. Not thread-safe:
/// keeps what Backward needs of the last Forward.
/// Source: Ba, Kiros, Hinton, "Layer Normalization", 2016.
template <typename T>
class Norm {
 public:
  void Forward(ConstView<T> x, const NormParameters<const T>& parameters, View<T> y);
  /// Replaces `gradients`, and adds d loss / d x to `dx`.
  void Backward(ConstView<T> dy, const NormParameters<const T>& parameters,
                const NormParameters<T>& gradients, View<T> dx);

 private:
  Matrix<T> normal_;        // rows with mean 0 and variance 1
  std::vector<T> inverse_;  // of the standard deviation of each row
};

/// Cuts an array into consecutive tensors.
template <typename T>
class Cutter {
 public:
  explicit Cutter(std::span<T> all) : left_(all) {}
  /// The next `size` elements; there must be so many.
  std::span<T> Next(size_t size) {
    const std::span<T> next = left_.first(size);
    left_ = left_.subspan(size);
    return next;
  }
  LinearParameters<T> NextLinear(size_t inputs, size_t outputs) {
    const std::span<T> weight = Next(inputs * outputs);
    return {weight, Next(outputs)};
  }
  NormParameters<T> NextNorm(size_t width) {
    const std::span<T> gain = Next(width);
    return {gain, Next(width)};
  }

 private:
  std::span<T> left_;
};

}  // namespace text
