#include "examples/text/transformer.h"

#include <algorithm>
#include <cmath>

#include "examples/text/random.h"

namespace text {
namespace {

/// Pieces of the first layer's array.
template <typename T>
struct EmbeddingParameters {
  View<T> characters;  // [characters, width]
  View<T> places;      // [context, width]: for the first, second, ... character of a window

  EmbeddingParameters(std::span<T> all, const Shape& shape) {
    Cutter<T> cutter(all);
    characters = Whole(cutter.Next(shape.characters * shape.width), shape.width);
    places = Whole(cutter.Next(shape.context * shape.width), shape.width);
  }
};

/// Pieces of the last layer's array.
template <typename T>
struct OutputParameters {
  NormParameters<T> norm;
  LinearParameters<T> output;  // [width, characters]

  OutputParameters(std::span<T> all, const Shape& shape) {
    Cutter<T> cutter(all);
    norm = cutter.NextNorm(shape.width);
    output = cutter.NextLinear(shape.width, shape.characters);
  }
};

template <typename T>
void Softmax(View<T> scores) {
  for (size_t r = 0; r < scores.rows; ++r) {
    const std::span<T> row = scores.row(r);
    const T most = *std::ranges::max_element(row);
    T sum = 0;
    for (T& value : row) {
      value = std::exp(value - most);
      sum += value;
    }
    for (T& value : row) value /= sum;
  }
}

/// Evenly distributed numbers from -bound to below bound.
void Fill(Random& random, std::span<float> values, float bound) {
  for (float& value : values) value = bound * (2 * random.Uniform() - 1);
}

void FillLinear(Random& random, const LinearParameters<float>& parameters, float scale) {
  const size_t inputs = parameters.weight.size() / parameters.bias.size();
  Fill(random, parameters.weight, scale / std::sqrt(static_cast<float>(inputs)));
}

void FillNorm(const NormParameters<float>& parameters) {
  std::ranges::fill(parameters.gain, 1.0F);
}

}  // namespace

std::optional<std::string> ShapeError(const Shape& shape) {
  const auto outside = [](const char* name, size_t value, size_t low, size_t high) {
    std::optional<std::string> error;
    if (value < low || value > high) {
      error = std::string(name) + " is " + std::to_string(value) + ", not " + std::to_string(low) +
              " to " + std::to_string(high);
    }
    return error;
  };
  if (auto error = outside("characters", shape.characters, 2, 256)) return error;
  if (auto error = outside("context", shape.context, 1, 4096)) return error;
  if (auto error = outside("width", shape.width, 1, 4096)) return error;
  if (auto error = outside("heads", shape.heads, 1, shape.width)) return error;
  if (auto error = outside("blocks", shape.blocks, 1, 64)) return error;
  if (shape.width % shape.heads == 0) return std::nullopt;
  return "width is " + std::to_string(shape.width) + ", not a multiple of the " +
         std::to_string(shape.heads) + " heads";
}

size_t LayerCount(const Shape& shape) {
  return shape.blocks + 2;
}

size_t LayerSize(const Shape& shape, size_t layer) {
  if (layer == 0) return (shape.characters + shape.context) * shape.width;
  if (layer <= shape.blocks) return BlockSize(shape.width);
  return 2 * shape.width + (shape.width + 1) * shape.characters;
}

size_t WeightCount(const Shape& shape) {
  size_t count = 0;
  for (size_t layer = 0; layer < LayerCount(shape); ++layer) count += LayerSize(shape, layer);
  return count;
}

std::vector<float> InitialLayer(const Shape& shape, size_t layer, uint64_t seed) {
  std::vector<float> values(LayerSize(shape, layer));
  Random random(seed * 0x100000001b3 + layer);
  if (layer == 0) {
    Fill(random, values, 0.1F);
  } else if (layer <= shape.blocks) {
    const BlockParameters<float> block(values, shape.width);
    // What blocks add to x grows with their number.
    const float share = 1 / std::sqrt(2 * static_cast<float>(shape.blocks));
    FillNorm(block.attention_norm);
    FillLinear(random, block.projection, 1);
    FillLinear(random, block.mixture, share);
    FillNorm(block.network_norm);
    FillLinear(random, block.expansion, 1);
    FillLinear(random, block.contraction, share);
  } else {
    const OutputParameters<float> output(values, shape);
    FillNorm(output.norm);
    FillLinear(random, output.output, 1);
  }
  return values;
}

template <typename T>
Transformer<T>::Transformer(const Shape& shape)
    : shape_(shape), blocks_(shape.blocks, Block<T>(shape.heads)) {}

template <typename T>
void Transformer<T>::Compute(const Layers<T>& weights, std::span<const uint8_t> characters,
                             size_t windows, size_t length, size_t stride) {
  const EmbeddingParameters<const T> embedding(weights.front(), shape_);
  const View<T> x = x_.Resize(windows * length, shape_.width);
  for (size_t r = 0; r < x.rows; ++r) {
    const size_t place = r % length;
    const uint8_t character = characters[r / length * stride + place];
    const std::span<const T> a = embedding.characters.row(character);
    const std::span<const T> b = embedding.places.row(place);
    const std::span<T> to = x.row(r);
    for (size_t i = 0; i < to.size(); ++i) to[i] = a[i] + b[i];
  }
  for (size_t i = 0; i < blocks_.size(); ++i) {
    blocks_[i].Forward(BlockParameters<const T>(weights[i + 1], shape_.width), length, x);
  }
  const OutputParameters<const T> last(weights.back(), shape_);
  const View<T> normal = normal_.Resize(x.rows, x.columns);
  norm_.Forward(x, last.norm, normal);
  const View<T> probabilities = probabilities_.Resize(x.rows, shape_.characters);
  Linear(normal, last.output, probabilities);
  Softmax(probabilities);
}

template <typename T>
double Transformer<T>::Forward(const Layers<T>& weights, std::span<const uint8_t> windows) {
  constexpr double kSmallest = 1e-30;  // a probability that underflowed still has a logarithm
  const size_t length = shape_.context;
  Compute(weights, windows, windows.size() / (length + 1), length, length + 1);
  const View<T> probabilities = probabilities_.view();
  double loss = 0;
  for (size_t r = 0; r < probabilities.rows; ++r) {
    const uint8_t next = windows[r / length * (length + 1) + r % length + 1];
    loss -= std::log(std::max(static_cast<double>(probabilities.row(r)[next]), kSmallest));
  }
  return loss / static_cast<double>(length);
}

template <typename T>
void Transformer<T>::Backward(const Layers<T>& weights, std::span<const uint8_t> windows,
                              const TakeGradient& take) {
  const size_t length = shape_.context;
  const View<T> slopes = probabilities_.view();  // d loss / d scores takes its place
  for (size_t r = 0; r < slopes.rows; ++r) {
    const uint8_t next = windows[r / length * (length + 1) + r % length + 1];
    slopes.row(r)[next] -= T(1);
    for (T& slope : slopes.row(r)) slope /= static_cast<T>(length);
  }
  const auto gradient = [&](size_t layer) {
    gradient_.resize(LayerSize(shape_, layer));
    return std::span<T>(gradient_);
  };
  const size_t last_layer = LayerCount(shape_) - 1;
  const OutputParameters<const T> last(weights.back(), shape_);
  const OutputParameters<T> d_last(gradient(last_layer), shape_);
  const View<T> d_normal = d_normal_.Resize(slopes.rows, shape_.width);
  const View<T> dx = dx_.Resize(slopes.rows, shape_.width);
  LinearBackward(normal_.view(), last.output, slopes, d_last.output, d_normal);
  std::ranges::fill(dx_.values(), T(0));
  norm_.Backward(d_normal, last.norm, d_last.norm, dx);
  take(last_layer, gradient_);

  for (size_t layer = shape_.blocks; layer > 0; --layer) {
    const BlockParameters<const T> block(weights[layer], shape_.width);
    const BlockParameters<T> d_block(gradient(layer), shape_.width);
    blocks_[layer - 1].Backward(block, d_block, dx);
    take(layer, gradient_);
  }
  EmbeddingGradient(windows, dx, gradient(0));
  take(0, gradient_);
}

template <typename T>
void Transformer<T>::EmbeddingGradient(std::span<const uint8_t> windows, ConstView<T> dx,
                                       std::span<T> gradient) {
  const size_t length = shape_.context;
  std::ranges::fill(gradient, T(0));
  const EmbeddingParameters<T> embedding(gradient, shape_);
  for (size_t r = 0; r < dx.rows; ++r) {
    const size_t place = r % length;
    const uint8_t character = windows[r / length * (length + 1) + place];
    const ConstView<T> row = dx.part(r, 1, 0, dx.columns);
    AddRows(row, embedding.characters.row(character));
    AddRows(row, embedding.places.row(place));
  }
}

template <typename T>
std::span<const T> Transformer<T>::Next(const Layers<T>& weights, std::span<const uint8_t> text) {
  Compute(weights, text, 1, text.size(), text.size());
  return probabilities_.view().row(text.size() - 1);
}

template class Transformer<float>;
template class Transformer<double>;

}  // namespace text
