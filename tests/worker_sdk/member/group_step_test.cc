#include "worker_sdk/member/group_step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "muster/muster.h"
#include "tests/support/temp_dir.h"
#include "tests/worker_sdk/member/fake_group_master.h"

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
    EXPECT_EQ(step->records(), 8u);
    step->Commit([&] {
      member.weights[0] += step->Sum(bucket)[0];
      EXPECT_EQ(step->records(), 8u);
    });
  }
  EXPECT_EQ(member.error(), "");
  EXPECT_TRUE(member.group.HasFinalState());
  EXPECT_THAT(member.weights, ElementsAre(2 * kWhole));
}

TEST_F(GroupStepTest, TheRecordsInApplyAreThoseThatAllMembersHaveRead) {
  master = std::make_unique<FakeGroupMaster>(FakeGroupMaster::Options{
      .directory = dir.path(), .shards = {DatasetMode::kTrain}, .more_records = 3});
  Member member(*master, "worker-0");
  const SumBucket bucket = member.group.AddBucket("sum", 1);
  while (std::optional<GroupStep> step = member.group.NextStep()) {
    for (Minibatch& batch : step->Minibatches()) step->Add(bucket, std::vector{ValueOf(batch)});
    EXPECT_EQ(step->records(), 8u) << "what it has read itself";
    EXPECT_TRUE(step->Commit([&] { EXPECT_EQ(step->records(), 11u); }));
  }
  EXPECT_EQ(member.error(), "");
  EXPECT_TRUE(member.group.HasFinalState());
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

/// Trains all steps in a thread of its own.
std::thread Trains(Member* member, float rate) {
  return std::thread([member, rate] {
    const SumBucket bucket = member->group.AddBucket("sum", 1);
    member->group.AddState("weights", std::span(member->weights));
    while (std::optional<GroupStep> step = member->group.NextStep()) {
      for (Minibatch& batch : step->Minibatches()) step->Add(bucket, std::vector{ValueOf(batch)});
      step->Commit([&] { member->weights[0] += rate * step->Sum(bucket)[0]; });
    }
  });
}

TEST_F(GroupStepTest, MembersWithEqualStatesReachTheEnd) {
  Begin(std::vector<DatasetMode>(20, DatasetMode::kTrain), 2);
  Member one(*master, "worker-0"), two(*master, "worker-1");
  std::thread first = Trains(&one, 1), second = Trains(&two, 1);
  first.join();
  second.join();
  EXPECT_EQ(one.error() + two.error(), "");
  EXPECT_THAT(one.weights, ElementsAre(20 * kWhole));
  EXPECT_THAT(two.weights, ElementsAre(20 * kWhole));
}

/// Trains all steps with buckets of all types in turn, whose gradients differ. The weights become
/// the sums of all steps.
void TrainManyBuckets(Member* member) {
  const SumOptions types[] = {{.type = SumType::kFixedPoint},
                              {.type = SumType::kBfloat16},
                              {.type = SumType::kFloat32},
                              {.type = SumType::kFixedPoint, .fraction_bits = 8}};
  std::vector<SumBucket> buckets;
  for (uint32_t i = 0; i < 40; ++i) {
    buckets.push_back(
        member->group.AddBucket("bucket-" + std::to_string(i), 1 + i % 3, types[i % 4]));
  }
  member->weights.resize(40);
  member->group.AddState("weights", std::span(member->weights));
  while (std::optional<GroupStep> step = member->group.NextStep()) {
    for (Minibatch& batch : step->Minibatches()) {
      for (uint32_t i = 40; i-- > 0;) {
        // A bucket of which no minibatch has a gradient, and one that only some have.
        if (i == 7 || (i == 8 && batch.step() % 4 != 0)) continue;
        // Each type holds the sum: it is at most 36 * 7.
        const float value = ValueOf(batch) * static_cast<float>(1 + i % 7);
        step->Add(buckets[i], std::vector<float>(buckets[i].elements(), value));
      }
    }
    step->Commit([&] {
      for (uint32_t i = 0; i < 40; ++i) {
        const std::span<const float> sum = step->Sum(buckets[i]);
        EXPECT_EQ(sum.size(), buckets[i].elements());
        EXPECT_THAT(sum, ::testing::Each(sum[0]));
        member->weights[i] += sum[0];
      }
    });
  }
}

TEST_F(GroupStepTest, SmallBucketsOfAllTypesHaveSumsOfTheirOwn) {
  constexpr int kSteps = 5;
  Begin(std::vector<DatasetMode>(kSteps, DatasetMode::kTrain), 2);
  Member one(*master, "worker-0"), two(*master, "worker-1");
  std::thread first(TrainManyBuckets, &one);
  TrainManyBuckets(&two);
  first.join();
  EXPECT_EQ(one.error() + two.error(), "");
  EXPECT_EQ(one.weights, two.weights);
  for (uint32_t i = 0; i < 40; ++i) {
    const float whole = i == 7 ? 0 : i == 8 ? 3 : kWhole;  // the first minibatch has 1 and 2
    EXPECT_EQ(one.weights[i], kSteps * whole * static_cast<float>(1 + i % 7)) << i;
  }
}

TEST_F(GroupStepTest, AMemberWhoseApplyThrowsCopiesTheStateAnew) {
  Begin(std::vector<DatasetMode>(4, DatasetMode::kTrain), 2);
  Member one(*master, "worker-0"), two(*master, "worker-1");
  std::thread first = Trains(&one, 1);
  const SumBucket bucket = two.group.AddBucket("sum", 1);
  two.group.AddState("weights", std::span(two.weights));
  int thrown = 0;
  while (std::optional<GroupStep> step = two.group.NextStep()) {
    for (Minibatch& batch : step->Minibatches()) step->Add(bucket, std::vector{ValueOf(batch)});
    try {
      step->Commit([&] {
        two.weights[0] += step->Sum(bucket)[0];
        if (step->step() == 2 && ++thrown == 1) throw std::runtime_error("half applied");
      });
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "half applied");
      two.weights[0] = -1000;
    }
  }
  first.join();
  EXPECT_EQ(thrown, 1);
  EXPECT_EQ(one.error() + two.error(), "");
  EXPECT_THAT(one.weights, ElementsAre(4 * kWhole));
  EXPECT_THAT(two.weights, ElementsAre(4 * kWhole));
}

