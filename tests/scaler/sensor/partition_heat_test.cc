#include "scaler/sensor/partition_heat.h"

#include <gmock/gmock.h>

#include <cmath>

namespace muster::scaler {
namespace {

using std::chrono::seconds;

v1::ListPartitionsResponse Page(uint64_t incarnation, uint64_t pulls, uint64_t bytes) {
  v1::ListPartitionsResponse page;
  v1::PartitionStatus* status = page.add_partitions();
  status->set_partition(7);
  status->set_owner_incarnation(incarnation);
  status->mutable_traffic()->set_pulls(pulls);
  status->mutable_traffic()->set_pushes(pulls / 2);
  status->mutable_traffic()->set_moved_bytes(bytes);
  status->mutable_traffic()->set_service_us(pulls * 10);
  return page;
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
