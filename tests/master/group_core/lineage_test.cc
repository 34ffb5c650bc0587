#include "master/group_core/lineage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace muster {
namespace {

using ::testing::SizeIs;

GroupExchangeRequest Report(uint64_t lineage, uint64_t step) {
  GroupExchangeRequest report;
  report.state = StateLabel{LineageNumber(lineage), StepNumber(step)};
  return report;
}
Lineage AtStep(uint64_t steps) {
  Lineage lineage({});
  lineage.Begin({});
  lineage.NewAttempt({{"worker-0", 1}});
  for (uint64_t i = 0; i < steps; ++i) lineage.Commit(ShardId{}, 5, 8);
  return lineage;
}

TEST(LineageTest, WhoHasTheSumOfTheNewestStepHoldsIt) {
  const Lineage lineage = AtStep(3);
  EXPECT_TRUE(lineage.Holds(Report(1, 3)));
  EXPECT_FALSE(lineage.Holds(Report(1, 2)));
  EXPECT_FALSE(lineage.Holds(Report(2, 3)));
  EXPECT_FALSE(lineage.Holds(GroupExchangeRequest()));
  GroupExchangeRequest with_sum = Report(1, 2);
  with_sum.sum = HeldSum{AttemptNumber(1), StepNumber(3), 5, {}};
  EXPECT_TRUE(lineage.Holds(with_sum));
  with_sum.sum->attempt = AttemptNumber(2);
  EXPECT_FALSE(lineage.Holds(with_sum)) << "a sum of another attempt is another sum";
}

TEST(LineageTest, ARollbackMakesTheSumsOfBeforeWorthless) {
  Lineage lineage = AtStep(3);
  lineage.RollBack(StepNumber(2));
  EXPECT_EQ(lineage.number(), LineageNumber(2));
  EXPECT_EQ(lineage.step(), StepNumber(2));
  EXPECT_TRUE(lineage.Holds(Report(2, 2)));
  EXPECT_FALSE(lineage.Holds(Report(1, 2))) << "it has not heard of the rollback";
  GroupExchangeRequest with_sum = Report(2, 1);
  with_sum.sum = HeldSum{AttemptNumber(0), StepNumber(2), 5, {}};
  EXPECT_FALSE(lineage.Holds(with_sum));
}

TEST(LineageTest, AnAttemptIsNeverUsedAgain) {
  Lineage lineage = AtStep(1);
  std::vector<GroupMutation> mutations;
  lineage.Collect(&mutations);
  GroupRecords records;
  for (const GroupMutation& mutation : mutations) Apply(mutation, &records);
  Lineage later(records);
  EXPECT_EQ(later.step(), StepNumber(1));
  EXPECT_EQ(later.attempt_members(), (std::vector<GroupProcess>{{"worker-0", 1}}));
  later.NewAttempt({{"worker-0", 1}});
  EXPECT_EQ(later.attempt(), AttemptNumber(2));
  EXPECT_EQ(later.step_attempt(), AttemptNumber(1));
}

TEST(LineageTest, OnlyWhatHasChangedIsJournaled) {
  Lineage lineage = AtStep(1);
  std::vector<GroupMutation> mutations;
  lineage.Collect(&mutations);
  EXPECT_THAT(mutations, SizeIs(3));
  mutations.clear();
  lineage.Commit(ShardId{}, 5, 8);
  lineage.Collect(&mutations);
  ASSERT_THAT(mutations, SizeIs(1));
  EXPECT_EQ(std::get<StepRecord>(mutations[0]).step, StepNumber(2));
  lineage.Collect(&mutations);
  EXPECT_THAT(mutations, SizeIs(1));
}

TEST(LineageTest, StepsOfTheCheckpointAreNotCounted) {
  Lineage lineage = AtStep(5);
  EXPECT_EQ(lineage.steps_after_checkpoint(), 5u);
  lineage.Accept({{LineageNumber(1), StepNumber(3)}, {}});
  EXPECT_EQ(lineage.steps_after_checkpoint(), 2u);
  EXPECT_DEATH(lineage.RollBack(StepNumber(2)), "");
  EXPECT_DEATH(lineage.Accept({{LineageNumber(1), StepNumber(3)}, {}}), "");
}

}  // namespace
}  // namespace muster
