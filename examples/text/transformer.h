#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "examples/text/block.h"
#include "examples/text/layers.h"

namespace text {

/// Sizes of the network.
struct Shape {
  size_t characters = 96;  // of the alphabet
  size_t context = 64;     // characters that it sees at most
  size_t width = 96;       // of the vector of a character; a multiple of `heads`
  size_t heads = 4;
  size_t blocks = 2;

  bool operator==(const Shape&) const = default;
};
/// Why there is no such network; nullopt if there is one.
std::optional<std::string> ShapeError(const Shape& shape);

/// The weights are an array per layer: the embeddings, then the blocks, then the output. Gradients
/// are shaped alike.
size_t LayerCount(const Shape& shape);
size_t LayerSize(const Shape& shape, size_t layer);
/// All weights of all layers.
size_t WeightCount(const Shape& shape);
/// The initial weights of a layer. They depend on nothing but the arguments.
std::vector<float> InitialLayer(const Shape& shape, size_t layer, uint64_t seed);

/// The weights of the layers, in their order; they belong to the caller.
template <typename T>
using Layers = std::vector<std::span<const T>>;

/// A small transformer that guesses the next character of a text from the characters before. It
/// holds only scratch memory: the weights are the caller's. Equal weights and characters give equal
/// bits, in every process that runs on the same kind of processor. Not thread-safe. T is float, or
/// double for gradient checks.
/// Source: Radford et al., "Language Models are Unsupervised Multitask Learners", 2019 (the order
/// of normalisation and sums in a block).
template <typename T>
class Transformer {
 public:
  /// `shape` must have no ShapeError.
  explicit Transformer(const Shape& shape);
  const Shape& shape() const { return shape_; }

  /// `windows: [windows, context + 1]` numbers of characters, row-major, each below
  /// shape().characters. Every character of a window but the first is guessed. Returns the sum over
  /// the windows of the mean loss of their characters, in nats: -log(probability). At least one
  /// window.
  double Forward(const Layers<T>& weights, std::span<const uint8_t> windows);
  /// The gradients of what the last Forward returned, for the same arguments. They come from the
  /// last layer to the first, as soon as they are there; `gradient` is valid during the call.
  using TakeGradient = std::function<void(size_t layer, std::span<const T> gradient)>;
  void Backward(const Layers<T>& weights, std::span<const uint8_t> windows,
                const TakeGradient& take);

  /// Probabilities `[characters]` of the character after `text`, which has 1 to `context`
  /// characters. Valid until the next call.
  std::span<const T> Next(const Layers<T>& weights, std::span<const uint8_t> text);

 private:
  /// Fills probabilities_ `[windows * length, characters]`; window w begins at
  /// characters[w * stride].
  void Compute(const Layers<T>& weights, std::span<const uint8_t> characters, size_t windows,
               size_t length, size_t stride);
  /// Of the embeddings, given d loss / d x.
  void EmbeddingGradient(std::span<const uint8_t> windows, ConstView<T> dx, std::span<T> gradient);

  Shape shape_;
  std::vector<Block<T>> blocks_;
  Norm<T> norm_;
  Matrix<T> x_, normal_, probabilities_;
  Matrix<T> dx_, d_normal_;
  std::vector<T> gradient_;
};

}  // namespace text
