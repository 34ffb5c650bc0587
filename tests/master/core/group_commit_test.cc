#include "master/core/group_commit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/master/core/core_fixture.h"

namespace muster {
namespace {

using testing::CoreFixture;

class GroupCommitTest : public ::testing::Test {
 protected:
  GroupCommitTest() { world_.Start(); }
  /// A step that changes the core's state (or, failing, does not) and notes its answer.
  GroupCommit::Item Cancel(absl::Status status) {
    return {[status](MasterCore& core, StepTime at) {
              return status.ok() ? core.Cancel({.reason = "test"}, at) : status;
            },
            [this](const absl::Status& answer) { answers_.push_back(answer.code()); }};
  }

  CoreFixture world_;
  std::vector<absl::StatusCode> answers_;
};

TEST_F(GroupCommitTest, AnswersOfABatchWaitForItsSync) {
  GroupCommit commit(world_.core.get(), std::chrono::milliseconds(50), world_.now);
  std::vector<GroupCommit::Item> items;
  items.push_back(Cancel(absl::OkStatus()));
  items.push_back(Cancel(absl::InvalidArgumentError("refused")));
  EXPECT_FALSE(commit.Step(std::move(items), world_.At()).empty());
  EXPECT_THAT(answers_, ::testing::IsEmpty());
  EXPECT_THAT(commit.Synced(), ::testing::IsEmpty());
  EXPECT_THAT(answers_,
              ::testing::ElementsAre(absl::StatusCode::kOk, absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(commit.Step({}, world_.At()), ::testing::IsEmpty());
  commit.Synced();
  EXPECT_EQ(answers_.size(), 2u);
}

TEST_F(GroupCommitTest, ABatchAnswersWithItsOwnStatuses) {
  GroupCommit commit(world_.core.get(), std::chrono::milliseconds(50), world_.now);
  std::vector<absl::StatusCode> expected;
  for (const absl::Status& status :
       {absl::OkStatus(), absl::NotFoundError("second"), absl::AbortedError("third")}) {
    std::vector<GroupCommit::Item> items;
    items.push_back(Cancel(status));
    commit.Step(std::move(items), world_.At());
    commit.Synced();
    expected.push_back(status.code());
    EXPECT_THAT(answers_, ::testing::ElementsAreArray(expected));
  }
}

TEST_F(GroupCommitTest, ARequestIsKeptUntilItIsReady) {
  GroupCommit commit(world_.core.get(), std::chrono::milliseconds(50), world_.now);
  bool ready = false;
  const auto run = [&](std::vector<GroupCommit::Item> items) {
    commit.Step(std::move(items), world_.At());
    commit.Synced();
  };
  std::vector<GroupCommit::Item> items(2, Cancel(absl::OkStatus()));
  items[0].ready = [&](MasterCore&, StepTime) { return ready; };
  items[1] = Cancel(absl::AbortedError("it has failed, so it does not wait"));
  items[1].ready = items[0].ready;
  run(std::move(items));
  EXPECT_THAT(answers_, ::testing::ElementsAre(absl::StatusCode::kAborted));
  run({});
  EXPECT_EQ(answers_.size(), 1u);
  ready = true;
  commit.Step({}, world_.At());
  EXPECT_EQ(answers_.size(), 1u) << "not before the sync";
  commit.Synced();
  EXPECT_EQ(answers_.size(), 2u);
  run({});
  EXPECT_EQ(answers_.size(), 2u);
}

TEST_F(GroupCommitTest, AKeptRequestIsGivenBackAtTheEnd) {
  GroupCommit commit(world_.core.get(), std::chrono::milliseconds(50), world_.now);
  std::vector<GroupCommit::Item> items(1, Cancel(absl::OkStatus()));
  items[0].ready = [](MasterCore&, StepTime) { return false; };
  commit.Step(std::move(items), world_.At());
  commit.Synced();
  EXPECT_EQ(commit.TakeItems().size(), 1u);
  EXPECT_TRUE(answers_.empty());
}

TEST_F(GroupCommitTest, WhatCouldNotBeSyncedIsGivenBackUnanswered) {
  GroupCommit commit(world_.core.get(), std::chrono::milliseconds(50), world_.now);
  std::vector<GroupCommit::Item> items;
  items.push_back(Cancel(absl::OkStatus()));
  commit.Step(std::move(items), world_.At());
  EXPECT_EQ(commit.TakeItems().size(), 1u);
  commit.Synced();
  EXPECT_THAT(answers_, ::testing::IsEmpty());
}

TEST(GroupCommit, TicksWhenItIsTime) {
  CoreFixture world;
  world.options.leases.duration = std::chrono::milliseconds(10);
  world.Start();
  world.Want(1);
  GroupCommit commit(world.core.get(), std::chrono::milliseconds(50), world.now);
  world.now += std::chrono::milliseconds(49);
  commit.Step({}, world.At());
  commit.Synced();
  EXPECT_EQ(world.core->leases().size(), 1u);
  world.now += std::chrono::milliseconds(1);
  EXPECT_FALSE(commit.Step({}, world.At()).empty());
  EXPECT_EQ(world.core->leases().size(), 0u);  // expired
}

}  // namespace
}  // namespace muster