TEST_F(GroupStepTest, ABucketThatDoesNotFitLeavesNothingOfItsAttempt) {
  Begin();
  Member member(*master, "worker-0");
  // Of two types, so that each is a block.
  const SumBucket good = member.group.AddBucket("good", 1, {.type = SumType::kFloat32});
  const SumBucket bad = member.group.AddBucket("bad", 1, {.type = SumType::kBfloat16});
  int runs = 0;
  while (std::optional<GroupStep> step = member.group.NextStep()) {
    ++runs;
    for (Minibatch& batch : step->Minibatches()) {
      // Both become complete with the end of the last minibatch, so they are given together.
      if (batch.step() % 4 != 0) continue;
      step->Add(good, std::vector{1.0F});
      // Finite in float32, and more than bfloat16 holds.
      step->Add(bad, std::vector{runs == 1 ? std::numeric_limits<float>::max() : 1.0F});
    }
    step->Commit([] {});
  }
  EXPECT_EQ(member.error(), "");
  EXPECT_EQ(runs, 2);
  EXPECT_TRUE(member.group.HasFinalState());
}

TEST_F(GroupStepTest, CallsThatCanNeverWorkFailTheSession) {
  using Act = std::function<void(Member&, GroupStep&, const SumBucket&)>;
  const auto error = [&](const Act& in_loop, const Act& in_apply) {
    Begin();
    Member member(*master, "worker-0");
    const SumBucket bucket = member.group.AddBucket("sum", 1);
    while (std::optional<GroupStep> step = member.group.NextStep()) {
      for ([[maybe_unused]] Minibatch& batch : step->Minibatches()) {
        if (in_loop) in_loop(member, *step, bucket);
      }
      step->Commit([&] {
        if (in_apply) in_apply(member, *step, bucket);
      });
    }
    return member.error();
  };
  const std::span<const float> null(static_cast<const float*>(nullptr), 1);
  const Act add = [&](Member&, GroupStep& step, const SumBucket& bucket) {
    step.Add(bucket, null);
  };
  const Act next = [](Member& member, GroupStep&, const SumBucket&) { member.group.NextStep(); };
  const Act commit = [](Member&, GroupStep& step, const SumBucket&) { step.Commit([] {}); };
  EXPECT_EQ(error({}, {}), "");
  EXPECT_THAT(error(add, {}), HasSubstr("GroupStep::Add with a null pointer"));
  EXPECT_THAT(error({}, next), HasSubstr("Group::NextStep inside of"));
  EXPECT_THAT(error({}, commit), HasSubstr("GroupStep::Commit inside of"));
}

TEST(GroupRegistrationTest, StateAndWeightsAreNoNullPointers) {
  const std::span<float> null(static_cast<float*>(nullptr), 1);
  Group group(std::make_unique<internal::GroupImpl>());
  group.AddState("state", null);
  EXPECT_THAT(group.status().message(), HasSubstr("\"state\": its memory is a null pointer"));
  Group other(std::make_unique<internal::GroupImpl>());
  DiLoCo diloco(other);
  diloco.AddWeights("weights", null);
  EXPECT_FALSE(diloco.NextStep().has_value());
  EXPECT_THAT(other.status().message(), HasSubstr("\"weights\" are a null pointer"));
}

}  // namespace
}  // namespace muster
