#include "master/group_core/answers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/master/group_core/parts.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using testing::GroupParts;
using testing::GroupShard;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class AnswersTest : public ::testing::Test {
 protected:
  void Number() {
    parts.membership.Place(parts.forming.waits());
    answers.Number(parts.forming, &parts.books.news);
  }
  uint64_t News(uint64_t i) { return answers.NewsFor(GroupParts::Named(i)); }
  GroupParts parts;
  Answers answers{&parts.books, &parts.work, &parts.captures, &parts.suspicions};
};

TEST_F(AnswersTest, NewsGrowsWithEveryChangeAndOnlyThen) {
  EXPECT_EQ(News(0), 0u) << "not known";
  parts.Begin(2);
  Number();
  uint64_t before = News(0);
  Number();
  EXPECT_EQ(News(0), before);
  const auto grows = [&](const char* what) {
    Number();
    EXPECT_GT(News(0), before) << what;
    before = News(0);
    Number();
    EXPECT_EQ(News(0), before) << what;
  };
  parts.work.Begin();
  grows("a step in work");
  parts.DoStep();
  grows("a step that has happened");
  parts.membership.Retry("test");
  grows("an attempt");
  parts.Hear(2);
  parts.membership.Place("");
  parts.captures.Ask(parts.now);
  grows("a capture for a learner, so sums are kept");
  parts.data.over = true;
  grows("the end of the job");
}

TEST_F(AnswersTest, AMemberGetsItsShare) {
  parts.Begin(2);
  parts.work.Begin();
  Number();
  const GroupExchangeReply reply = answers.For(GroupParts::Named(1));
  EXPECT_EQ(reply.standing, GroupStanding::kMember);
  EXPECT_EQ(reply.rank, 1u);
  EXPECT_EQ(reply.master_incarnation, MasterIncarnation(2));
  ASSERT_THAT(reply.members, SizeIs(2));
  EXPECT_EQ(reply.members[0].addresses, std::vector<std::string>{"unix:/worker-0"});
  ASSERT_TRUE(reply.work.has_value());
  EXPECT_EQ(reply.work->step, StepNumber(1));
  EXPECT_EQ(reply.work->shard, GroupShard(0));
  EXPECT_EQ(reply.work->share.spans, (std::vector<MinibatchSpan>{{MinibatchIndex(3), 3}}));
  EXPECT_TRUE(reply.initial_is_base);
  EXPECT_FALSE(reply.keep_sums);
}

TEST_F(AnswersTest, TheStatesOfTwoMembersAreCheckedAndThatOfOneIsNot) {
  for (const uint64_t count : {1, 2}) {
    GroupParts of;
    Answers told{&of.books, &of.work, &of.captures, &of.suspicions};
    of.Begin(count);
    const auto check = [&] {
      of.work.Begin();
      return told.For(GroupParts::Named(0)).work->check;
    };
    EXPECT_FALSE(check()) << "of the initial state";
    of.DoStep();
    EXPECT_EQ(check(), count == 2);
    of.DoStep();
    of.DoStep();
    EXPECT_FALSE(check()) << "not of every step";
  }
}

TEST_F(AnswersTest, ACommitTellsTheRecordsOfTheStep) {
  parts.Begin(2);
  parts.DoStep();
  Number();
  EXPECT_EQ(answers.For(GroupParts::Named(1)).step_records, 20u);
}

TEST_F(AnswersTest, AMemberIsToldOfTheOthersUntilItWorksForTheAttempt) {
  parts.Begin(2);
  parts.work.Begin();
  Number();
  EXPECT_THAT(answers.For(GroupParts::Named(1)).members, SizeIs(2));
  parts.Hear(1, parts.Holding());
  EXPECT_THAT(answers.For(GroupParts::Named(1)).members, IsEmpty());
  parts.membership.Retry("test");
  Number();
  EXPECT_THAT(answers.For(GroupParts::Named(1)).members, SizeIs(2));
}

TEST_F(AnswersTest, AnUnknownProcessMustIntroduceItself) {
  parts.Begin(1);
  parts.Hear(1).introduction.reset();
  Number();
  const GroupExchangeReply reply = answers.For(GroupParts::Named(1));
  EXPECT_EQ(reply.standing, GroupStanding::kUnknown);
  EXPECT_THAT(reply.members, IsEmpty());
  EXPECT_GT(reply.news, 0u);
}

TEST_F(AnswersTest, ALearnerGetsTheSourceAndNoWork) {
  parts.Begin(1);
  parts.Hear(1);
  Number();
  parts.captures.Ask(parts.now);
  GroupExchangeRequest holder = parts.Holding();
  holder.capture = HeldCapture{*holder.state, 1, {0, 8, 5, ""}};
  parts.Hear(0, holder);
  parts.captures.Take(parts.now);
  parts.work.Begin();
  Number();
  const GroupExchangeReply reply = answers.For(GroupParts::Named(1));
  EXPECT_EQ(reply.standing, GroupStanding::kLearner);
  EXPECT_TRUE(reply.source.has_value());
  EXPECT_FALSE(reply.work.has_value());
  EXPECT_FALSE(reply.capture.has_value());
  EXPECT_THAT(reply.members, SizeIs(1)) << "they have the sums";
  const GroupExchangeReply of_member = answers.For(GroupParts::Named(0));
  EXPECT_TRUE(of_member.capture.has_value());
  EXPECT_FALSE(of_member.source.has_value());
  EXPECT_TRUE(of_member.keep_sums);
}

