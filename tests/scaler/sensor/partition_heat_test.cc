#include "scaler/sensor/partition_heat.h"

#include <gmock/gmock.h>

#include <cmath>

namespace muster::scaler {
namespace {

using std::chrono::seconds;

PartitionList Page(uint64_t incarnation, uint64_t pulls, uint64_t bytes) {
  return {.partitions = {{.partition = 7,
                          .owner_incarnation = incarnation,
                          .traffic = {.pulls = pulls,
                                      .pushes = pulls / 2,
                                      .moved_bytes = bytes,
                                      .service_us = pulls * 10}}}};
}

TEST(PartitionHeatTest, RatesBetweenTheNewestTwo) {
  PartitionHeat heat;
  const TimePoint start(seconds(100));
  heat.OnPage(Page(1, 100, 5'000), start);
  ASSERT_EQ(heat.Rates().size(), 1u);
  EXPECT_TRUE(std::isnan(heat.Rates()[0].pulls));
  heat.OnPage(Page(1, 300, 25'000), start + seconds(2));
  heat.OnPage(Page(1, 300, 25'000), start + seconds(2));  // a repetition changes nothing
  const PartitionRate rate = heat.Rates()[0];
  EXPECT_EQ(rate.partition, 7u);
  EXPECT_EQ(rate.pulls, 100);
  EXPECT_EQ(rate.pushes, 50);
  EXPECT_EQ(rate.bytes, 10'000);
  EXPECT_EQ(rate.service_us, 1'000);
}

TEST(PartitionHeatTest, AnotherOwnerAndTotalsThatGoBackAreNotKnown) {
  PartitionHeat heat;
  const TimePoint start(seconds(100));
  heat.OnPage(Page(1, 100, 5'000), start);
  heat.OnPage(Page(2, 300, 5'000), start + seconds(1));
  EXPECT_TRUE(std::isnan(heat.Rates()[0].pulls));
  heat.OnPage(Page(2, 200, 5'000), start + seconds(2));  // a new master, that has not heard all
  EXPECT_TRUE(std::isnan(heat.Rates()[0].pulls));
  heat.OnPage(Page(2, 210, 5'000), start + seconds(3));
  EXPECT_EQ(heat.Rates()[0].pulls, 10);
}

}  // namespace
}  // namespace muster::scaler
