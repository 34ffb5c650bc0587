#include "kubernetes/pods/pod_usage.h"

#include <gtest/gtest.h>

#include "tests/support/status_matchers.h"

namespace muster::kubernetes {
namespace {

using Json = nlohmann::json;
using std::chrono::seconds;

Json Metrics(const std::string& cpu, const std::string& memory) {
  return Json::array(
      {{{"metadata", {{"name", "p"}}},
        {"containers",
         Json::array({{{"name", "sidecar"}, {"usage", {{"cpu", "9"}}}},
                      {{"name", "muster"}, {"usage", {{"cpu", cpu}, {"memory", memory}}}}})}}});
}

TEST(PodUsageTest, TheTotalOfTheCpuGrowsWithTheNewestRate) {
  const TimePoint begin{seconds(1000)};
  PodUsage usage;
  EXPECT_THAT(usage.Of("p", "muster", begin),
              testing::StatusIs(absl::StatusCode::kUnavailable, ::testing::_));
  usage.OnMetrics(Metrics("500m", "100Ki"), begin);
  MUSTER_ASSERT_OK_AND_ASSIGN(const NodeUsage first, usage.Of("p", "muster", begin));
  EXPECT_EQ(first.cpu, seconds(0));
  EXPECT_EQ(first.memory_bytes, 102400u);
  MUSTER_ASSERT_OK_AND_ASSIGN(const NodeUsage later, usage.Of("p", "muster", begin + seconds(10)));
  EXPECT_EQ(later.cpu, seconds(5));
  usage.OnMetrics(Metrics("2", "50Ki"), begin + seconds(20));
  MUSTER_ASSERT_OK_AND_ASSIGN(const NodeUsage last, usage.Of("p", "muster", begin + seconds(21)));
  EXPECT_EQ(last.cpu, seconds(12));
  EXPECT_EQ(last.memory_bytes, 51200u);
  EXPECT_EQ(last.memory_peak_bytes, 102400u);
}

TEST(PodUsageTest, OldFiguresAndPodsThatAreGone) {
  const TimePoint begin{seconds(1000)};
  PodUsage usage;
  usage.OnMetrics(Metrics("1", "1Ki"), begin);
  EXPECT_THAT(usage.Of("p", "muster", begin + seconds(60)), testing::IsOk());
  EXPECT_FALSE(usage.Of("p", "muster", begin + seconds(61)).ok());
  EXPECT_FALSE(usage.Of("q", "muster", begin).ok());
  usage.OnMetrics(Json::array(), begin);
  EXPECT_FALSE(usage.Of("p", "muster", begin).ok());
}

}  // namespace
}  // namespace muster::kubernetes
