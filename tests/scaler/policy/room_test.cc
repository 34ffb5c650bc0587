#include "scaler/policy/room.h"

#include <gtest/gtest.h>

#include "tests/scaler/policy/fake_job.h"

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

}  // namespace
}  // namespace muster::scaler