TEST_F(AnswersTest, TheFormerMembersOfACaptureAreAskedAndNoOthers) {
  parts.Begin(1);
  parts.Hear(1);
  Number();
  parts.captures.Ask(parts.now);
  GroupExchangeRequest holder = parts.Holding();
  holder.capture = HeldCapture{*holder.state, 1, {0, 8, 5, ""}};
  parts.Hear(0, holder);
  parts.captures.Take(parts.now);
  parts.Hear(1, parts.Holding());
  parts.membership.ChangeBetweenSteps(false, parts.now);
  ASSERT_THAT(parts.books.members, SizeIs(2));
  Number();
  EXPECT_TRUE(answers.For(GroupParts::Named(0)).capture.has_value());
  EXPECT_FALSE(answers.For(GroupParts::Named(1)).capture.has_value());
}

TEST_F(AnswersTest, ItSaysWhyNothingIsInWork) {
  parts.data.closed = true;
  parts.Begin(1);
  Number();
  EXPECT_THAT(answers.For(GroupParts::Named(0)).waits, HasSubstr("no shard"));
  EXPECT_THAT(answers.Show().waits, HasSubstr("no shard"));
  EXPECT_EQ(answers.Show().shard, std::nullopt);
}

TEST_F(AnswersTest, TheViewShowsWhoDoesWhat) {
  parts.Begin(2);
  parts.work.Begin();
  parts.Hear(2);
  Number();
  const GroupCore::View view = answers.Show();
  EXPECT_EQ(view.shard, GroupShard(0));
  ASSERT_THAT(view.processes, SizeIs(3));
  EXPECT_EQ(view.processes[1].rank, 1u);
  EXPECT_EQ(view.processes[1].share, 3u);
  EXPECT_EQ(view.processes[2].standing, GroupStanding::kLearner);
  EXPECT_EQ(view.processes[2].share, 0u);
}

TEST_F(AnswersTest, TheViewShowsWhoIsSuspected) {
  parts.Begin(3);
  GroupExchangeRequest call = parts.Holding();
  call.suspected = {{"worker-2", 12, "connection reset"}};
  parts.Hear(0, call);
  Number();
  EXPECT_FALSE(answers.Show().processes[2].suspected);
  parts.suspicions.Take(parts.now);
  const GroupCore::View view = answers.Show();
  EXPECT_FALSE(view.processes[0].suspected) << "it accuses";
  EXPECT_TRUE(view.processes[2].suspected);
}

TEST_F(AnswersTest, TheGroupAwaitsWhoHasNotDoneItsPart) {
  parts.Begin(2);
  parts.work.Begin();
  const auto awaited = [&](MemberPhase first, MemberPhase second) {
    for (const uint64_t i : {0, 1}) {
      parts.books.processes.Find(GroupParts::Named(i))->report.phase = i == 0 ? first : second;
    }
    std::vector<bool> found;
    for (const GroupCore::ProcessView& process : answers.Show().processes) {
      found.push_back(process.awaited);
    }
    return found;
  };
  using enum MemberPhase;
  EXPECT_THAT(awaited(kComputing, kComputing), ElementsAre(true, true));
  EXPECT_THAT(awaited(kComputing, kReducing), ElementsAre(true, false)) << "it waits for the other";
  EXPECT_THAT(awaited(kReducing, kReducing), ElementsAre(false, false)) << "they add together";
  EXPECT_THAT(awaited(kReducing, kVoted), ElementsAre(true, false));
  EXPECT_THAT(awaited(kVoted, kVoted), ElementsAre(false, false));
  EXPECT_THAT(awaited(kVoted, kApplying), ElementsAre(false, true));
  parts.work.Pause();
  EXPECT_THAT(awaited(kComputing, kApplying), ElementsAre(false, true)) << "no step is in work";
}

TEST_F(AnswersTest, ALearnerIsAwaitedWhileItHasSomethingToDo) {
  parts.Begin(1);
  Process& learner = parts.Hear(1);
  learner.standing = GroupStanding::kLearner;
  using enum MemberPhase;
  for (const MemberPhase phase : {kIdle, kLearning, kComputing, kApplying}) {
    learner.report.phase = phase;
    EXPECT_EQ(answers.Show().processes[1].awaited, phase != kIdle) << static_cast<int>(phase);
  }
  learner.report.unreadable = UnreadableState{1, "cannot open /x"};
  EXPECT_FALSE(answers.Show().processes[1].awaited) << "another process could not read it either";
  learner.standing = GroupStanding::kWaiting;
  EXPECT_FALSE(answers.Show().processes[1].awaited);
}

}  // namespace
}  // namespace muster
