#include "examples/text/writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace text {
namespace {

constexpr Shape kFive{.characters = 5, .context = 3, .width = 4, .heads = 2, .blocks = 1};

/// A model that always gives these scores to the characters: all other weights are 0.
Model Constant(std::vector<float> scores) {
  Model model{.shape = kFive};
  for (size_t i = 0; i < LayerCount(kFive); ++i) model.layers.emplace_back(LayerSize(kFive, i));
  std::ranges::copy(scores, model.layers.back().end() - 5);
  return model;
}

TEST(WriterTest, DrawsByTheProbabilities) {
  const Model model = Constant({0, std::log(3.0F), -100, 0, -100});
  const std::vector<uint8_t> begin = {1};
  const auto counts = [&](float temperature) {
    const auto text = Continue(model, begin, {.length = 2000, .temperature = temperature});
    std::vector<int64_t> found;
    for (uint8_t i = 0; i < 5; ++i) found.push_back(std::ranges::count(text, i));
    return found;
  };
  using testing::AllOf, testing::Ge, testing::Le;
  const auto about = [](int64_t n) { return AllOf(Ge(n - 100), Le(n + 100)); };
  EXPECT_THAT(counts(1), testing::ElementsAre(about(400), about(1200), 0, about(400), 0));
  EXPECT_THAT(counts(0.01F), testing::ElementsAre(0, 2000, 0, 0, 0));
}

TEST(WriterTest, FollowsFromTheSeed) {
  const Model model = Constant({0, 0, 0, 0, 0});
  const std::vector<uint8_t> begin = {1, 2, 3, 4};  // longer than the context
  const auto text = Continue(model, begin, {.length = 50, .seed = 3});
  EXPECT_EQ(text.size(), 50);
  EXPECT_EQ(Continue(model, begin, {.length = 50, .seed = 3}), text);
  EXPECT_NE(Continue(model, begin, {.length = 50, .seed = 4}), text);
}

}  // namespace
}  // namespace text
