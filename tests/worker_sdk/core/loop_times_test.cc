#include "worker_sdk/core/loop_times.h"

#include <gtest/gtest.h>

namespace muster::sdk {
namespace {

using std::chrono::milliseconds;

class LoopTimesTest : public ::testing::Test {
 protected:
  WorkerTimes At(int64_t ms) const { return times_.At(Time(ms), Time(0)); }
  static TimePoint Time(int64_t ms) {
    return TimePoint(std::chrono::hours(24 * 365)) + milliseconds(ms);
  }
  LoopTimes times_;
};

TEST_F(LoopTimesTest, WhatIsGoingOnCountsUpToNow) {
  EXPECT_EQ(At(5), (WorkerTimes{.total_us = 5'000}));
  times_.wait_shard.Enter(Time(10));
  EXPECT_EQ(At(30).wait_shard_us, 20'000u);
  times_.wait_shard.Leave(Time(40));
  EXPECT_EQ(At(100).wait_shard_us, 30'000u);
}

TEST_F(LoopTimesTest, ComputingIsTheLoopWithoutItsWaits) {
  times_.loop.Enter(Time(0));
  times_.wait_pull.Enter(Time(10));
  EXPECT_EQ(At(30).compute_us, 10'000u) << "the wait that is in progress is none of it";
  times_.wait_pull.Leave(Time(30));
  times_.wait_push.Enter(Time(35));
  times_.wait_push.Leave(Time(50));
  times_.loop.Leave(Time(60));
  const WorkerTimes times = At(1'000);
  EXPECT_EQ(times.compute_us, 25'000u);
  EXPECT_EQ(times.wait_pull_us, 20'000u);
  EXPECT_EQ(times.wait_push_us, 15'000u);
  EXPECT_EQ(times.total_us, 1'000'000u);
}

TEST_F(LoopTimesTest, LoopsAddUp) {
  for (int i = 0; i < 1'000; ++i) times_.loop.Enter(Time(0));
  EXPECT_EQ(At(10).compute_us, 10'000'000u);
  for (int i = 0; i < 999; ++i) times_.loop.Leave(Time(20));
  EXPECT_EQ(At(30).compute_us, 999 * 20'000u + 30'000u);
}

}  // namespace
}  // namespace muster::sdk
