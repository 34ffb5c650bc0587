#include "ps/engine/initializer.h"

#include <cmath>
#include <set>

#include "tests/support/status_matchers.h"

namespace muster::ps {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::FloatEq;
using Kind = InitializerSpec::Kind;

std::vector<float> Values(const InitializerSpec& spec, uint64_t seed, uint32_t table, uint64_t key,
                          size_t dim = 8) {
  constexpr float kBeyond = -77;
  std::vector<float> values(dim + 1, kBeyond);
  InitialValues(spec, seed, TableId(table), key, std::span(values).first(dim));
  EXPECT_EQ(values.back(), kBeyond);
  values.pop_back();
  return values;
}

TEST(InitializerTest, InverseNormalEqualsTheReference) {
  // Python 3.11, statistics.NormalDist().inv_cdf; the borders between the three ranges among them.
  const std::pair<double, double> cases[] = {
      {1e-16, -8.222082216},
      {1e-10, -6.361340902},
      {0.001, -3.090232306},
      {0.0749, -1.440238268},
      {0.0751, -1.438825393},
      {0.3, -0.524400513},
      {0.5, 0.0},
      {0.75, 0.674489750},
      {0.9249, 1.438825393},
      {0.9251, 1.440238268},
      {0.999, 3.090232306},
      {0.999999999, 5.997807020},
  };
  for (const auto& [p, value] : cases) EXPECT_NEAR(InverseNormal(p), value, 1e-6) << p;
}

TEST(InitializerTest, ValuesDependOnSeedTableKeyAndColumnAndOnNothingElse) {
  for (const Kind kind : {Kind::kUniform, Kind::kNormal}) {
    const InitializerSpec spec{kind, 0, 1};
    const std::vector<float> values = Values(spec, 7, 1, 42);
    EXPECT_EQ(Values(spec, 7, 1, 42), values);
    // A wider row begins with the same values.
    const std::vector<float> wide = Values(spec, 7, 1, 42, 20);
    EXPECT_TRUE(std::equal(values.begin(), values.end(), wide.begin()));
    EXPECT_EQ(std::set<float>(wide.begin(), wide.end()).size(), 20u);
    EXPECT_NE(Values(spec, 8, 1, 42)[0], values[0]);
    EXPECT_NE(Values(spec, 7, 2, 42)[0], values[0]);
    EXPECT_NE(Values(spec, 7, 1, 43)[0], values[0]);
  }
}

TEST(InitializerTest, StoredStateDependsOnTheseValuesTheyMayNeverChange) {
  EXPECT_THAT(Values({Kind::kUniform, -1, 1}, 7, 1, 42, 2),
              ElementsAre(-0.244467065f, 0.675355971f));
  EXPECT_THAT(Values({Kind::kNormal, 0, 1}, 7, 1, 42, 2),
              ElementsAre(FloatEq(-0.311352134f), FloatEq(0.984959424f)));
}

TEST(InitializerTest, KindsAreWhatTheySay) {
  EXPECT_THAT(Values({Kind::kZero, 3, 4}, 7, 1, 42), Each(0.0f));
  EXPECT_THAT(Values({Kind::kConstant, 3, 4}, 7, 1, 42), Each(3.0f));
  double uniform_sum = 0, normal_sum = 0, normal_squares = 0;
  constexpr int kKeys = 5000, kDim = 8;
  for (uint64_t key = 0; key < kKeys; ++key) {
    for (const float value : Values({Kind::kUniform, -2, 4}, 7, 1, key, kDim)) {
      ASSERT_GE(value, -2);
      ASSERT_LE(value, 4);
      uniform_sum += value;
    }
    for (const float value : Values({Kind::kNormal, 5, 2}, 7, 1, key, kDim)) {
      normal_sum += value;
      normal_squares += (value - 5) * (value - 5);
    }
  }
  // Five standard errors.
  constexpr double kCount = kKeys * kDim;
  EXPECT_NEAR(uniform_sum / kCount, 1, 5 * std::sqrt(3 / kCount));
  EXPECT_NEAR(normal_sum / kCount, 5, 5 * 2 / std::sqrt(kCount));
  EXPECT_NEAR(normal_squares / kCount, 4, 5 * 4 * std::sqrt(2 / kCount));
}

TEST(InitializerTest, TheLastBlockOfATensorEndsInZeros) {
  TableSpec table;
  table.id = TableId(1);
  table.dim = 4;
  table.shape = {3, 3};
  table.initializer = {Kind::kConstant, 2, 0};
  EXPECT_EQ(ElementCount(table), 9u);
  std::vector<float> values(4);
  InitialRow(table, 7, 1, values);
  EXPECT_THAT(values, Each(2.0f));
  InitialRow(table, 7, 2, values);
  EXPECT_THAT(values, ElementsAre(2, 0, 0, 0));
  table.shape = {1ull << 40, 1ull << 40};
  EXPECT_EQ(ElementCount(table), UINT64_MAX);
  table.shape = {};
  EXPECT_EQ(ElementCount(table), 0u);
  InitialRow(table, 7, 2, values);
  EXPECT_THAT(values, Each(2.0f));
}

}  // namespace
}  // namespace muster::ps
