#include "scaler/policy/room.h"

#include <gtest/gtest.h>

#include "tests/scaler/model/fake_job.h"

namespace muster::scaler {
namespace {

constexpr Resources kTwoGiB{.cpus = 1, .memory_bytes = 2048 * kMiB};

TEST(RoomTest, TheTightestBoundCounts) {
  FakeJob job;
  job.Add(NodeRole::kServer, 2, {}, kTwoGiB);
  const auto room = [&job] { return RoomOf(job.view, job.Node("ps-0")); };
  EXPECT_EQ(room().most.memory_bytes, (16'384 - 2048) * kMiB);
  EXPECT_EQ(room().memory_bound, Bound::kMachine);
  EXPECT_EQ(room().most.cpus, 8);
  job.view.budget = {.cpus = 3, .memory_bytes = 6144 * kMiB};
  EXPECT_EQ(room().most.memory_bytes, 4096 * kMiB);
  EXPECT_EQ(room().memory_bound, Bound::kBudget);
  EXPECT_EQ(room().most.cpus, 2);
  EXPECT_EQ(room().cpu_bound, Bound::kBudget);
  job.Node("ps-0").max = {.cpus = 1.5, .memory_bytes = 3072 * kMiB};
  EXPECT_EQ(room().most, (Resources{.cpus = 1.5, .memory_bytes = 3072 * kMiB}));
  EXPECT_EQ(room().memory_bound, Bound::kNodeMax);
}

TEST(RoomTest, ANodeWithoutLimitCountsWithWhatItUses) {
  FakeJob job;
  job.Add(NodeRole::kServer, 2, {.memory_mib = 1000});
  job.view.budget.memory_bytes = 4000 * kMiB;
  job.Tick();
  EXPECT_EQ(RoomOf(job.view, job.Node("ps-0")).most.memory_bytes, 3000 * kMiB);
}

TEST(RoomTest, PendingLimitsCountBeforeTheViewShowsThem) {
  FakeJob job;
  job.Add(NodeRole::kServer, 2, {}, kTwoGiB);
  const PendingLimits pending = {{"ps-1", {.cpus = 1, .memory_bytes = 8192 * kMiB}}};
  EXPECT_EQ(RoomOf(job.view, job.Node("ps-0"), pending).most.memory_bytes, 8192 * kMiB);
}

TEST(RoomTest, WhoHasSomethingMayKeepIt) {
  FakeJob job;
  job.Add(NodeRole::kServer, 3, {}, kTwoGiB);
  job.view.budget = {.cpus = 1, .memory_bytes = 1024 * kMiB};
  EXPECT_EQ(RoomOf(job.view, job.Node("ps-0")).most, kTwoGiB);
}

TEST(RoomTest, WithoutBoundsThereIsNone) {
  FakeJob job;
  job.Add(NodeRole::kServer, 1, {}, kTwoGiB);
  job.view.machine = {};
  const Room room = RoomOf(job.view, job.Node("ps-0"));
  EXPECT_EQ(room.memory_bound, Bound::kNone);
  EXPECT_EQ(room.cpu_bound, Bound::kNone);
}

TEST(RoomTest, WhatNobodyHasLeftIsNotUnbounded) {
  FakeJob job;
  job.Add(NodeRole::kServer, 2, {}, kTwoGiB);
  job.view.budget = {.cpus = 1, .memory_bytes = 2048 * kMiB};
  job.Node("ps-0").limits = {};
  const Room room = RoomOf(job.view, job.Node("ps-0"));
  EXPECT_EQ(room.memory_bound, Bound::kBudget);
  EXPECT_EQ(room.most.memory_bytes, 1u) << "0 would be no bound";
  EXPECT_EQ(room.cpu_bound, Bound::kBudget);
  EXPECT_NEAR(room.most.cpus, 0.01, 1e-9);
  EXPECT_EQ(RoomOf(job.view, job.Node("ps-0"), {{"ps-0", kTwoGiB}}).most, kTwoGiB)
      << "what it was just given it may keep";
}

TEST(RoomTest, OfEqualBoundsItsOwnMaximumIsNamed) {
  FakeJob job;
  job.Add(NodeRole::kServer, 2, {}, kTwoGiB);
  job.Node("ps-0").max = {.cpus = 3, .memory_bytes = 4096 * kMiB};
  job.view.budget = {.cpus = 4, .memory_bytes = 6144 * kMiB};
  job.view.machine.memory_bytes = 6144 * kMiB;
  const Room room = RoomOf(job.view, job.Node("ps-0"));
  EXPECT_EQ(room.most, (Resources{.cpus = 3, .memory_bytes = 4096 * kMiB}));
  EXPECT_EQ(room.memory_bound, Bound::kNodeMax);
  EXPECT_EQ(room.cpu_bound, Bound::kNodeMax);
}

TEST(RoomTest, AllOthersTogetherCount) {
  FakeJob job;
  job.Add(NodeRole::kServer, 3, {}, kTwoGiB).Add(NodeRole::kWorker, 1, {}, {.cpus = 0.5});
  job.view.budget = {.cpus = 6, .memory_bytes = 10 * 1024 * kMiB};
  const Room room = RoomOf(job.view, job.Node("ps-0"));
  EXPECT_EQ(room.most, (Resources{.cpus = 3.5, .memory_bytes = 6 * 1024 * kMiB}));
}

TEST(RoomTest, WhatKeepsANodeFromMoreHasAName) {
  EXPECT_EQ(ToString(Bound::kNodeMax, NodeRole::kWorker),
            "the job file's maximum for worker nodes");
  EXPECT_EQ(ToString(Bound::kBudget, NodeRole::kWorker), "the rest of the job's budget");
  EXPECT_EQ(ToString(Bound::kMachine, NodeRole::kWorker), "the rest of this machine");
  EXPECT_EQ(ToString(Bound::kNone, NodeRole::kWorker), "nothing");
}

TEST(RoomTest, AsManyWorkersAsFit) {
  constexpr uint64_t kGiB = 1024 * kMiB;
  struct Case {
    const char* what;
    Resources budget;
    uint64_t machine_bytes;
    uint32_t wanted, most;
    Bound bound;
  };
  // A server and two workers of one core and 2 GiB are there.
  const Case cases[] = {
      {"nothing bounds them", {}, 0, 100, 100, Bound::kNone},
      {"all that are wanted fit exactly", {.memory_bytes = 12 * kGiB}, 0, 5, 5, Bound::kNone},
      {"one less fits", {.memory_bytes = 12 * kGiB - 1}, 0, 5, 4, Bound::kBudget},
      {"cores of the budget", {.cpus = 4.5}, 0, 5, 3, Bound::kBudget},
      {"cores of the machine are shared out", {}, 0, 50, 50, Bound::kNone},
      {"memory of the machine", {}, 9 * kGiB, 5, 3, Bound::kMachine},
      {"the tightest", {.cpus = 5, .memory_bytes = 100 * kGiB}, 8 * kGiB, 6, 3, Bound::kMachine},
      {"those that are there may stay", {.cpus = 1, .memory_bytes = kGiB}, 0, 3, 2, Bound::kBudget},
      {"and fewer always fit", {.cpus = 1, .memory_bytes = kGiB}, 0, 1, 1, Bound::kNone},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.what);
    FakeJob job;
    job.Add(NodeRole::kServer, 1, {}, kTwoGiB).Add(NodeRole::kWorker, 2, {}, kTwoGiB);
    job.view.budget = c.budget;
    job.view.machine.memory_bytes = c.machine_bytes;
    const WorkerRoom room = RoomForWorkers(job.view, c.wanted);
    EXPECT_EQ(room.most, c.most);
    EXPECT_EQ(room.bound, c.bound);
  }
}

TEST(RoomTest, NewWorkersAreAsLargeAsTheLargest) {
  FakeJob job;
  job.Add(NodeRole::kServer, 1, {}, {.cpus = 4, .memory_bytes = 8192 * kMiB})
      .Add(NodeRole::kWorker, 3, {}, kTwoGiB);
  job.view.machine = {};
  job.Node("worker-1").limits = {.cpus = 2, .memory_bytes = 1024 * kMiB};
  job.view.budget.cpus = 8 + 4;  // 4 of them are left
  EXPECT_EQ(RoomForWorkers(job.view, 9).most, 3u + 2);
  job.view.budget = {.memory_bytes = (8 + 2 + 1 + 2 + 5) * 1024 * kMiB};
  EXPECT_EQ(RoomForWorkers(job.view, 9).most, 3u + 2);
  const PendingLimits pending = {{"worker-2", {.cpus = 1, .memory_bytes = 4096 * kMiB}}};
  EXPECT_EQ(RoomForWorkers(job.view, 9, pending).most, 3u) << "3 GiB are left, 4 are needed";
}

TEST(RoomTest, WorkersWithoutLimitsCountWithWhatTheyUse) {
  FakeJob job;
  job.Add(NodeRole::kWorker, 2, {.memory_mib = 1000});
  job.view.budget.memory_bytes = 4000 * kMiB;
  EXPECT_EQ(RoomForWorkers(job.view, 9).most, 9u) << "nothing is known of them";
  job.Tick();
  EXPECT_EQ(RoomForWorkers(job.view, 9).most, 4u);
}

}  // namespace
}  // namespace muster::scaler
