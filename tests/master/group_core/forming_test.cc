#include "master/group_core/forming.h"

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
using testing::kModel;
using ::testing::SizeIs;

/// A process that knows what the core has said so far.
GroupExchangeRequest Heard(const GroupParts& parts, GroupExchangeRequest call) {
  call.master_incarnation = parts.books.incarnation;
  call.news = parts.books.news;
  return call;
}
GroupExchangeRequest At(uint64_t lineage, uint64_t step) {
  GroupExchangeRequest call;
  call.state = StateLabel{LineageNumber(lineage), StepNumber(step)};
  return call;
}
Process& Introduce(GroupParts& parts, uint64_t i, uint32_t digest,
                   std::vector<GroupTensor> tensors = kModel) {
  Process& process = parts.Hear(i);
  process.introduction = GroupIntroduction{std::move(tensors), digest, {}};
  return process;
}

TEST(FormingTest, TheGroupBeginsWhenEnoughHaveTheSameModel) {
  GroupParts parts({.members_min = 2});
  Introduce(parts, 1, 7);
  parts.forming.Advance(parts.now);
  EXPECT_FALSE(parts.books.lineage.begun());
  EXPECT_THAT(parts.forming.waits(), HasSubstr("waits for 1 more member"));
  Introduce(parts, 0, 5);
  parts.forming.Advance(parts.now);
  EXPECT_FALSE(parts.books.lineage.begun()) << "others may be on their way";
  parts.Pass(parts.books.options.join_wait);
  parts.forming.Advance(parts.now);
  ASSERT_TRUE(parts.books.lineage.begun());
  EXPECT_EQ(parts.books.lineage.number(), LineageNumber(1));
  EXPECT_EQ(parts.books.lineage.model().initial_digest, 5u) << "of the smallest name";
  EXPECT_THAT(parts.books.members, IsEmpty()) << "nobody has said that it has the state";
}

TEST(FormingTest, AFullGroupBeginsAtOnce) {
  GroupParts parts({.members_min = 1, .members_max = 2});
  Introduce(parts, 0, 7);
  Introduce(parts, 1, 7);
  parts.forming.Advance(parts.now);
  EXPECT_TRUE(parts.books.lineage.begun());
}

TEST(FormingTest, WithAllWorkersOfTheJobItBeginsAtOnce) {
  GroupParts parts({.members_max = 8});
  parts.data.workers = 2;
  parts.Hear(0);
  parts.forming.Advance(parts.now);
  EXPECT_FALSE(parts.books.lineage.begun()) << "another one comes";
  parts.Hear(1);
  parts.forming.Advance(parts.now);
  EXPECT_TRUE(parts.books.lineage.begun());
}

TEST(FormingTest, AnotherModelIsRefused) {
  GroupParts parts({.members_min = 2, .members_max = 2});
  Process& other = Introduce(parts, 0, 7, {{"w", GroupDtype::kFloat32, 11, false, 0}});
  Introduce(parts, 1, 7);
  Introduce(parts, 2, 7);
  parts.forming.Advance(parts.now);
  EXPECT_TRUE(parts.books.lineage.begun());
  EXPECT_EQ(other.refused,
            "its model is not that of the group: it has tensor 'w' of 11 float32 where the group "
            "has tensor 'w' of 10 float32");
  EXPECT_THAT(parts.data.events, Contains(HasSubstr("group-member-refused worker-0")));
  Process& later = Introduce(parts, 3, 7, {});
  parts.forming.CheckModel("worker-3", &later);
  EXPECT_THAT(later.refused, HasSubstr("it has 0 tensors and buckets, but the group 1"));
}

TEST(FormingTest, BucketsThatAnotherLibraryAddsAreAnotherModel) {
  GroupParts parts({.members_min = 2, .members_max = 2});
  const auto bucket = [](const char* backend) {
    return std::vector<GroupTensor>{{"g", GroupDtype::kFixedPoint, 9, true, 24, backend}};
  };
  Process& other = Introduce(parts, 0, 7, bucket("NCCL"));
  Introduce(parts, 1, 7, bucket(""));
  Introduce(parts, 2, 7, bucket(""));
  parts.forming.Advance(parts.now);
  EXPECT_EQ(other.refused,
            "its model is not that of the group: it has bucket 'g' of 9 fixed point with 24 bits "
            "after the point added by NCCL where the group has bucket 'g' of 9 fixed point with 24 "
            "bits after the point");
}

