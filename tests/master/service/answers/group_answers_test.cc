#include "master/service/answers/group_answers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "master/service/admin_answers.h"
#include "tests/master/core/core_fixture.h"
#include "tests/master/group_core/model_member.h"

namespace muster {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::ModelMember;
using ::testing::SizeIs;

/// A master whose job has a group of two members of three model processes.
class GroupAnswersTest : public ::testing::Test, protected testing::CoreFixture {
 protected:
  void StartGroup() {
    options.group = GroupOptions{.global_batch = 50,
                                 .members_min = 2,
                                 .members_max = 2,
                                 .checkpoint_interval = std::chrono::seconds(3'600)};
    Start();
  }
  void Add(const std::string& name) {
    const uint64_t incarnation = members_.size() + 1;
    members_.push_back(std::make_unique<ModelMember>(name, incarnation, 7));
    MUSTER_CHECK(core->HelloWorker({name, incarnation}, StartNumber(0), At()).ok());
  }
  /// Every process calls once, and then does what it was told.
  void Round() {
    Advance(std::chrono::milliseconds(50));
    for (const auto& member : members_) {
      MUSTER_CHECK(core->ExchangeGroup(member->Report(), At()).ok());
      Sync();
      member->Take(core->GroupReplyFor({member->worker, member->incarnation}));
      member->Work(&fabric_);
    }
  }
  GroupStatus Shown() const { return StatusOf(*core, "job", At()).group.value(); }
  void TrainTo(uint64_t step) {
    for (int i = 0; i < 100 && Shown().step < step; ++i) Round();
    ASSERT_EQ(Shown().step, step);
  }

 private:
  std::vector<std::unique_ptr<ModelMember>> members_;
  testing::ModelFabric fabric_;
};

TEST_F(GroupAnswersTest, AJobWithoutAGroupHasNone) {
  Start();
  EXPECT_FALSE(StatusOf(*core, "job", At()).group.has_value());
}

TEST_F(GroupAnswersTest, AGroupThatBeginsSaysWhatItWaitsFor) {
  StartGroup();
  Add("worker-0");
  Round();
  const GroupStatus group = Shown();
  EXPECT_EQ(group.step, 0u);
  EXPECT_EQ(group.step_in_work, std::nullopt);
  EXPECT_EQ(group.checkpoint_step, 0u);
  EXPECT_EQ(group.global_batch, 50u);
  EXPECT_EQ(group.members, 0u);
  EXPECT_EQ(group.members_min, 2u);
  EXPECT_EQ(group.members_max, 2u);
  EXPECT_THAT(group.waits, HasSubstr("1 more"));
  ASSERT_THAT(group.processes, SizeIs(1));
  EXPECT_EQ(group.processes[0].worker, "worker-0");
  EXPECT_EQ(group.processes[0].standing, GroupStanding::kWaiting);
  EXPECT_EQ(group.processes[0].rank, std::nullopt);
  EXPECT_EQ(group.processes[0].step, std::nullopt);
}

TEST_F(GroupAnswersTest, AStepInWorkHasTheSharesOfTheMembers) {
  StartGroup();
  for (const char* name : {"worker-0", "worker-1"}) Add(name);
  TrainTo(2);
  Add("worker-2");
  Round();
  const GroupStatus group = Shown();
  EXPECT_EQ(group.lineage, 1u);
  EXPECT_EQ(group.attempt, 1u);
  EXPECT_EQ(group.step_in_work, group.step + 1);
  EXPECT_EQ(group.members, 2u);
  EXPECT_THAT(group.waits, IsEmpty());
  ASSERT_THAT(group.processes, SizeIs(3));
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(group.processes[i].standing, GroupStanding::kMember);
    EXPECT_EQ(group.processes[i].rank, i);
    EXPECT_EQ(group.processes[i].share_minibatches, 1u);
    EXPECT_GE(group.processes[i].step.value(), 1u);
    EXPECT_THAT(group.processes[i].waits, IsEmpty());
  }
  EXPECT_EQ(group.processes[2].standing, GroupStanding::kWaiting);
  EXPECT_EQ(group.processes[2].rank, std::nullopt);
  EXPECT_THAT(group.processes[2].waits, HasSubstr("2 members"));
}

}  // namespace
}  // namespace muster
