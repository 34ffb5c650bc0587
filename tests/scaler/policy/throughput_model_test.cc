#include "scaler/policy/throughput_model.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "tests/support/status_matchers.h"

namespace muster::scaler {
namespace {

using muster::testing::StatusIs;

double Truth(uint32_t n) {
  return 1 / (0.004 / n + 0.0005 + 0.00002 * n);
}

TEST(ThroughputModelTest, FindsTheModelThatMadeTheRates) {
  MUSTER_ASSERT_OK_AND_ASSIGN(
      const ThroughputModel model,
      ThroughputModel::Fit({{1, Truth(1)}, {2, Truth(2)}, {4, Truth(4)}, {8, Truth(8)}}));
  for (uint32_t n : {1, 3, 6, 16, 40}) EXPECT_NEAR(model.Rate(n), Truth(n), 1e-6 * Truth(n));
  EXPECT_NEAR(model.relative_error(), 0, 1e-9);
  EXPECT_EQ(model.Rate(0), 0);
}

TEST(ThroughputModelTest, LinearGrowthStaysLinear) {
  MUSTER_ASSERT_OK_AND_ASSIGN(const ThroughputModel model,
                              ThroughputModel::Fit({{1, 1000}, {2, 2000}}));
  EXPECT_NEAR(model.Rate(5), 5000, 1e-6);
}

TEST(ThroughputModelTest, FasterThanLinearIsLinearAtMost) {
  // No coefficient can be negative: two workers that are more than twice as fast are noise.
  MUSTER_ASSERT_OK_AND_ASSIGN(const ThroughputModel model,
                              ThroughputModel::Fit({{1, 1000}, {2, 2600}}));
  EXPECT_LE(model.Rate(4), 2 * model.Rate(2) * 1.000001);
  // By hand: the linear rate that fits best misses 1,000 by -14.5 % and 2,600 by 11.2 %.
  EXPECT_NEAR(model.relative_error(), 0.1293, 1e-4);
}

TEST(ThroughputModelTest, MoreThatAreSlowerAreSeen) {
  MUSTER_ASSERT_OK_AND_ASSIGN(const ThroughputModel model,
                              ThroughputModel::Fit({{2, 1900}, {3, 2100}, {4, 1900}}));
  EXPECT_LT(model.Rate(6), model.Rate(3));
}

TEST(ThroughputModelTest, NoiseOfFivePercentMovesAPredictionLittle) {
  Rng rng(3);
  for (int round = 0; round < 100; ++round) {
    const auto noisy = [&rng](uint32_t n) { return Truth(n) * (0.95 + 0.1 * rng.Uniform()); };
    MUSTER_ASSERT_OK_AND_ASSIGN(
        const ThroughputModel model,
        ThroughputModel::Fit({{1, noisy(1)}, {2, noisy(2)}, {3, noisy(3)}, {4, noisy(4)}}));
    EXPECT_NEAR(model.Rate(5), Truth(5), 0.2 * Truth(5));
  }
}

TEST(ThroughputModelTest, OneCountIsNoModel) {
  EXPECT_THAT(ThroughputModel::Fit({{3, 1000}}),
              StatusIs(absl::StatusCode::kFailedPrecondition, ::testing::HasSubstr("two")));
}

}  // namespace
}  // namespace muster::scaler
