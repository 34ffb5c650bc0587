#include "examples/text/adam.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace text {
namespace {

TEST(AdamTest, RateGrowsOverTheWarmupAndThenFalls) {
  const AdamOptions options{.learning_rate = 0.5F, .warmup = 4};
  EXPECT_FLOAT_EQ(RateAt(options, 1), 0.125F);
  EXPECT_FLOAT_EQ(RateAt(options, 4), 0.5F);
  EXPECT_FLOAT_EQ(RateAt(options, 16), 0.25F);
}

TEST(AdamTest, FollowsTheMomentsOfTheMeanGradient) {
  const AdamOptions options{.learning_rate = 0.1F, .warmup = 1};
  std::vector<float> weights = {1, -2, 3}, first(3), second(3);
  const AdamLayer layer{weights, first, second};
  // The same in double, from the paper's formulas.
  std::vector<double> expected = {1, -2, 3}, m(3), v(3);
  for (int64_t update = 1; update <= 3; ++update) {
    const std::vector<float> sum = {4, -0.5F * static_cast<float>(update), 0};
    Update(options, RateAt(options, update), update, sum, 4, layer);
    for (size_t i = 0; i < 3; ++i) {
      const double gradient = sum[i] / 4.0, at = static_cast<double>(update);
      m[i] = 0.9 * m[i] + 0.1 * gradient;
      v[i] = 0.98 * v[i] + 0.02 * gradient * gradient;
      const double rate = 0.1 / std::sqrt(at);
      expected[i] -= rate * (m[i] / (1 - std::pow(0.9, at))) /
                     (std::sqrt(v[i] / (1 - std::pow(0.98, at))) + 1e-8);
    }
  }
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(weights[i], expected[i], 1e-5) << i;
    EXPECT_NEAR(first[i], m[i], 1e-6) << i;
    EXPECT_NEAR(second[i], v[i], 1e-6) << i;
  }
  EXPECT_EQ(weights[2], 3) << "a weight without gradients stays";
}

}  // namespace
}  // namespace text
