#include "master/group_core/membership.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/master/group_core/parts.h"

namespace muster {
namespace {

using std::chrono::milliseconds;
using ::testing::Contains;
using ::testing::ElementsAre;
using testing::GroupParts;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<GroupProcess> Named(std::vector<uint64_t> numbers) {
  std::vector<GroupProcess> named;
  for (const uint64_t i : numbers) named.push_back(GroupParts::Named(i));
  return named;
}

TEST(MembershipTest, TheStepGoesOnWithoutTheLost) {
  GroupParts parts;
  parts.Begin(3);
  parts.membership.DropLost(parts.now);
  EXPECT_EQ(parts.books.members, Named({0, 1, 2}));
  parts.membership.NoteLoss(GroupParts::Named(1), "its process has ended");
  parts.books.processes.Bury("worker-1", 11);
  parts.membership.DropLost(parts.now);
  EXPECT_EQ(parts.books.members, Named({0, 2}));
  EXPECT_EQ(parts.books.lineage.attempt(), AttemptNumber(2));
  EXPECT_THAT(parts.data.events, Contains(HasSubstr("attempt 2 of step 1: 2 members: worker-0, "
                                                    "worker-2 (worker-1: its process has ended)")));
}

TEST(MembershipTest, WhoSaysFarewellIsOutAtOnceAndMayComeBack) {
  GroupParts parts;
  parts.Begin(2);
  GroupExchangeRequest farewell;
  farewell.gone = true;
  parts.Hear(1, farewell);
  parts.membership.DropLost(parts.now);
  parts.membership.Place("");
  EXPECT_EQ(parts.books.members, Named({0}));
  EXPECT_THAT(parts.data.events, Contains(HasSubstr("worker-1: its trainer has left the group")));
  const Process& process = *parts.books.processes.Find(GroupParts::Named(1));
  EXPECT_EQ(process.standing, GroupStanding::kUnknown) << "it must introduce itself again";
  GroupExchangeRequest again;
  again.introduction = GroupIntroduction{testing::kModel, 7, {"unix:/again"}};
  parts.Hear(1, again);
  parts.membership.Place("");
  EXPECT_EQ(process.standing, GroupStanding::kLearner);
}

TEST(MembershipTest, AnEventSaysThatTooFewAreLeft) {
  GroupParts parts({.members_min = 2});
  parts.Begin(2);
  parts.membership.Without({{GroupParts::Named(1), "its process has ended"}}, "");
  EXPECT_THAT(parts.data.events, Contains(HasSubstr("1 member: worker-0 (worker-1: its process has "
                                                    "ended); a step needs 2 (spec.group.min")));
}

TEST(MembershipTest, WhoLacksTheNewestStepIsOut) {
  GroupParts parts;
  parts.Begin(2);
  parts.DoStep();
  // It voted, so it had the sum; now it has neither.
  parts.Hear(0, parts.Holding(1));
  parts.membership.DropLost(parts.now);
  EXPECT_EQ(parts.books.members, Named({1}));
}

TEST(MembershipTest, WhoHasTheSumOfTheNewestStepStays) {
  GroupParts parts;
  parts.Begin(2);
  parts.DoStep();
  parts.membership.DropLost(parts.now);
  EXPECT_EQ(parts.books.members, Named({0, 1})) << "they have voted, and not applied";
}

TEST(MembershipTest, MembersLeaveBetweenSteps) {
  GroupParts parts;
  parts.Begin(2);
  GroupExchangeRequest leaving = parts.Holding();
  leaving.leaving = true;
  parts.Hear(1, leaving);
  parts.membership.DropLost(parts.now);
  EXPECT_EQ(parts.books.members, Named({0, 1}));
  parts.membership.ChangeBetweenSteps(false, parts.now);
  EXPECT_EQ(parts.books.members, Named({0}));
}

TEST(MembershipTest, TheLastMembersStayUntilTheirStateIsStored) {
  GroupParts parts;
  parts.Begin(1);
  parts.DoStep();
  GroupExchangeRequest leaving = parts.Holding();
  leaving.leaving = true;
  parts.Hear(0, leaving);
  parts.membership.ChangeBetweenSteps(true, parts.now);
  EXPECT_EQ(parts.books.members, Named({0}));
  parts.books.lineage.Accept({{LineageNumber(1), StepNumber(1)}, {}});
  parts.membership.ChangeBetweenSteps(false, parts.now);
  EXPECT_THAT(parts.books.members, IsEmpty());
}

class JoinTest : public ::testing::Test {
 protected:
  JoinTest() : parts({.members_max = 2}) {
    parts.Begin(1);
    parts.Hear(1);
    parts.membership.Place("");
    EXPECT_EQ(Standing(1), GroupStanding::kLearner);
    parts.captures.Ask(parts.now);  // for the learner
    GroupExchangeRequest holder = parts.Holding();
    holder.capture = HeldCapture{*holder.state, 1, {0, 8, 1, ""}};
    parts.Hear(0, holder);
    parts.captures.Take(parts.now);
    EXPECT_FALSE(parts.captures.pending());
  }
  GroupStanding Standing(uint64_t i) {
    return parts.books.processes.Find(GroupParts::Named(i))->standing;
  }
  GroupParts parts;
};

TEST_F(JoinTest, ALearnerJoinsWithAStepAlthoughItLacksItsSum) {
  parts.DoStep();
  parts.Hear(1, parts.Holding(1));
  parts.membership.ChangeBetweenSteps(true, parts.now);
  EXPECT_EQ(parts.books.members, Named({0, 1}));
  parts.membership.DropLost(parts.now);
  EXPECT_EQ(parts.books.members, Named({0, 1})) << "it fetches the sum";
  parts.Pass(2 * parts.books.options.silence_limit);
  parts.membership.DropLost(parts.now);
  EXPECT_EQ(parts.books.members, Named({0})) << "but not for ever";
}

TEST_F(JoinTest, WhoGetsOnMayTakeAsLongAsItNeeds) {
  parts.DoStep();
  GroupExchangeRequest call = parts.Holding(1);
  parts.Hear(1, call);
  parts.membership.ChangeBetweenSteps(true, parts.now);
  const auto rests = [&] {
    parts.Pass(2 * parts.books.options.silence_limit - milliseconds(1));
    parts.membership.DropLost(parts.now);
    EXPECT_EQ(parts.books.members, Named({0, 1}));
  };
  rests();
  for (int i = 0; i < 10; ++i) {
    ++call.moved;
    parts.Hear(1, call);
    rests();
  }
  call.phase = MemberPhase::kApplying;
  for (int i = 0; i < 10; ++i) {
    parts.Hear(1, call);
    rests();
  }
  // The sum that it lacks is to be had when another one has applied it.
  call.phase = MemberPhase::kLearning;
  parts.Hear(1, call);
  GroupExchangeRequest other = parts.Holding();
  other.phase = MemberPhase::kApplying;
  parts.Hear(0, other);
  for (int i = 0; i < 10; ++i) rests();
  other.phase = MemberPhase::kIdle;
  parts.Hear(0, other);
  parts.Pass(2 * parts.books.options.silence_limit);
  parts.membership.DropLost(parts.now);
  EXPECT_EQ(parts.books.members, Named({0}));
}

TEST_F(JoinTest, AMemberThatHasCaughtUpIsLikeAllOthers) {
  parts.DoStep();
  parts.Hear(1, parts.Holding(1));
  parts.membership.ChangeBetweenSteps(true, parts.now);
  parts.Hear(1, parts.Holding());
  parts.membership.DropLost(parts.now);
  EXPECT_FALSE(parts.books.processes.Find(GroupParts::Named(1))->catches_up.has_value());
  EXPECT_EQ(parts.books.members, Named({0, 1}));
}

TEST_F(JoinTest, WhoLacksMoreThanTwoStepsLearnsOn) {
  for (int i = 0; i < 3; ++i) parts.DoStep();
  parts.Hear(1, parts.Holding(3));
  parts.membership.ChangeBetweenSteps(true, parts.now);
  EXPECT_EQ(parts.books.members, Named({0}));
  parts.Hear(1, parts.Holding(2));
  parts.membership.ChangeBetweenSteps(true, parts.now);
  EXPECT_EQ(parts.books.members, Named({0, 1}));
}

TEST_F(JoinTest, WhoLacksASumThatNobodyKeepsLearnsOn) {
  parts.DoStep();
  parts.captures.Drop();
  parts.captures.Ask(parts.now);
  ASSERT_EQ(parts.captures.KeptSince(), StepNumber(1));
  GroupExchangeRequest holder = parts.Holding();
  holder.capture = HeldCapture{*holder.state, 1, {0, 8, 1, ""}};
  parts.Hear(0, holder);
  parts.captures.Take(parts.now);
  parts.DoStep();
  parts.Hear(1, parts.Holding(2));
  parts.membership.ChangeBetweenSteps(true, parts.now);
  EXPECT_EQ(parts.books.members, Named({0})) << "the sum of step 1 is gone";
  parts.Hear(1, parts.Holding(1));
  parts.membership.ChangeBetweenSteps(true, parts.now);
  EXPECT_EQ(parts.books.members, Named({0, 1}));
}

TEST_F(JoinTest, NoCaptureDropsTheSumThatAMemberStillFetches) {
  parts.DoStep();
  parts.Hear(1, parts.Holding(1));
  parts.membership.ChangeBetweenSteps(true, parts.now);
  ASSERT_EQ(parts.books.members, Named({0, 1}));
  parts.Pass(parts.books.options.checkpoint_interval);
  parts.captures.Ask(parts.now);
  EXPECT_TRUE(parts.captures.KeepsSums());
  ASSERT_TRUE(parts.captures.asked().has_value());
  EXPECT_EQ(parts.captures.asked()->step, StepNumber(0)) << "members keep the sums after it";
  parts.Hear(1, parts.Holding());
  parts.membership.DropLost(parts.now);
  parts.captures.Ask(parts.now);
  EXPECT_EQ(parts.captures.asked()->step, StepNumber(1)) << "it has caught up";
}

TEST_F(JoinTest, WithoutAStepOnlyWhoLacksNothingJoins) {
  parts.DoStep();
  parts.Hear(1, parts.Holding(1));
  parts.membership.ChangeBetweenSteps(false, parts.now);
  EXPECT_EQ(parts.books.members, Named({0}));
  parts.Hear(1, parts.Holding());
  parts.membership.ChangeBetweenSteps(false, parts.now);
  EXPECT_EQ(parts.books.members, Named({0, 1}));
}

TEST_F(JoinTest, NobodyJoinsWhileACaptureBegins) {
  parts.DoStep();
  parts.Hear(1, parts.Holding());
  parts.captures.Drop();
  parts.captures.Ask(parts.now);
  ASSERT_TRUE(parts.captures.pending());
  parts.membership.ChangeBetweenSteps(true, parts.now);
  EXPECT_EQ(parts.books.members, Named({0}));
}

TEST_F(JoinTest, AFullGroupLetsOthersWait) {
  parts.Hear(2);
  parts.membership.Place("");
  EXPECT_EQ(Standing(1), GroupStanding::kLearner);
  EXPECT_EQ(Standing(2), GroupStanding::kWaiting);
  EXPECT_THAT(parts.books.processes.Find(GroupParts::Named(2))->waits,
              HasSubstr("may have no more"));
}

TEST_F(JoinTest, AnEvictedOneWaits) {
  Process& evicted = *parts.books.processes.Find(GroupParts::Named(1));
  evicted.evicted_until = parts.now + milliseconds(1);
  const uint64_t news = evicted.news;
  parts.membership.Place("");
  EXPECT_EQ(Standing(1), GroupStanding::kWaiting);
  EXPECT_GT(evicted.news, news);
  const uint64_t same = evicted.news;
  parts.membership.Place("");
  EXPECT_EQ(evicted.news, same) << "nothing new";
}

}  // namespace
}  // namespace muster
