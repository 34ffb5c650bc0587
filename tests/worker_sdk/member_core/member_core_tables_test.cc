#include "tests/worker_sdk/member_core/member_core_fixture.h"

namespace muster::sdk {
namespace {

/// A member whose minibatches push to tables.
class MemberCoreTablesTest : public MemberCoreTest {
 protected:
  GroupExchangeReply Replay(uint64_t attempt, uint64_t begun, std::vector<MinibatchSpan> share) {
    GroupExchangeReply reply = Member(attempt, 0, 0, std::move(share));
    reply.work->replay = true;
    reply.work->token = LeaseToken(MasterIncarnation(1), 10 * begun + attempt);
    reply.work->begun = LeaseToken(MasterIncarnation(1), 10 * begun);
    return reply;
  }
  void Push(std::vector<uint32_t> minibatches, uint64_t pushed_under) {
    ASSERT_EQ(core_.NextTask().kind, Kind::kCompute);
    const StepRunNumber run = core_.run();
    for (const uint32_t i : minibatches) {
      ASSERT_TRUE(core_.StartMinibatch(run, MinibatchIndex(i)));
      core_.OnMinibatch(run, MinibatchIndex(i), kTook);
    }
    core_.OnComputed(run, {.records = minibatches.size()}, RestoreEpoch(pushed_under));
  }
};

TEST_F(MemberCoreTablesTest, AVoteNamesTheOldestMapOfItsPushes) {
  core_.OnReply(Member(1, 0, 0, {{MinibatchIndex(0), 1}}));
  Push({0}, 4);
  // The share grows, and the rest is pushed after a restore.
  core_.OnReply(Member(2, 0, 0, kTwo));
  Push({1}, 5);
  core_.OnSum(AttemptNumber(2), StepNumber(1), 77);
  EXPECT_EQ(core_.Request().sum->pushed_under, RestoreEpoch(4));
}

TEST_F(MemberCoreTablesTest, AReplayHasNoSumAndChangesNoState) {
  core_.OnReply(Replay(1, 1, kTwo));
  const TrainerTask task = core_.NextTask();
  EXPECT_TRUE(task.work.replay);
  EXPECT_FALSE(core_.WantedSums().has_value());
  EXPECT_FALSE(core_.Request().replayed.has_value());
  Push({0, 1}, 3);
  EXPECT_TRUE(core_.request_changed());
  const GroupExchangeRequest request = core_.Request();
  EXPECT_EQ(request.replayed,
            (ReplayedShard{LeaseToken(MasterIncarnation(1), 11), RestoreEpoch(3)}));
  EXPECT_FALSE(request.sum.has_value());
  EXPECT_EQ(core_.phase(), MemberPhase::kVoted);
  EXPECT_EQ(core_.NextTask().kind, Kind::kWait);
  // The next work is the step itself.
  core_.OnReply(Member(1, 0, 0, kTwo));
  EXPECT_FALSE(core_.Request().replayed.has_value());
  EXPECT_EQ(core_.state(), Label(1, 0));
  EXPECT_EQ(core_.NextTask().spans, kTwo) << "nothing of it is computed";
}

TEST_F(MemberCoreTablesTest, WhatWasReplayedStaysOverTheAttempts) {
  core_.OnReply(Replay(1, 1, {{MinibatchIndex(0), 1}}));
  Push({0}, 3);
  core_.OnReply(Replay(2, 1, kTwo));
  EXPECT_FALSE(core_.Request().replayed.has_value());
  Push({1}, 4);
  EXPECT_EQ(core_.Request().replayed,
            (ReplayedShard{LeaseToken(MasterIncarnation(1), 12), RestoreEpoch(3)}));
}

/// A partition was restored meanwhile, so the same minibatches are to be pushed once more.
TEST_F(MemberCoreTablesTest, AnotherReplayOfTheSameShardBeginsAnew) {
  core_.OnReply(Replay(1, 1, kTwo));
  Push({0, 1}, 3);
  core_.OnReply(Replay(1, 2, kTwo));
  EXPECT_FALSE(core_.Request().replayed.has_value());
  Push({0, 1}, 4);
  EXPECT_EQ(core_.Request().replayed->pushed_under, RestoreEpoch(4));
}

TEST_F(MemberCoreTablesTest, AReplayFailsUntilItIsReported) {
  core_.OnReply(Replay(1, 1, kTwo));
  const StepRunNumber run = core_.run();
  core_.OnTrainerFailed(run, "why", /*fatal=*/false);
  EXPECT_EQ(core_.Request().failed->reason, "why");
  core_.OnReply(Replay(2, 1, kTwo));
  Push({0, 1}, 3);
  core_.OnTrainerFailed(core_.run(), "late", /*fatal=*/false);
  EXPECT_FALSE(core_.Request().failed.has_value());
}

}  // namespace
}  // namespace muster::sdk