TEST(FormingTest, ThoseWithTheStateBecomeMembers) {
  GroupParts parts({.members_max = 2});
  Introduce(parts, 0, 7);
  Introduce(parts, 1, 7);
  parts.forming.Advance(parts.now);
  parts.Hear(0, At(1, 0));
  parts.forming.Advance(parts.now);
  EXPECT_THAT(parts.books.members, IsEmpty()) << "the other one is awaited";
  parts.Hear(1, At(1, 0));
  parts.forming.Advance(parts.now);
  EXPECT_THAT(parts.books.members, SizeIs(2));
}

/// The group of a master that has ended: two members, step 3, a checkpoint of step 1.
GroupRecords Records() {
  GroupRecords records;
  records.model = GroupModelRecord{kModel, 7};
  records.group = GroupRecord{
      LineageNumber(1), {}, AttemptNumber(4), {GroupParts::Named(0), GroupParts::Named(1)}};
  records.step = StepRecord{LineageNumber(1), StepNumber(3), AttemptNumber(4), 5, {}, 8};
  records.checkpoint =
      CheckpointRecord{{LineageNumber(1), StepNumber(1)}, {{0, 8, 5, "group/r1-s1-a1-0"}}};
  return records;
}
class ContinuedTest : public ::testing::Test {
 protected:
  ContinuedTest() {
    using State = testing::FakeData::State;
    parts.data.states = {State::kCommitted, State::kDone, State::kDone, State::kTodo};
    parts.data.done = {1, 2};
  }
  void Advance() { parts.forming.Advance(parts.now); }
  GroupParts parts{{}, Records()};
};

TEST_F(ContinuedTest, AMasterThatContinuesBumpsTheAttempt) {
  parts.Hear(0, At(1, 3));
  Advance();
  EXPECT_THAT(parts.books.members, IsEmpty());
  GroupExchangeRequest with_sum = At(1, 2);
  with_sum.sum = HeldSum{AttemptNumber(4), StepNumber(3), 5, {}};
  parts.Hear(1, with_sum);
  Advance();
  EXPECT_THAT(parts.books.members, ElementsAre(GroupParts::Named(0), GroupParts::Named(1)));
  EXPECT_EQ(parts.books.lineage.attempt(), AttemptNumber(5));
}

TEST_F(ContinuedTest, MembersThatLeaveComeBackToStoreTheirSteps) {
  for (const uint64_t i : {0, 1}) {
    GroupExchangeRequest leaves = Heard(parts, At(1, 3));
    leaves.leaving = true;
    parts.Hear(i, leaves);
    Advance();
  }
  EXPECT_THAT(parts.books.members, SizeIs(2)) << "what they hold is not stored";
  EXPECT_EQ(parts.books.lineage.step(), StepNumber(3)) << "nothing is undone";
  parts.captures.Ask(parts.now);
  ASSERT_TRUE(parts.captures.asked().has_value());
  EXPECT_EQ(parts.captures.asked()->step, StepNumber(3));
  EXPECT_NE(parts.captures.asked()->object_prefix, "");
}

TEST_F(ContinuedTest, AMemberThatIsDeadIsNotAwaited) {
  parts.books.processes.Bury("worker-1", 11);
  parts.Hear(0, At(1, 3));
  Advance();
  EXPECT_THAT(parts.books.members, SizeIs(1));
}

TEST_F(ContinuedTest, AMemberThatSaysFarewellIsNotAwaited) {
  parts.Hear(0, At(1, 3));
  GroupExchangeRequest farewell;
  farewell.gone = true;
  parts.Hear(1, farewell);
  Advance();
  EXPECT_THAT(parts.books.members, SizeIs(1));
}

