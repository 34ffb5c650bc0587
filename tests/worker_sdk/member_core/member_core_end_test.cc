#include "tests/worker_sdk/member_core/member_core_fixture.h"

/// How a process's part in the group ends.
namespace muster::sdk {
namespace {

TEST_F(MemberCoreTest, TheTrainerEndsWhenNobodyUsesItsMemory) {
  GroupExchangeReply learner = Learner(5);
  learner.source = StateSource{Label(1, 4), {}, {}};
  core_.OnReply(learner);
  ASSERT_TRUE(TakeTransfer().has_value());
  EXPECT_FALSE(Effects().stop_transfer);
  core_.Leave();
  EXPECT_TRUE(Effects().stop_transfer);
  EXPECT_EQ(core_.NextTask().kind, Kind::kWait);
  core_.OnTransferFailed(now_);
  EXPECT_EQ(core_.NextTask().kind, Kind::kEnd);
}

TEST_F(MemberCoreTest, TheTrainerEndsAfterTheCapture) {
  GroupExchangeReply reply = Member(1, 0, 0, kTwo);
  reply.capture = StateCapture{StepNumber(0), AttemptNumber(1), 2, ""};
  core_.OnReply(reply);
  ASSERT_TRUE(TakeCapture().has_value());
  reply.news = ++news_;
  reply.directive = JobDirective::kEnd;
  core_.OnReply(reply);
  EXPECT_EQ(core_.NextTask().kind, Kind::kWait);
  core_.OnCaptured({});
  EXPECT_EQ(core_.NextTask().kind, Kind::kEnd);
}

TEST_F(MemberCoreTest, LeavesAtTheEndOfItsMembership) {
  core_.OnReply(Member(1, 0, 0, kTwo));
  core_.Leave();
  EXPECT_TRUE(core_.Request().leaving);
  EXPECT_EQ(core_.NextTask().kind, Kind::kCompute);
  core_.OnReply(Reply(++news_, GroupStanding::kWaiting));
  EXPECT_EQ(core_.NextTask().kind, Kind::kEnd);
  EXPECT_EQ(core_.refused(), "");
}

TEST_F(MemberCoreTest, ARefusedProcessEndsWithTheReason) {
  GroupExchangeReply reply = Reply(++news_, GroupStanding::kRefused);
  reply.waits = "tensor \"w\" has other elements";
  core_.OnReply(reply);
  EXPECT_EQ(core_.NextTask().kind, Kind::kEnd);
  EXPECT_EQ(core_.refused(), reply.waits);
}

TEST_F(MemberCoreTest, OnlyTheStateAfterTheLastStepOfAJobThatIsOverIsFinal) {
  EXPECT_FALSE(core_.HasFinalState());
  VoteOnStepOne();
  GroupExchangeReply over = Member(1, 1, 1, {});
  over.work.reset();
  core_.OnReply(over);
  EXPECT_FALSE(core_.HasFinalState()) << "the step is not applied, and the job goes on";
  ASSERT_EQ(core_.NextTask().kind, Kind::kApply);
  core_.OnApplied();
  EXPECT_FALSE(core_.HasFinalState()) << "the job goes on";
  const auto told = [&](JobDirective directive, uint64_t step) {
    over.news = ++news_;
    over.directive = directive;
    over.step = StepNumber(step);
    over.standing = GroupStanding::kWaiting;
    over.members.clear();
    core_.OnReply(over);
    EXPECT_EQ(core_.NextTask().kind, Kind::kEnd);
    return core_.HasFinalState();
  };
  EXPECT_FALSE(told(JobDirective::kDrain, 1));
  EXPECT_FALSE(told(JobDirective::kEnd, 1)) << "the job has failed, or was cancelled";
  over.succeeded = true;
  EXPECT_TRUE(told(JobDirective::kEnd, 1));
  EXPECT_FALSE(told(JobDirective::kEnd, 2)) << "a learner that lacks a step";
}

/// A restarted master, which does not know the processes yet, says that the job has succeeded.
GroupExchangeReply EndByANewMaster() {
  GroupExchangeReply reply = Reply(1, GroupStanding::kUnknown);
  reply.master_incarnation = MasterIncarnation(2);
  reply.directive = JobDirective::kEnd;
  reply.succeeded = true;
  return reply;
}

TEST_F(MemberCoreTest, WithoutTheVoteOfAMemberItsStateIsTheFinalOne) {
  core_.OnReply(Member(1, 0, 0, kTwo));
  core_.OnReply(EndByANewMaster());
  EXPECT_TRUE(core_.HasFinalState());
}

TEST_F(MemberCoreTest, AStepThatAMemberHasVotedForMayBeMissingInItsState) {
  VoteOnStepOne();
  core_.OnReply(EndByANewMaster());
  EXPECT_FALSE(core_.HasFinalState());
}

}  // namespace
}  // namespace muster::sdk
