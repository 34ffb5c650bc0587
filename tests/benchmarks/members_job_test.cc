#include "benchmarks/members_job.h"

#include <gtest/gtest.h>

#include "tests/support/temp_dir.h"

namespace muster {
namespace {

constexpr MembersSizes kFew{.workers = 5, .servers = 3, .partitions = 8, .shards = 1'000};

/// A few workers and servers around a real core and journal.
class MembersJobTest : public ::testing::Test {
 protected:
  testing::TempDir folder_;
  MembersJob job_{kFew, folder_.path()};
};

TEST_F(MembersJobTest, EverybodyJoins) {
  EXPECT_EQ(job_.served(), kFew.partitions);
  EXPECT_TRUE(job_.EveryWorkerHasTheMap());
}

TEST_F(MembersJobTest, MembersAskNoMoreOftenThanTheRealOnes) {
  const MembersPhase phase = job_.Steady(std::chrono::seconds(10));
  EXPECT_GE(phase.costs.calls, 5 + 3u);
  // Every 500 and 200 ms, and once at the beginning; a turn that takes long puts them off.
  EXPECT_LE(phase.costs.calls, 5 * 21 + 3 * 51u);
}

TEST_F(MembersJobTest, ShardsAreDoneUntilSnapshotsCommitThem) {
  job_.Finish(20);
  EXPECT_GE(job_.done(), 20u);
  job_.Steady(std::chrono::seconds(30));
  EXPECT_EQ(job_.done(), 0u);
}

TEST_F(MembersJobTest, AServerComesBack) {
  job_.Finish(20);
  const MembersJob::Restart restart = job_.RestartServers(1, 1);
  EXPECT_EQ(job_.served(), kFew.partitions);
  EXPECT_TRUE(job_.EveryWorkerHasTheMap());
  EXPECT_EQ(job_.done(), 0u);  // none of them was in a snapshot
  // There is no newer map while it is away; then everybody gets one.
  EXPECT_GT(restart.back.costs.reply_bytes, restart.away.costs.reply_bytes);
}

TEST_F(MembersJobTest, AllServersComeBack) {
  job_.RestartServers(0, 3);
  EXPECT_EQ(job_.served(), kFew.partitions);
  EXPECT_TRUE(job_.EveryWorkerHasTheMap());
}

TEST_F(MembersJobTest, TheNextMasterGoesOn) {
  job_.Finish(20);
  job_.RestartMaster();
  EXPECT_GE(job_.done(), 20u);
  EXPECT_EQ(job_.served(), kFew.partitions);
  job_.RestartServers(2, 1);
  EXPECT_TRUE(job_.EveryWorkerHasTheMap());
}

}  // namespace
}  // namespace muster
