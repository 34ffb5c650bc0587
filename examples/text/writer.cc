#include "examples/text/writer.h"

#include <algorithm>
#include <cmath>

#include "examples/text/random.h"

namespace text {
namespace {

/// A number below the number of probabilities, drawn by them. `at` is from 0 to below 1.
uint8_t Draw(std::span<const float> probabilities, float temperature, float at) {
  const float most = *std::ranges::max_element(probabilities);
  std::vector<float> shares;
  float sum = 0;
  for (const float probability : probabilities) {
    shares.push_back(std::pow(probability / most, 1 / temperature));
    sum += shares.back();
  }
  float left = at * sum;
  size_t number = 0;
  while (number + 1 < shares.size() && left >= shares[number]) left -= shares[number++];
  return static_cast<uint8_t>(number);
}

}  // namespace

std::vector<uint8_t> Continue(const Model& model, std::span<const uint8_t> begin,
                              const WriterOptions& options) {
  Transformer<float> transformer(model.shape);
  const Layers<float> weights(model.layers.begin(), model.layers.end());
  Random random(options.seed);
  std::vector<uint8_t> text(begin.begin(), begin.end());
  for (size_t i = 0; i < options.length; ++i) {
    const std::span<const uint8_t> all = text;
    const auto seen = all.last(std::min(all.size(), model.shape.context));
    text.push_back(Draw(transformer.Next(weights, seen), options.temperature, random.Uniform()));
  }
  text.erase(text.begin(), text.begin() + static_cast<ptrdiff_t>(begin.size()));
  return text;
}

}  // namespace text
