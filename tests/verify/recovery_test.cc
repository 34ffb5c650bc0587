#include "verify/recovery.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::verify {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr uint64_t kMs = 1'000'000;

Attempt At(uint64_t ms, uint64_t shard) {
  return {.at_ns = ms * kMs, .shard = {"n", 0, shard}};
}

ShardMark MarkAt(uint64_t ms, uint64_t shard) {
  return {.at_ns = ms * kMs, .shard = {"n", 0, shard}};
}

ProcessName Worker(uint64_t start) {
  return {.node = "worker-0", .start = start};
}

TEST(SummariseTest, MedianAndWorst) {
  EXPECT_EQ(Summarise({}).count, 0u);
  const RecoveryTimes odd = Summarise({30, 10, 20});
  EXPECT_EQ(odd.count, 3u);
  EXPECT_EQ(odd.median_ms, 20);
  EXPECT_EQ(odd.worst_ms, 30);
  EXPECT_EQ(Summarise({1, 4, 2, 3}).median_ms, 2.5);
}

TEST(WorkerRecoveriesTest, FirstMinibatchOfItsShardElsewhere) {
  WorkerRecoveries recoveries;
  recoveries.AddAttempt(Worker(12),
                        At(500, 7));  // another process; read before the one that was killed
  recoveries.AddAttempt(Worker(12), At(900, 7));
  recoveries.AddBegin(Worker(11), MarkAt(85, 6));
  recoveries.AddAttempt(Worker(11), At(90, 6));
  recoveries.AddFinish(Worker(11), MarkAt(95, 6));
  recoveries.AddBegin(Worker(11), MarkAt(96, 7));
  recoveries.AddAttempt(Worker(11), At(100, 7));
  EXPECT_THAT(recoveries.Times({{110 * kMs, Worker(11)}}), ElementsAre(390));
}

TEST(WorkerRecoveriesTest, WhatWasRunBeforeTheKillDoesNotCount) {
  WorkerRecoveries recoveries;
  recoveries.AddAttempt(Worker(12), At(50, 7));
  recoveries.AddBegin(Worker(11), MarkAt(100, 7));
  EXPECT_THAT(recoveries.Times({{110 * kMs, Worker(11)}}), IsEmpty());
  recoveries.AddAttempt(Worker(13), At(300, 7));
  EXPECT_THAT(recoveries.Times({{110 * kMs, Worker(11)}}), ElementsAre(190));
}

TEST(WorkerRecoveriesTest, BetweenTwoShardsNothingShows) {
  WorkerRecoveries recoveries;
  recoveries.AddBegin(Worker(11), MarkAt(90, 7));
  recoveries.AddAttempt(Worker(11), At(100, 7));
  recoveries.AddFinish(Worker(11), MarkAt(105, 7));
  recoveries.AddAttempt(Worker(12), At(500, 7));  // a replay
  EXPECT_THAT(recoveries.Times({{110 * kMs, Worker(11)}, {120 * kMs, Worker(99)}}), IsEmpty());
}

TEST(WorkerRecoveriesTest, TheSameStartOfAnotherNodeIsAnotherProcess) {
  WorkerRecoveries recoveries;
  recoveries.AddBegin(Worker(1), MarkAt(90, 7));
  recoveries.AddAttempt({"worker-1", 1}, At(500, 7));
  EXPECT_THAT(recoveries.Times({{110 * kMs, Worker(1)}}), ElementsAre(390));
  EXPECT_THAT(recoveries.Times({{110 * kMs, {"worker-1", 1}}}), IsEmpty());
}

}  // namespace
}  // namespace muster::verify
