#include "master/group_core/votes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/master/group_core/parts.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using testing::GroupParts;
using testing::GroupShard;
using ::testing::HasSubstr;
using Outcome = Votes::Outcome;

class VotesTest : public ::testing::Test {
 protected:
  VotesTest() {
    parts.Begin(2);
    parts.work.Begin();
  }
  Outcome Count() {
    why.clear();
    return parts.votes.Count(&why);
  }
  GroupParts parts;
  std::string why;
};

TEST_F(VotesTest, AStepHappensWhenAllHaveItsSum) {
  parts.Hear(0, parts.Vote());
  EXPECT_EQ(Count(), Outcome::kOpen);
  const LeaseToken token = parts.work.token();
  parts.Hear(1, parts.Vote());
  EXPECT_EQ(Count(), Outcome::kHappened);
  EXPECT_EQ(parts.books.lineage.step(), StepNumber(1));
  EXPECT_EQ(parts.books.lineage.step_attempt(), AttemptNumber(1));
  EXPECT_THAT(parts.data.done, ElementsAre(0u));
  EXPECT_EQ(parts.data.records, 20u) << "of both members";
  EXPECT_EQ(parts.books.lineage.step_records(), 20u);
  EXPECT_FALSE(parts.work.any());
  EXPECT_NE(token, LeaseToken());
  EXPECT_EQ(Count(), Outcome::kOpen) << "the votes of the step are used up";
}

TEST_F(VotesTest, AVoteOfAnotherAttemptDoesNotCount) {
  const GroupExchangeRequest old = parts.Vote();
  parts.Hear(0, old);
  parts.membership.Retry("test");
  parts.Hear(1, parts.Vote());
  EXPECT_EQ(Count(), Outcome::kOpen);
  parts.Hear(0, parts.Vote());
  EXPECT_EQ(Count(), Outcome::kHappened);
}

TEST_F(VotesTest, AVoteWithoutTheStateDoesNotCount) {
  parts.Hear(0, parts.Vote());
  GroupExchangeRequest vote = parts.Vote();
  vote.state->lineage = LineageNumber(9);
  parts.Hear(1, vote);
  EXPECT_EQ(Count(), Outcome::kOpen);
}

TEST_F(VotesTest, DifferentSumsFailTheStepAndAtLastTheJob) {
  for (uint32_t i = 1; i <= Votes::kDifferMax; ++i) {
    EXPECT_FALSE(parts.data.over);
    parts.Hear(0, parts.Vote(1));
    parts.Hear(1, parts.Vote(0xab));
    EXPECT_EQ(Count(), Outcome::kFailed);
    EXPECT_THAT(why, HasSubstr("worker-0 has 00000001, worker-1 has 000000ab"));
    parts.membership.Retry(why);
  }
  EXPECT_TRUE(parts.data.over);
  EXPECT_THAT(parts.data.failed_with, HasSubstr("3 times in a row"));
  EXPECT_TRUE(parts.data.done.empty());
}

TEST_F(VotesTest, AStepInBetweenEndsTheRow) {
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 2; ++i) {
      parts.Hear(0, parts.Vote(1));
      parts.Hear(1, parts.Vote(2));
      EXPECT_EQ(Count(), Outcome::kFailed);
      parts.membership.Retry(why);
    }
    parts.DoStep();
    parts.work.Begin();
  }
  EXPECT_FALSE(parts.data.over);
}

TEST_F(VotesTest, AMemberThatFailsChargesTheShard) {
  GroupExchangeRequest failing = parts.Holding();
  failing.failed = FailedStep{parts.books.lineage.attempt(), StepNumber(1), "NaN in 'w'", false};
  parts.Hear(0, failing);
  parts.Hear(1, parts.Vote());
  EXPECT_EQ(Count(), Outcome::kFailed);
  EXPECT_THAT(why, HasSubstr("worker-0 failed the step: NaN in 'w'"));
  EXPECT_THAT(parts.data.charges, ElementsAre("worker-0: NaN in 'w'"));
  parts.membership.Retry(why);
  EXPECT_EQ(Count(), Outcome::kOpen) << "of another attempt";
  EXPECT_THAT(parts.data.charges, ElementsAre("worker-0: NaN in 'w'"));
}

TEST_F(VotesTest, AFatalFailureEndsTheJob) {
  GroupExchangeRequest failing = parts.Holding();
  failing.failed = FailedStep{parts.books.lineage.attempt(), StepNumber(1), "file changed", true};
  parts.Hear(1, failing);
  EXPECT_EQ(Count(), Outcome::kFailed);
  EXPECT_EQ(parts.data.failed_with, "worker-1: file changed");
  EXPECT_TRUE(parts.data.charges.empty());
}

