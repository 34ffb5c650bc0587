#include "worker_sdk/member_core/outer_optimizer.h"

#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.h"
#include "tests/support/status_matchers.h"

namespace muster::sdk {
namespace {

using muster::testing::IsOk;
using muster::testing::StatusIs;
using ::testing::HasSubstr;
using OuterKind = OuterOptimizer::Kind;

constexpr OuterOptimizer kNesterovOuter{
    .kind = OuterKind::kNesterov, .learning_rate = 0.7F, .momentum = 0.9F};
constexpr OuterOptimizer kAdamOuter{.kind = OuterKind::kAdam,
                                    .learning_rate = 0.5F,
                                    .momentum = 0.9F,
                                    .beta2 = 0.99F,
                                    .epsilon = 0.25F};

TEST(OuterOptimizerTest, SgdOfRateOneTakesTheMean) {
  std::array weights{3.0F, -1.0F};
  UpdateOuter({}, 1, std::array{4.0F, -2.0F}, 2, {.weights = weights, .first = {}, .second = {}});
  EXPECT_EQ(weights, (std::array{1.0F, 0.0F}));
}

TEST(OuterOptimizerTest, NesterovIsASequenceByHand) {
  std::array weights{10.0F};
  std::array moment{0.0F};
  // The changes are 1, 2 and 0.
  UpdateOuter(kNesterovOuter, 1, std::array{3.0F}, 3, {weights, moment, {}});
  EXPECT_NEAR(moment[0], 1, 1e-6);
  EXPECT_NEAR(weights[0], 10 - 0.7 * (1 + 0.9 * 1), 1e-5);
  UpdateOuter(kNesterovOuter, 2, std::array{4.0F}, 2, {weights, moment, {}});
  EXPECT_NEAR(moment[0], 2.9, 1e-6);
  EXPECT_NEAR(weights[0], 8.67 - 0.7 * (2 + 0.9 * 2.9), 1e-5);
  UpdateOuter(kNesterovOuter, 3, std::array{0.0F}, 2, {weights, moment, {}});
  EXPECT_NEAR(moment[0], 2.61, 1e-6);
  EXPECT_NEAR(weights[0], 5.443 - 0.7 * 0.9 * 2.61, 1e-5);
}

TEST(OuterOptimizerTest, AdamCorrectsItsFirstMeans) {
  std::array weights{1.0F};
  std::array first{0.0F};
  std::array second{0.0F};
  UpdateOuter(kAdamOuter, 1, std::array{-4.0F}, 2, {weights, first, second});
  // The corrected means are those of the first change: -2 and 4.
  EXPECT_NEAR(weights[0], 1 + 0.5 * 2 / (2 + 0.25), 1e-5);
  UpdateOuter(kAdamOuter, 2, std::array{0.0F}, 2, {weights, first, second});
  const double mean = 0.9 * -0.2 / (1 - 0.81);
  const double square = 0.99 * 0.04 / (1 - 0.9801);
  EXPECT_NEAR(weights[0], 1 + 1 / 2.25 - 0.5 * mean / (std::sqrt(square) + 0.25), 1e-5);
}

/// The weights after some updates, in arrays that begin at `offset` of their memory.
std::vector<float> UpdatedAt(const OuterOptimizer& optimizer, size_t offset, size_t size) {
  std::array<std::vector<float>, 3> memory;
  memory.fill(std::vector<float>(offset + size));
  Rng rng(5);
  for (size_t i = 0; i < size; ++i) {
    memory[0][offset + i] = static_cast<float>(rng.Uniform());
  }
  const auto here = [&](size_t array) { return std::span(memory[array]).subspan(offset, size); };
  std::vector<float> sum(size);
  for (uint64_t update = 1; update < 6; ++update) {
    for (float& each : sum) each = static_cast<float>(rng.Uniform()) * 3 - 1;
    UpdateOuter(optimizer, update, sum, 3, {here(0), here(1), here(2)});
  }
  const auto weights = here(0);
  return {weights.begin(), weights.end()};
}

TEST(OuterOptimizerTest, EqualArgumentsGiveEqualBitsWhereverTheyLie) {
  for (const OuterOptimizer& optimizer : {OuterOptimizer{}, kNesterovOuter, kAdamOuter}) {
    for (size_t offset = 0; offset < 8; ++offset) {
      const std::vector<float> long_one = UpdatedAt(optimizer, offset, 61);
      EXPECT_EQ(long_one, UpdatedAt(optimizer, 0, 61));
    }
  }
}

TEST(OuterOptimizerTest, MixesAndSubtracts) {
  std::array out{0.0F, 0.0F};
  Mix(0.25F, std::array{4.0F, 8.0F}, std::array{0.0F, 4.0F}, out);
  EXPECT_EQ(out, (std::array{1.0F, 5.0F}));
  Difference(std::array{4.0F, 8.0F}, std::array{1.0F, 9.0F}, out);
  EXPECT_EQ(out, (std::array{3.0F, -1.0F}));
}

TEST(OuterOptimizerTest, NumbersHaveBounds) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(CheckOptimizer({}), IsOk());
  EXPECT_THAT(CheckOptimizer(kNesterovOuter), IsOk());
  EXPECT_THAT(CheckOptimizer(kAdamOuter), IsOk());
  const auto refused = [](OuterOptimizer optimizer, const char* name) {
    EXPECT_THAT(CheckOptimizer(optimizer),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(name)));
  };
  for (const float bad : {-1.0F, nan, 1e30F}) {
    OuterOptimizer optimizer = kAdamOuter;
    optimizer.learning_rate = bad;
    refused(optimizer, "learning_rate is");
    optimizer = kNesterovOuter;
    optimizer.momentum = bad;
    refused(optimizer, "momentum is");
    optimizer = kAdamOuter;
    optimizer.momentum = bad;
    refused(optimizer, "beta1 is");
    optimizer = kAdamOuter;
    optimizer.beta2 = bad;
    refused(optimizer, "beta2 is");
    optimizer = kAdamOuter;
    optimizer.epsilon = bad;
    refused(optimizer, "epsilon is");
  }
  EXPECT_EQ(MomentsOf(OuterKind::kSgd), 0u);
  EXPECT_EQ(MomentsOf(OuterKind::kNesterov), 1u);
  EXPECT_EQ(MomentsOf(OuterKind::kAdam), 2u);
}

}  // namespace
}  // namespace muster::sdk
