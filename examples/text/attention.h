#pragma once

#include <cstddef>

#include "examples/text/products.h"

namespace text {

/// Causal self-attention of several heads: the mixture for a character is a mean of the values of
/// this and the earlier characters of its window, weighted by how well their keys fit its query.
/// Not thread-safe: keeps what Backward needs of the last Forward. T is float or double.
/// Source: Vaswani et al., "Attention Is All You Need", NeurIPS 2017.
template <typename T>
class Attention {
 public:
  explicit Attention(size_t heads) : heads_(heads) {}

  /// `projected: [windows * length, 3 * width]`: queries, keys and values side by side; the heads
  /// are side by side in each of them. `mixed: [windows * length, width]`.
  void Forward(ConstView<T> projected, size_t length, View<T> mixed);
  /// Replaces `d_projected`, given the `projected` of the last Forward and d loss / d mixed.
  void Backward(ConstView<T> projected, ConstView<T> d_mixed, View<T> d_projected);

 private:
  size_t heads_;
  size_t length_ = 0;
  Matrix<T> weights_;  // [windows * heads * length, length]: 0 for later characters
  Matrix<T> slopes_;   // [length, length], of one head: d loss / d (weights or scores)
};

}  // namespace text
