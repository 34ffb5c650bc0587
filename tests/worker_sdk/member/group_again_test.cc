// Groups of one process, one after the other.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "muster/muster.h"
#include "tests/support/temp_dir.h"
#include "tests/worker_sdk/member/fake_group_master.h"

namespace muster {
namespace {

using sdk::FakeGroupMaster;
using ::testing::HasSubstr;

class GroupAgainTest : public ::testing::Test {
 protected:
  void Begin(GroupOptions group) {
    group.checkpoint_interval = std::chrono::hours(1);
    master = std::make_unique<FakeGroupMaster>(
        FakeGroupMaster::Options{.directory = dir.path(),
                                 .shards = std::vector<DatasetMode>(40, DatasetMode::kTrain),
                                 .group = group});
  }
  Session Connect(const std::string& name) {
    return Session::Connect({.master_address = master->address(), .worker_name = name}).value();
  }
  /// Makes `steps` steps; 0: all that there are.
  void Train(Group& group, uint64_t steps = 0) {
    const SumBucket bucket = group.AddBucket("sum", 1);
    group.AddState("weights", std::span(weights));
    for (uint64_t made = 0; steps == 0 || made < steps;) {
      std::optional<GroupStep> step = group.NextStep();
      if (!step.has_value()) break;
      for ([[maybe_unused]] Minibatch& batch : step->Minibatches()) {
        step->Add(bucket, std::vector{1.0F});
      }
      if (step->Commit([&] { weights[0] += step->Sum(bucket)[0]; })) ++made;
    }
  }
  testing::TempDir dir;
  std::unique_ptr<FakeGroupMaster> master;
  std::vector<float> weights = std::vector<float>(1);
};

TEST_F(GroupAgainTest, ASecondGroupIsRefusedWhileTheFirstLives) {
  Begin({.members_max = 1});
  Session session = Connect("worker-0");
  std::optional<Group> group = session.Group().value();
  const Result<Group> second = session.Group();
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.status().code(), Status::Code::kFailedPrecondition);
  EXPECT_THAT(std::string(second.status().message()), HasSubstr("has a muster::Group already"));
  EXPECT_TRUE(session.status().ok()) << "the first one works";
  group.reset();
  EXPECT_TRUE(session.Group().ok());
}

TEST_F(GroupAgainTest, AGroupThatIsMadeAgainIsHeardAtOnce) {
  // Nothing but the farewell and the first call of the second group may end the first membership.
  Begin({.members_max = 1,
         .silence_limit = std::chrono::hours(1),
         .rollback_wait = std::chrono::milliseconds(1)});
  Session session = Connect("worker-0");
  std::optional<Group> group = session.Group().value();
  Train(*group, 20);
  group.reset();
  const uint64_t calls = master->ReportOf("worker-0").sequence;
  EXPECT_TRUE(master->ReportOf("worker-0").gone);
  weights[0] = 0;
  group = session.Group().value();
  Train(*group);
  EXPECT_EQ(group->status().message(), "");
  EXPECT_TRUE(group->HasFinalState());
  EXPECT_GT(master->ReportOf("worker-0").sequence, calls);
}

TEST_F(GroupAgainTest, TheOthersGoOnAtOnceWithoutAGroupThatIsDestroyed) {
  Begin({.members_min = 1,
         .members_max = 2,
         .silence_limit = std::chrono::hours(1),
         .join_wait = std::chrono::hours(1)});
  Session stays = Connect("worker-0"), goes = Connect("worker-1");
  std::optional<Group> group = goes.Group().value();
  std::vector<float> other(1);
  std::thread trainer([&] {
    Group own = stays.Group().value();
    Train(own);
    EXPECT_TRUE(own.HasFinalState());
  });
  {
    const SumBucket bucket = group->AddBucket("sum", 1);
    group->AddState("weights", std::span(other));
    // A member that leaves in the middle of a step.
    std::optional<GroupStep> step = group->NextStep();
    ASSERT_TRUE(step.has_value());
    static_cast<void>(bucket);
    step.reset();
  }
  group.reset();
  trainer.join();
  EXPECT_EQ(weights[0], 160) << "40 steps of 4 minibatches";
}

}  // namespace
}  // namespace muster
