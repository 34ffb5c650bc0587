#include "scaler/policy/theil_sen.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/random.h"

namespace muster::scaler {
namespace {

TEST(TheilSenTest, ALineIsFoundExactly) {
  const RobustLine line = FitTheilSen(std::vector<Point>{{0, 5}, {1, 7}, {2, 9}, {4, 13}});
  EXPECT_DOUBLE_EQ(line.slope, 2);
  EXPECT_DOUBLE_EQ(line.intercept, 5);
  EXPECT_DOUBLE_EQ(line.noise, 0);
  EXPECT_DOUBLE_EQ(line.concordance, 1);
}

TEST(TheilSenTest, OutliersDoNotTurnIt) {
  // Expected: scipy.stats.theilslopes(method="joint") and kendalltau of SciPy 1.17.
  const std::vector<Point> points = {{0, 1.0},  {1, 2.9},  {2, 5.2},  {3, 7.1},  {4, 40.0},
                                     {5, 11.2}, {7, 14.8}, {8, 17.1}, {9, -30.0}};
  const RobustLine line = FitTheilSen(points);
  EXPECT_NEAR(line.slope, 1.9773809523809525, 1e-12);
  EXPECT_NEAR(line.intercept, 1.1678571428571427, 1e-12);
  EXPECT_NEAR(line.noise, 0.24886499999999975, 1e-12);
  EXPECT_NEAR(line.concordance, 0.3888888888888889, 1e-12);
}

TEST(TheilSenTest, ATieInXIsNoPairAndATieInYIsNeither) {
  const RobustLine line = FitTheilSen(std::vector<Point>{{0, 1}, {0, 9}, {1, 1}, {1, 9}});
  EXPECT_DOUBLE_EQ(line.slope, 0);
  EXPECT_DOUBLE_EQ(line.concordance, 0);
}

TEST(TheilSenTest, WithoutTwoDifferentXItIsFlat) {
  EXPECT_DOUBLE_EQ(FitTheilSen({}).slope, 0);
  EXPECT_DOUBLE_EQ(FitTheilSen({}).intercept, 0);
  const RobustLine line = FitTheilSen(std::vector<Point>{{3, 1}, {3, 5}});
  EXPECT_DOUBLE_EQ(line.slope, 0);
  EXPECT_DOUBLE_EQ(line.intercept, 3);
}

TEST(TheilSenTest, NoiseAloneHasNoTrend) {
  Rng rng(1);
  for (int round = 0; round < 200; ++round) {
    std::vector<Point> points;
    for (int i = 0; i < 30; ++i) points.push_back({static_cast<double>(i), rng.Uniform()});
    EXPECT_LT(std::abs(FitTheilSen(points).concordance), 0.6);
  }
}

TEST(TheilSenTest, ManyPointsAreThinnedToAnEvenChoiceWithBothEnds) {
  // Of 255 points, every second one is used. The points in between are far from the line.
  std::vector<Point> points;
  for (int i = 0; i < 255; ++i) {
    points.push_back({static_cast<double>(i), i % 2 == 0 ? 3.0 * i : 1e6 - 50.0 * i});
  }
  const RobustLine even = FitTheilSen(points);
  EXPECT_DOUBLE_EQ(even.slope, 3);
  EXPECT_DOUBLE_EQ(even.noise, 0);
  EXPECT_DOUBLE_EQ(even.concordance, 1);
  // Each end falls against all others: 127 pairs and 127, of which they share one, of 8,128.
  points.front().y = 1e9;
  points.back().y = -1e9;
  EXPECT_DOUBLE_EQ(FitTheilSen(points).concordance, 1 - 2 * 253.0 / 8128);
}

}  // namespace
}  // namespace muster::scaler