TEST_F(ContinuedTest, AMemberThatDoesNotCallIsAwaitedForAWhile) {
  parts.Hear(0, At(1, 3));
  Advance();
  parts.Pass(parts.books.options.join_wait - milliseconds(1));
  Advance();
  EXPECT_THAT(parts.books.members, IsEmpty());
  parts.Pass(milliseconds(1));
  Advance();
  EXPECT_THAT(parts.books.members, SizeIs(1));
}

TEST_F(ContinuedTest, WithoutTheNewestStepTheGroupGoesBackToTheNewestThatIsHeld) {
  parts.books.processes.Bury("worker-1", 11);
  parts.Hear(0, At(1, 2));
  Advance();
  EXPECT_EQ(parts.books.lineage.step(), StepNumber(3)) << "it may not have heard what is newest";
  parts.Hear(0, Heard(parts, At(1, 2)));
  Advance();
  EXPECT_EQ(parts.books.lineage.step(), StepNumber(2));
  EXPECT_EQ(parts.books.lineage.number(), LineageNumber(2));
  EXPECT_EQ(parts.books.lineage.base(), StepNumber(2));
  EXPECT_THAT(parts.data.done, ElementsAre(1u)) << "the step's shard runs again";
  EXPECT_THAT(parts.data.events, Contains(HasSubstr("goes on from step 2, which worker-0 has")));
  parts.Hear(0, Heard(parts, At(2, 2)));
  Advance();
  EXPECT_THAT(parts.books.members, SizeIs(1));
}

TEST_F(ContinuedTest, ASilentMemberIsAwaitedLongerBeforeStepsAreUndone) {
  parts.Hear(0, Heard(parts, At(1, 2)));
  Advance();
  parts.Pass(parts.books.options.rollback_wait - milliseconds(1));
  Advance();
  EXPECT_EQ(parts.books.lineage.step(), StepNumber(3));
  parts.Pass(milliseconds(1));
  Advance();
  EXPECT_EQ(parts.books.lineage.step(), StepNumber(2));
}

TEST_F(ContinuedTest, NothingBelowTheCheckpointIsUndone) {
  parts.books.processes.Bury("worker-1", 11);
  parts.Hear(0, Heard(parts, At(1, 0)));
  Advance();
  EXPECT_EQ(parts.books.lineage.step(), StepNumber(1));
  EXPECT_THAT(parts.data.done, IsEmpty());
  EXPECT_THAT(parts.data.events, Contains(HasSubstr("goes on from step 1, which is stored")));
  // Then everybody reads the checkpoint; nothing more is undone.
  parts.Pass(2 * parts.books.options.rollback_wait);
  parts.Hear(0, Heard(parts, {}));
  Advance();
  EXPECT_EQ(parts.books.lineage.number(), LineageNumber(2));
  EXPECT_TRUE(parts.captures.Source().has_value());
}

TEST_F(ContinuedTest, AStateOfAnotherLineageIsNone) {
  parts.books.processes.Bury("worker-1", 11);
  parts.Hear(0, Heard(parts, At(7, 3)));
  Advance();
  EXPECT_EQ(parts.books.lineage.step(), StepNumber(1));
}

TEST(FormingTest, AnInitialStateThatIsLostIsReplaced) {
  GroupRecords records;
  records.model = GroupModelRecord{kModel, 7};
  records.group = GroupRecord{LineageNumber(1), {}, AttemptNumber(1), {GroupParts::Named(0)}};
  records.step = StepRecord{.lineage = LineageNumber(1)};
  GroupParts parts({}, records);
  Introduce(parts, 1, 9);
  parts.forming.Advance(parts.now);
  parts.Pass(parts.books.options.rollback_wait);
  parts.forming.Advance(parts.now);
  EXPECT_EQ(parts.books.lineage.number(), LineageNumber(3)) << "not the one after a rollback";
  EXPECT_EQ(parts.books.lineage.model().initial_digest, 9u);
}

}  // namespace
}  // namespace muster
