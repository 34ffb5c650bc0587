#include "examples/text/transformer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/random.h"

namespace text {
namespace {

constexpr Shape kSmall{.characters = 7, .context = 5, .width = 6, .heads = 2, .blocks = 2};

/// Random windows, and random weights that are far from the initial ones: gains that are not 1 and
/// biases that are not 0 find more mistakes.
template <typename T>
struct Problem {
  Shape shape;
  std::vector<std::vector<T>> weights;
  std::vector<uint8_t> windows;

  Problem(const Shape& with, size_t count, uint64_t seed) : shape(with) {
    muster::Rng rng(seed);
    for (size_t layer = 0; layer < LayerCount(shape); ++layer) {
      std::vector<T>& values = weights.emplace_back(LayerSize(shape, layer));
      for (T& value : values) value = static_cast<T>(1.6 * rng.Uniform() - 0.6);
    }
    for (size_t i = 0; i < count * (shape.context + 1); ++i) {
      windows.push_back(static_cast<uint8_t>(rng.Below(shape.characters)));
    }
  }
  Layers<T> Spans() const { return Layers<T>(weights.begin(), weights.end()); }
};

template <typename T>
std::vector<std::vector<T>> Gradients(const Shape& shape, const Layers<T>& weights,
                                      std::span<const uint8_t> windows) {
  Transformer<T> model(shape);
  std::vector<std::vector<T>> gradients(LayerCount(shape));
  model.Forward(weights, windows);
  model.Backward(weights, windows, [&](size_t layer, std::span<const T> gradient) {
    EXPECT_TRUE(gradients[layer].empty()) << "layer " << layer << " came twice";
    gradients[layer].assign(gradient.begin(), gradient.end());
  });
  return gradients;
}

TEST(TransformerTest, GradientsMatchCentralDifferences) {
  constexpr double kStep = 1e-6;
  Problem<double> problem(kSmall, 3, 11);
  const auto gradients = Gradients(kSmall, problem.Spans(), problem.windows);
  Transformer<double> model(kSmall);
  for (size_t layer = 0; layer < LayerCount(kSmall); ++layer) {
    std::vector<double>& weights = problem.weights[layer];
    ASSERT_EQ(gradients[layer].size(), weights.size());
    double largest = 0;
    for (size_t i = 0; i < weights.size(); ++i) {
      const double weight = weights[i];
      weights[i] = weight + kStep;
      const double above = model.Forward(problem.Spans(), problem.windows);
      weights[i] = weight - kStep;
      const double below = model.Forward(problem.Spans(), problem.windows);
      weights[i] = weight;
      EXPECT_NEAR((above - below) / (2 * kStep), gradients[layer][i], 2e-8)
          << "layer " << layer << " element " << i;
      largest = std::max(largest, std::abs(gradients[layer][i]));
    }
    EXPECT_GT(largest, 1e-3) << "layer " << layer << " has hardly any gradient to compare";
  }
}

TEST(TransformerTest, GradientsComeFromTheLastLayerToTheFirst) {
  const Problem<float> problem(kSmall, 1, 3);
  Transformer<float> model(kSmall);
  std::vector<size_t> order;
  model.Forward(problem.Spans(), problem.windows);
  model.Backward(problem.Spans(), problem.windows,
                 [&](size_t layer, std::span<const float>) { order.push_back(layer); });
  EXPECT_THAT(order, testing::ElementsAre(3, 2, 1, 0));
}

TEST(TransformerTest, EachCharacterIsGuessedFromThoseBeforeItAlone) {
  const Problem<double> problem(kSmall, 1, 4);
  Transformer<double> model(kSmall);
  double loss = 0;
  for (size_t length = 1; length <= kSmall.context; ++length) {
    const auto probabilities =
        model.Next(problem.Spans(), std::span(problem.windows).first(length));
    EXPECT_NEAR(std::accumulate(probabilities.begin(), probabilities.end(), 0.0), 1, 1e-12);
    loss -= std::log(probabilities[problem.windows[length]]);
  }
  EXPECT_NEAR(model.Forward(problem.Spans(), problem.windows),
              loss / static_cast<double>(kSmall.context), 1e-12);
}

TEST(TransformerTest, LossAndGradientsAreSumsOverTheWindows) {
  const Problem<double> problem(kSmall, 4, 5);
  Transformer<double> model(kSmall);
  double loss = 0;
  std::vector<std::vector<double>> sums;
  for (size_t i = 0; i < 4; ++i) {
    const size_t size = kSmall.context + 1;
    const auto window = std::span(problem.windows).subspan(i * size, size);
    loss += model.Forward(problem.Spans(), window);
    const auto gradients = Gradients(kSmall, problem.Spans(), window);
    if (sums.empty()) sums.assign(gradients.size(), {});
    for (size_t layer = 0; layer < sums.size(); ++layer) {
      sums[layer].resize(gradients[layer].size());
      for (size_t j = 0; j < sums[layer].size(); ++j) sums[layer][j] += gradients[layer][j];
    }
  }
  EXPECT_NEAR(model.Forward(problem.Spans(), problem.windows), loss, 1e-12);
  const auto all = Gradients(kSmall, problem.Spans(), problem.windows);
  for (size_t layer = 0; layer < sums.size(); ++layer) {
    EXPECT_THAT(all[layer], testing::Pointwise(testing::DoubleNear(1e-12), sums[layer]));
  }
}

TEST(TransformerTest, BitsDoNotDependOnMemoryNorOnWhatWasComputedBefore) {
  const Shape shape{.characters = 96, .context = 16, .width = 24, .heads = 4, .blocks = 1};
  const Problem<float> problem(shape, 5, 6);
  const auto expected = Gradients(shape, problem.Spans(), problem.windows);
  const double loss = Transformer<float>(shape).Forward(problem.Spans(), problem.windows);
  Transformer<float> used(shape);
  const Problem<float> other(shape, 9, 7);
  used.Forward(other.Spans(), other.windows);
  used.Backward(other.Spans(), other.windows, [](size_t, std::span<const float>) {});
  EXPECT_EQ(used.Forward(problem.Spans(), problem.windows), loss);
  used.Backward(problem.Spans(), problem.windows, [&](size_t layer, std::span<const float> found) {
    EXPECT_TRUE(std::ranges::equal(found, expected[layer])) << "layer " << layer;
  });
  for (size_t offset = 1; offset < 16; ++offset) {
    std::vector<std::vector<float>> moved = problem.weights;
    Layers<float> spans;
    for (std::vector<float>& layer : moved) {
      layer.insert(layer.begin(), offset, 0);
      spans.emplace_back(std::span<const float>(layer).subspan(offset));
    }
    EXPECT_EQ(Gradients(shape, spans, problem.windows), expected) << "weights moved by " << offset;
  }
}

TEST(TransformerTest, InitialWeightsFollowFromTheSeedAndGuessNothing) {
  const Shape shape;
  std::vector<std::vector<float>> weights;
  size_t count = 0;
  for (size_t layer = 0; layer < LayerCount(shape); ++layer) {
    weights.push_back(InitialLayer(shape, layer, 1));
    EXPECT_EQ(weights.back(), InitialLayer(shape, layer, 1));
    EXPECT_NE(weights.back(), InitialLayer(shape, layer, 2));
    count += weights.back().size();
  }
  EXPECT_EQ(count, WeightCount(shape));
  EXPECT_NE(weights[1], weights[2]) << "blocks must not begin alike";
  const Problem<float> problem(shape, 4, 8);
  const double loss =
      Transformer<float>(shape).Forward({weights.begin(), weights.end()}, problem.windows) / 4;
  EXPECT_NEAR(loss, std::log(96), 0.5);
}

TEST(TransformerTest, ShapesThatCannotBeAreRefusedWithTheReason) {
  EXPECT_EQ(ShapeError(Shape{}), std::nullopt);
  EXPECT_EQ(ShapeError({.width = 10, .heads = 4}), "width is 10, not a multiple of the 4 heads");
  EXPECT_EQ(ShapeError({.width = 10, .heads = 11}), "heads is 11, not 1 to 10");
  EXPECT_EQ(ShapeError({.characters = 257}), "characters is 257, not 2 to 256");
  EXPECT_EQ(ShapeError({.context = 0}), "context is 0, not 1 to 4096");
  EXPECT_EQ(ShapeError({.width = 5000}), "width is 5000, not 1 to 4096");
  EXPECT_EQ(ShapeError({.blocks = 0}), "blocks is 0, not 1 to 64");
}

}  // namespace
}  // namespace text
