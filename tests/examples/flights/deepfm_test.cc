#include "examples/flights/deepfm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/random.h"

namespace flights {
namespace {

constexpr DeepFmShape kShape{.fields = 3, .dim = 4, .hidden1 = 5, .hidden2 = 6};
constexpr size_t kRecords = 7;

/// Everything the model reads, as vectors that a test may change.
struct Problem {
  std::vector<double> embeddings;
  std::vector<double> first_order;
  std::array<std::vector<double>, kDenseCount> dense;
  std::vector<double> labels;

  explicit Problem(uint64_t seed, const DeepFmShape& shape = kShape, size_t records = kRecords) {
    muster::Rng rng(seed);
    const auto fill = [&rng](std::vector<double>& values, size_t size) {
      for (size_t i = 0; i < size; ++i) values.push_back(2 * rng.Uniform() - 1);
    };
    fill(embeddings, records * shape.fields * shape.dim);
    fill(first_order, records * shape.fields);
    const auto infos = DenseTensors(shape);
    for (size_t id = 0; id < kDenseCount; ++id) {
      size_t size = 1;
      for (const uint64_t extent : infos[id].shape) size *= extent;
      fill(dense[id], size);
    }
    for (size_t i = 0; i < records; ++i) labels.push_back(static_cast<double>(rng.Below(2)));
  }
  DeepFmInputs<double> Inputs() const {
    DeepFmInputs<double> inputs{labels.size(), embeddings, first_order, {}};
    for (size_t id = 0; id < kDenseCount; ++id) inputs.dense[id] = dense[id];
    return inputs;
  }
  double Loss() const {
    DeepFm<double> model(kShape);
    const std::span<const double> probabilities = model.Forward(Inputs());
    double loss = 0;
    for (size_t i = 0; i < labels.size(); ++i) {
      loss -= std::log(labels[i] > 0.5 ? probabilities[i] : 1 - probabilities[i]);
    }
    return loss / static_cast<double>(labels.size());
  }
};

/// Compares `gradient` with central differences of the loss in every element of `weights`.
void ExpectGradient(const Problem& problem, std::vector<double>& weights,
                    const std::vector<double>& gradient, const char* what) {
  ASSERT_EQ(weights.size(), gradient.size()) << what;
  constexpr double kStep = 1e-6;
  for (size_t i = 0; i < weights.size(); ++i) {
    const double weight = weights[i];
    weights[i] = weight + kStep;
    const double above = problem.Loss();
    weights[i] = weight - kStep;
    const double below = problem.Loss();
    weights[i] = weight;
    EXPECT_NEAR((above - below) / (2 * kStep), gradient[i], 1e-7) << what << " element " << i;
  }
}

TEST(DeepFmTest, GradientsMatchCentralDifferences) {
  Problem problem(3);
  DeepFm<double> model(kShape);
  DeepFmGradients<double> gradients;
  model.Forward(problem.Inputs());
  model.Backward(problem.Inputs(), problem.labels, gradients);
  ExpectGradient(problem, problem.embeddings, gradients.embeddings, "embeddings");
  ExpectGradient(problem, problem.first_order, gradients.first_order, "first_order");
  for (size_t id = 0; id < kDenseCount; ++id) {
    ExpectGradient(problem, problem.dense[id], gradients.dense[id],
                   DenseTensors(kShape)[id].name.data());
  }
}

TEST(DeepFmTest, PairsOfFieldsAreDotProducts) {
  // Two fields, embeddings (1, 2) and (3, 4); the perceptron is switched off by zero output
  // weights.
  const DeepFmShape shape{.fields = 2, .dim = 2, .hidden1 = 1, .hidden2 = 1};
  Problem problem(5, shape, 1);
  problem.embeddings = {1, 2, 3, 4};
  problem.first_order = {0.25, -0.5};
  problem.dense[kOutputWeight] = {0};
  problem.dense[kBias] = {-10};
  DeepFm<double> model(shape);
  const double logit = -10 + 0.25 - 0.5 + (1 * 3 + 2 * 4);
  EXPECT_NEAR(model.Forward(problem.Inputs())[0], 1 / (1 + std::exp(-logit)), 1e-12);
}

TEST(DeepFmTest, GradientIsOfTheMeanSoThatDoublingTheBatchChangesNothing) {
  Problem once(9);
  Problem twice = once;
  for (auto* values : {&twice.embeddings, &twice.first_order, &twice.labels}) {
    const std::vector<double> copy = *values;
    values->insert(values->end(), copy.begin(), copy.end());
  }
  DeepFm<double> model(kShape);
  DeepFmGradients<double> gradients_once, gradients_twice;
  model.Forward(once.Inputs());
  model.Backward(once.Inputs(), once.labels, gradients_once);
  model.Forward(twice.Inputs());
  model.Backward(twice.Inputs(), twice.labels, gradients_twice);
  for (size_t id = 0; id < kDenseCount; ++id) {
    EXPECT_THAT(gradients_twice.dense[id],
                ::testing::Pointwise(::testing::DoubleNear(1e-12), gradients_once.dense[id]));
  }
}

TEST(DeepFmTest, TensorsOfTheDefaultShape) {
  const auto infos = DenseTensors(DeepFmShape{});
  EXPECT_EQ(infos[kHidden1Weight].shape, (std::vector<uint64_t>{144, 64}));
  EXPECT_FLOAT_EQ(infos[kHidden1Weight].initial_bound, 1.0f / 12.0f);
  EXPECT_EQ(infos[kBias].shape, std::vector<uint64_t>{1});
  EXPECT_EQ(infos[kBias].initial_bound, 0);
}

TEST(LogLossSumTest, StaysFiniteWhenTheModelIsSureAndWrong) {
  const std::vector<float> probabilities = {0.0f, 1.0f, 0.5f};
  const std::vector<float> labels = {1.0f, 0.0f, 1.0f};
  const double expected = -2 * std::log(1e-7) - std::log(0.5);
  EXPECT_NEAR(LogLossSum(probabilities, labels), expected, 1e-6);
}

}  // namespace
}  // namespace flights