TEST_F(VotesTest, AShardThatIsLostIsNotCommitted) {
  parts.Hear(0, parts.Vote());
  parts.Hear(1, parts.Vote());
  parts.data.states[0] = testing::FakeData::State::kFailed;
  EXPECT_EQ(Count(), Outcome::kFailed);
  EXPECT_EQ(parts.books.lineage.step(), StepNumber(0));
}

TEST_F(VotesTest, TheOldestMapOfAllVotesCounts) {
  for (const uint64_t i : {0, 1}) {
    GroupExchangeRequest vote = parts.Vote();
    vote.sum->pushed_under = RestoreEpoch(7 - i);
    parts.Hear(i, vote);
  }
  EXPECT_EQ(Count(), Outcome::kHappened);
  EXPECT_EQ(parts.data.newest_pushed_under, RestoreEpoch(6));
}

TEST_F(VotesTest, AVoterThatHasPushedNothingDoesNotCountForTheMap) {
  parts.Hear(0, parts.Vote());
  GroupExchangeRequest vote = parts.Vote();
  vote.sum->pushed_under = RestoreEpoch(7);
  parts.Hear(1, vote);
  EXPECT_EQ(Count(), Outcome::kHappened);
  EXPECT_EQ(parts.data.newest_pushed_under, RestoreEpoch(7));
}

/// The first shard is DONE, and a server has lost parts of it.
class ReplayVotesTest : public VotesTest {
 protected:
  ReplayVotesTest() {
    parts.DoStep();
    parts.data.lacking = {0};
    parts.data.restore_epoch = RestoreEpoch(3);
    parts.work.Begin();
  }
  GroupExchangeRequest Replayed(uint64_t pushed_under = 3) {
    GroupExchangeRequest call = parts.Holding();
    call.replayed = {parts.work.token(), RestoreEpoch(pushed_under)};
    return call;
  }
};

TEST_F(ReplayVotesTest, AReplayEndsWhenAllMembersHavePushed) {
  ASSERT_TRUE(parts.work.data().replay);
  EXPECT_EQ(parts.work.data().shard, GroupShard(0));
  parts.Hear(0, Replayed());
  EXPECT_EQ(Count(), Outcome::kOpen);
  EXPECT_TRUE(parts.work.any());
  parts.Hear(1, Replayed());
  EXPECT_EQ(Count(), Outcome::kOpen) << "no step has happened";
  EXPECT_FALSE(parts.work.any());
  EXPECT_THAT(parts.data.lacking, ElementsAre());
  EXPECT_EQ(parts.books.lineage.step(), StepNumber(1));
  EXPECT_EQ(parts.data.records, 20u) << "nothing is counted twice";
  parts.work.Begin();
  EXPECT_FALSE(parts.work.data().replay);
  EXPECT_EQ(Count(), Outcome::kOpen) << "the reports of the replay are no votes for the step";
}

TEST_F(ReplayVotesTest, AReplayThatAnotherRestoreUndoesBeginsAgain) {
  parts.Hear(0, Replayed());
  parts.Hear(1, Replayed(2));
  EXPECT_EQ(Count(), Outcome::kOpen);
  EXPECT_THAT(parts.data.lacking, ElementsAre(0u));
  const LeaseToken begun = parts.work.begun();
  parts.work.Begin();
  EXPECT_NE(parts.work.begun(), begun) << "members must not take it for the one before";
}

TEST_F(ReplayVotesTest, AReportOfAnotherAttemptDoesNotCount) {
  const LeaseToken begun = parts.work.begun();
  const GroupExchangeRequest old = Replayed();
  parts.Hear(0, old);
  parts.membership.Retry("test");
  EXPECT_TRUE(parts.work.data().replay);
  EXPECT_EQ(parts.work.begun(), begun);
  parts.Hear(1, Replayed());
  EXPECT_EQ(Count(), Outcome::kOpen);
  EXPECT_TRUE(parts.work.any());
  parts.Hear(0, Replayed());
  Count();
  EXPECT_FALSE(parts.work.any());
}

TEST_F(ReplayVotesTest, AMemberThatFailsTheReplayFailsTheAttempt) {
  GroupExchangeRequest call = parts.Holding();
  call.failed = {parts.books.lineage.attempt(), StepNumber(2), "NaN", false};
  parts.Hear(0, call);
  EXPECT_EQ(Count(), Outcome::kFailed);
  EXPECT_THAT(parts.data.charges, ElementsAre("worker-0: NaN"));
}

}  // namespace
}  // namespace muster
