#include "worker_sdk/session/group_step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "muster/muster.h"
#include "tests/support/temp_dir.h"
#include "tests/worker_sdk/session/fake_group_master.h"

namespace muster {
namespace {

using sdk::FakeGroupMaster;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Four minibatches of two records, whose values are 1 to 8: the whole sum of a step.
constexpr float kWhole = 36;

float ValueOf(const Minibatch& batch) {
  float sum = 0;
  for (const std::string_view record : batch.records()) sum += std::stof(std::string(record));
  return sum;
}

/// A process of the group. What it trains is the sum of all records.
struct Member {
  Member(const FakeGroupMaster& master, const std::string& name)
      : session(
            Session::Connect({.master_address = master.address(), .worker_name = name}).value()),
        group(session.Group().value()) {}
  std::string error() const { return std::string(group.status().message()); }

  Session session;
  Group group;
  std::vector<float> weights = std::vector<float>(1);
};

class GroupStepTest : public ::testing::Test {
 protected:
  void Begin(std::vector<DatasetMode> shards = {DatasetMode::kTrain}, uint32_t members = 1) {
    GroupOptions group;
    group.members_min = group.members_max = members;
    group.checkpoint_interval = std::chrono::hours(1);
    master = std::make_unique<FakeGroupMaster>(FakeGroupMaster::Options{
        .directory = dir.path(), .shards = std::move(shards), .group = group});
  }
  testing::TempDir dir;
  std::unique_ptr<FakeGroupMaster> master;
};

TEST_F(GroupStepTest, AStepHasTheSumOfAllMinibatches) {
  Begin({DatasetMode::kTrain, DatasetMode::kTrain});
  Member member(*master, "worker-0");
  const SumBucket bucket = member.group.AddBucket("sum", 1);
  member.group.AddState("weights", std::span(member.weights));
  while (std::optional<GroupStep> step = member.group.NextStep()) {
    for (Minibatch& batch : step->Minibatches()) step->Add(bucket, std::vector{ValueOf(batch)});
    step->Commit([&] { member.weights[0] += step->Sum(bucket)[0]; });
  }
  EXPECT_EQ(member.error(), "");
  EXPECT_TRUE(member.group.HasFinalState());
  EXPECT_THAT(member.weights, ElementsAre(2 * kWhole));
}

TEST_F(GroupStepTest, AddAfterTheLoopFailsTheSession) {
  Begin();
  Member member(*master, "worker-0");
  const SumBucket bucket = member.group.AddBucket("sum", 1);
  member.group.AddState("weights", std::span(member.weights));
  while (std::optional<GroupStep> step = member.group.NextStep()) {
    float sum = 0;
    for (Minibatch& batch : step->Minibatches()) sum += ValueOf(batch);
    step->Add(bucket, std::vector{sum});
    step->Commit([&] { member.weights[0] += step->Sum(bucket)[0]; });
  }
  EXPECT_THAT(member.error(), HasSubstr("GroupStep::Add outside of the loop"));
  EXPECT_EQ(member.session.Finish(), 1);
}

TEST_F(GroupStepTest, AFailedStepMayStillBeGivenGradients) {
  Begin();
  Member member(*master, "worker-0");
  const SumBucket bucket = member.group.AddBucket("sum", 1);
  bool failed = false;
  while (std::optional<GroupStep> step = member.group.NextStep()) {
    for (Minibatch& batch : step->Minibatches()) {
      if (!std::exchange(failed, true)) step->Fail("once");
      step->Add(bucket, std::vector{ValueOf(batch)});
    }
    step->Commit([] {});
  }
  EXPECT_EQ(member.error(), "");
  EXPECT_TRUE(member.group.HasFinalState());
}

TEST_F(GroupStepTest, ATrainerThatAddsUpItselfGivesTheSumAfterTheLoop) {
  Begin({DatasetMode::kTrain, DatasetMode::kEvaluate});
  Member member(*master, "worker-0");
  const SumBucket bucket = member.group.AddBucket("sum", 1, {.after_loop = true});
  member.group.AddState("weights", std::span(member.weights));
  bool failed = false;
  while (std::optional<GroupStep> step = member.group.NextStep()) {
    float sum = 0;
    for (Minibatch& batch : step->Minibatches()) sum += ValueOf(batch);
    if (!std::exchange(failed, true)) step->Fail("once");
    if (!step->evaluate()) step->Put(bucket, std::vector{sum});
    step->Commit([&] { member.weights[0] += step->Sum(bucket)[0]; });
  }
  EXPECT_EQ(member.error(), "");
  EXPECT_THAT(member.weights, ElementsAre(kWhole));
}

TEST_F(GroupStepTest, ASumThatIsNotGivenFailsTheSession) {
  Begin();
  Member member(*master, "worker-0");
  member.group.AddBucket("sum", 1, {.after_loop = true});
  while (std::optional<GroupStep> step = member.group.NextStep()) {
    for ([[maybe_unused]] Minibatch& batch : step->Minibatches()) {
    }
    step->Commit([] {});
  }
  EXPECT_THAT(member.error(), HasSubstr("the bucket \"sum\" has SumOptions::after_loop, and"));
}

TEST_F(GroupStepTest, EachBucketHasOneWayToGetItsGradients) {
  const auto error = [&](bool after_loop, bool in_loop, bool add) {
    Begin();
    Member member(*master, "worker-0");
    const SumBucket bucket = member.group.AddBucket("sum", 1, {.after_loop = after_loop});
    const std::vector<float> gradient(1);
    while (std::optional<GroupStep> step = member.group.NextStep()) {
      const auto give = [&] { add ? step->Add(bucket, gradient) : step->Put(bucket, gradient); };
      for ([[maybe_unused]] Minibatch& batch : step->Minibatches()) {
        if (in_loop) give();
      }
      if (!in_loop) give();
      step->Commit([] {});
    }
    return member.error();
  };
  EXPECT_THAT(error(true, true, true), HasSubstr("give its sum to GroupStep::Put"));
  EXPECT_THAT(error(false, false, false), HasSubstr("give it SumOptions::after_loop"));
  EXPECT_THAT(error(true, true, false), HasSubstr("Put before the end of the loop"));
  EXPECT_EQ(error(true, false, false), "");
}

TEST_F(GroupStepTest, LocalStepsAreCommittedByTheirOwnClass) {
  const auto error = [&](bool group_commits) {
    Begin();
    Member member(*master, "worker-0");
    LocalSgd local(member.group);
    local.AddWeights("weights", member.weights);
    while (std::optional<GroupStep> step = local.NextStep()) {
      for (Minibatch& batch : local.Minibatches(*step)) member.weights[0] += ValueOf(batch);
      if (group_commits) step->Commit([] {});
      if (!group_commits) local.Commit(*step);
      if (!group_commits) member.group.NextStep();
    }
    return member.error();
  };
  EXPECT_THAT(error(true), HasSubstr("GroupStep::Commit of a step of DiLoCo or LocalSgd"));
  EXPECT_THAT(error(false), HasSubstr("Group::NextStep of a group of DiLoCo or LocalSgd"));
}

}  // namespace
}  // namespace muster
