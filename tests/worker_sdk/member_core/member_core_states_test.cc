// What a member tells of its state, so that the master can compare it with that of the others.
#include "tests/worker_sdk/member_core/member_core_fixture.h"

namespace muster::sdk {
namespace {

class MemberCoreStatesTest : public MemberCoreTest {
 protected:
  /// Step 1 is in the state, and the vote for step 2 comes with a digest.
  void ApplyStepOne() {
    VoteOnStepOne();
    core_.OnReply(Checked(1, 1, 1));
    ASSERT_EQ(core_.NextTask().kind, Kind::kApply);
    EXPECT_FALSE(Effects().digest.has_value());
    core_.OnApplied();
  }
  GroupExchangeReply Checked(uint64_t attempt, uint64_t step, uint64_t step_attempt) {
    GroupExchangeReply reply = Member(attempt, step, step_attempt, kTwo);
    reply.work->check = true;
    return reply;
  }
  GroupExchangeReply Refused() {
    GroupExchangeReply reply = Reply(++news_, GroupStanding::kWaiting);
    reply.lineage = LineageNumber(1);
    reply.attempt = AttemptNumber(2);
    reply.members = {{"b", 2, {}}};
    reply.step = StepNumber(1);
    reply.drop_state = true;
    return reply;
  }
  GroupExchangeReply Source() {
    GroupExchangeReply reply = Learner(1);
    reply.source = StateSource{Label(1, 1), {{0, 8, 1, ""}}, {{"b", 2, {}}}};
    return reply;
  }
};

TEST_F(MemberCoreStatesTest, AVoteWaitsForTheDigestOfTheStateBeforeTheStep) {
  ApplyStepOne();
  ASSERT_TRUE(Effects().digest.has_value());
  ASSERT_EQ(core_.NextTask().kind, Kind::kCompute);
  Compute({0, 1});
  core_.OnSum(AttemptNumber(1), StepNumber(2), 78);
  EXPECT_FALSE(core_.Request().sum.has_value());
  EXPECT_EQ(TakeDigest(), Label(1, 1));
  EXPECT_FALSE(TakeDigest().has_value()) << "it is being made";
  core_.OnDigest(99);
  const GroupExchangeRequest vote = core_.Request();
  EXPECT_TRUE(vote.sum.has_value());
  EXPECT_EQ(vote.digest, (StateDigest{Label(1, 1), 99}));
  EXPECT_FALSE(Effects().digest.has_value());
}

TEST_F(MemberCoreStatesTest, ADigestAloneSupersedesNoCall) {
  ApplyStepOne();
  core_.Request();
  ASSERT_TRUE(TakeDigest().has_value());
  core_.OnDigest(99);
  EXPECT_FALSE(core_.request_changed());
}

TEST_F(MemberCoreStatesTest, ADigestServesTheNextAttemptAndTheCopy) {
  ApplyStepOne();
  ASSERT_TRUE(TakeDigest().has_value());
  core_.OnDigest(99);
  GroupExchangeReply reply = Checked(2, 1, 1);
  reply.capture = StateCapture{StepNumber(1), AttemptNumber(2), 2, ""};
  core_.OnReply(reply);
  EXPECT_FALSE(Effects().digest.has_value());
  const std::optional<CaptureOrder> order = TakeCapture();
  ASSERT_TRUE(order.has_value());
  EXPECT_FALSE(order->digest);
  core_.OnCaptured({0, 8, 1, ""});
  EXPECT_EQ(core_.Request().capture->digest, 99u);
}

TEST_F(MemberCoreStatesTest, ACopyIsMadeWithADigestThatServesTheVote) {
  VoteOnStepOne();
  GroupExchangeReply reply = Checked(1, 1, 1);
  reply.capture = StateCapture{StepNumber(1), AttemptNumber(1), 2, ""};
  core_.OnReply(reply);
  ASSERT_EQ(core_.NextTask().kind, Kind::kApply);
  core_.OnApplied();
  const std::optional<CaptureOrder> order = TakeCapture();
  ASSERT_TRUE(order.has_value());
  EXPECT_TRUE(order->digest);
  EXPECT_FALSE(Effects().digest.has_value()) << "one at a time";
  core_.OnCaptured({0, 8, 1, ""}, 99);
  EXPECT_FALSE(Effects().digest.has_value());
  EXPECT_EQ(core_.Request().capture->digest, 99u);
  EXPECT_EQ(core_.Request().digest, (StateDigest{Label(1, 1), 99}));
}

TEST_F(MemberCoreStatesTest, ACopyOfTheOnlyMemberNeedsNoDigest) {
  VoteOnStepOne();
  GroupExchangeReply reply = Member(1, 1, 1, kTwo);
  reply.capture = StateCapture{StepNumber(1), AttemptNumber(1), 1, ""};
  core_.OnReply(reply);
  ASSERT_EQ(core_.NextTask().kind, Kind::kApply);
  core_.OnApplied();
  EXPECT_FALSE(TakeCapture()->digest);
}

TEST_F(MemberCoreStatesTest, AStateThatDiffersIsDroppedAndLearned) {
  ApplyStepOne();
  ASSERT_TRUE(TakeDigest().has_value());
  core_.OnDigest(98);
  core_.OnReply(Refused());
  EXPECT_FALSE(core_.state().has_value());
  EXPECT_TRUE(core_.request_changed());
  EXPECT_FALSE(core_.Request().digest.has_value());
  // It learns the same state, and the old digest is not that of the new one.
  core_.OnReply(Source());
  EXPECT_EQ(core_.NextTask().kind, Kind::kWait);
  ASSERT_TRUE(TakeTransfer().has_value());
  core_.OnStateCopied(Label(1, 1));
  EXPECT_EQ(core_.state(), Label(1, 1));
  core_.OnReply(Checked(3, 1, 1));
  EXPECT_TRUE(Effects().digest.has_value());
}

TEST_F(MemberCoreStatesTest, NoCopyOfADroppedStateIsHeld) {
  ApplyStepOne();
  GroupExchangeReply reply = Member(1, 1, 1, kTwo);
  reply.capture = StateCapture{StepNumber(1), AttemptNumber(1), 2, ""};
  core_.OnReply(reply);
  ASSERT_TRUE(TakeCapture().has_value());
  core_.OnReply(Refused());
  EXPECT_EQ(core_.NextTask().kind, Kind::kWait);
  EXPECT_FALSE(TakeTransfer().has_value());
  core_.OnCaptured({0, 8, 1, ""}, 98);
  EXPECT_FALSE(core_.Request().capture.has_value());
  EXPECT_FALSE(core_.Request().digest.has_value());
}

TEST_F(MemberCoreStatesTest, AStateOnItsWayToTheNextStepIsDroppedAfterIt) {
  VoteOnStepOne();
  core_.OnReply(Checked(1, 1, 1));
  ASSERT_EQ(core_.NextTask().kind, Kind::kApply);
  core_.OnReply(Refused());
  EXPECT_TRUE(core_.state().has_value());
  core_.OnApplied();
  EXPECT_FALSE(core_.state().has_value());
}

TEST_F(MemberCoreStatesTest, TheRecordsOfAStepAreThoseOfTheMaster) {
  VoteOnStepOne();
  GroupExchangeReply reply = Member(1, 1, 1, kTwo);
  reply.step_records = 9;
  core_.OnReply(reply);
  // What comes after the commit is not of this step.
  reply = Learner(2);
  reply.step_records = 5;
  core_.OnReply(reply);
  const TrainerTask task = core_.NextTask();
  ASSERT_EQ(task.kind, Kind::kApply);
  EXPECT_EQ(task.records, 9u) << "not the two that this member has read";
}

TEST_F(MemberCoreStatesTest, NothingChangesTheStateWhileADigestIsMade) {
  ApplyStepOne();
  ASSERT_TRUE(TakeDigest().has_value());
  // The others have gone on without it.
  GroupExchangeReply reply = Learner(2);
  reply.keep_sums = true;
  core_.OnReply(reply);
  EXPECT_EQ(core_.NextTask().kind, Kind::kWait);
  ASSERT_TRUE(TakeTransfer().has_value());
  core_.OnSumFetched(StepNumber(2));
  EXPECT_EQ(core_.NextTask().kind, Kind::kWait);
  reply.news = ++news_;
  reply.directive = JobDirective::kEnd;
  core_.OnReply(reply);
  EXPECT_EQ(core_.NextTask().kind, Kind::kWait) << "the trainer may free the memory at the end";
  core_.OnDigest(99);
  EXPECT_NE(core_.NextTask().kind, Kind::kWait);
}

}  // namespace
}  // namespace muster::sdk
