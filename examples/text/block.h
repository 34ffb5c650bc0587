#pragma once

#include <cstddef>
#include <span>

#include "examples/text/attention.h"
#include "examples/text/layers.h"

namespace text {

/// The weights of a block, or the gradients of them: pieces of one array, in this order.
template <typename T>
struct BlockParameters {
  NormParameters<T> attention_norm;
  LinearParameters<T> projection;  // [width, 3 * width]
  LinearParameters<T> mixture;     // [width, width]
  NormParameters<T> network_norm;
  LinearParameters<T> expansion;    // [width, 4 * width]
  LinearParameters<T> contraction;  // [4 * width, width]

  /// `all` has BlockSize(width) elements.
  BlockParameters(std::span<T> all, size_t width);
};
size_t BlockSize(size_t width);

/// A block of the transformer: x += attention(norm(x)), then x += network(norm(x)). The network has
/// one hidden layer with a rectifier. Not thread-safe: keeps what Backward needs of the last
/// Forward. T is float or double.
template <typename T>
class Block {
 public:
  explicit Block(size_t heads) : attention_(heads) {}

  /// Replaces `x: [windows * length, width]` by the output.
  void Forward(const BlockParameters<const T>& parameters, size_t length, View<T> x);
  /// Replaces `gradients`, and d loss / d output in `dx` by d loss / d input.
  void Backward(const BlockParameters<const T>& parameters, const BlockParameters<T>& gradients,
                View<T> dx);

 private:
  Norm<T> attention_norm_, network_norm_;
  Attention<T> attention_;
  // Of the last Forward, in its order; rows are characters.
  Matrix<T> attention_input_, projected_, mixed_, network_input_, hidden_;
  // What is added to x, or d loss / d one of those above.
  Matrix<T> delta_, wide_delta_;
};

}  // namespace text
