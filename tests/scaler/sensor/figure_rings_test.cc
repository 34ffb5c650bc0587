#include "scaler/sensor/figure_rings.h"

#include <gmock/gmock.h>

#include <cmath>

namespace muster::scaler {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::IsNan;
using ::testing::SizeIs;

constexpr uint64_t kSecond = 1'000'000;

std::vector<Figure> One(double value, const std::string& node = "a") {
  return {{node, "memory", "bytes", value}};
}

TEST(FigureRingsTest, NothingYet) {
  EXPECT_THAT(FigureRings().Since("", 0, 600).times_us, IsEmpty());
}

TEST(FigureRingsTest, ColumnsAreOfEqualLengthWhoeverCameLater) {
  FigureRings rings;
  rings.Add(1 * kSecond, One(1));
  rings.Add(2 * kSecond, {{"a", "memory", "bytes", 2}, {"b", "memory", "bytes", 7}});
  rings.Add(3 * kSecond, One(8, "b"));
  const rest::Samples samples = rings.Since("", 0, 600);
  EXPECT_THAT(samples.times_us, ElementsAre(kSecond, 2 * kSecond, 3 * kSecond));
  ASSERT_THAT(samples.series, SizeIs(2));
  EXPECT_THAT(samples.series[0].values, ElementsAre(1, 2, IsNan()));
  EXPECT_THAT(samples.series[1].values, ElementsAre(IsNan(), 7, 8));
  EXPECT_EQ(samples.series[1].unit, "bytes");
}

TEST(FigureRingsTest, OfOneNodeAfterATimeWithinAWindow) {
  FigureRings rings;
  for (uint64_t i = 1; i <= 20; ++i) rings.Add(i * kSecond, One(static_cast<double>(i)));
  EXPECT_THAT(rings.Since("a", 18 * kSecond, 600).times_us,
              ElementsAre(19 * kSecond, 20 * kSecond));
  EXPECT_THAT(rings.Since("a", 0, 3).times_us, SizeIs(3));
  EXPECT_THAT(rings.Since("b", 0, 600).series, IsEmpty());
}

TEST(FigureRingsTest, SixHoursInTens) {
  FigureRings rings;
  for (uint64_t i = 1; i <= 30'000; ++i) {
    rings.Add(i * kSecond, One(i % 10 == 5 ? NAN : static_cast<double>(i % 10)));
  }
  EXPECT_THAT(rings.Since("", 0, 600).times_us, SizeIs(600));
  const rest::Samples samples = rings.Since("", 0, 86'400);
  ASSERT_THAT(samples.times_us, SizeIs(2'160));
  EXPECT_EQ(samples.times_us.back(), 30'000 * kSecond);
  EXPECT_EQ(samples.times_us[1] - samples.times_us[0], 10 * kSecond);
  EXPECT_NEAR(samples.series[0].values.back(), 40.0 / 9, 1e-5);  // without the unknown one
}

TEST(FigureRingsTest, WhoIsGoneIsForgotten) {
  FigureRings rings;
  rings.Add(kSecond, One(1, "gone"));
  for (uint64_t i = 2; i <= 600; ++i) rings.Add(i * kSecond, One(1));
  EXPECT_THAT(rings.Since("", 0, 600).series, SizeIs(2));
  rings.Add(601 * kSecond, One(1));
  EXPECT_THAT(rings.Since("", 0, 600).series, SizeIs(1));
}

TEST(FigureRingsTest, TooManyAreLeftOut) {
  FigureRings rings;
  std::vector<Figure> figures;
  for (size_t i = 0; i < FigureRings::kSeriesMax + 5; ++i) {
    figures.push_back({std::to_string(i), "memory", "bytes", 1});
  }
  rings.Add(kSecond, figures);
  EXPECT_THAT(rings.Since("", 0, 600).series, SizeIs(FigureRings::kSeriesMax));
}

}  // namespace
}  // namespace muster::scaler
