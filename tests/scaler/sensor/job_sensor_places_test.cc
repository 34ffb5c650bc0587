// Nodes of a cluster: places that they do not have, or lose, and figures that they measure
// themselves.
#include <gmock/gmock.h>

#include "scaler/sensor/job_sensor.h"
#include "tests/scaler/sensor/sensed_job.h"

namespace muster::scaler {
namespace {

const NodeView& PlacedNode(const JobView& view, const std::string& name) {
  const NodeView* node = FindNode(view, name);
  EXPECT_NE(node, nullptr) << name;
  return *node;
}

TEST(JobSensorPlacesTest, WhatTheHostCannotMeasureTheProcessTellsItself) {
  SensedJob job;
  job.unread = "worker-0";
  job.Seconds(2);
  EXPECT_EQ(job.sensor.UsageOf("worker-0"), std::nullopt);
  ProcessUsage& own = job.Status("worker-0").own_usage.emplace();
  own.memory_limit_bytes = 900;
  for (int i = 0; i < 5; ++i) {
    own.cpu_us += 250'000;
    own.memory_bytes = 100 + static_cast<uint64_t>(i);
    job.Second();
  }
  const std::optional<rest::Usage> usage = job.sensor.UsageOf("worker-0");
  ASSERT_TRUE(usage.has_value());
  EXPECT_EQ(usage->memory_bytes, 104u);
  EXPECT_NEAR(usage->cpus, 0.25, 1e-6);
  EXPECT_EQ(PlacedNode(job.Second(), "worker-0").samples.back().memory_limit_bytes, 900u);
  job.Status("worker-1").own_usage = ProcessUsage{.memory_bytes = 7};
  EXPECT_EQ(PlacedNode(job.Second(), "worker-1").samples.back().memory_bytes, 100u)
      << "what the host measures goes first";
  job.Status("worker-0").start = 7;
  own.memory_bytes = 1;
  EXPECT_EQ(PlacedNode(job.Second(), "worker-0").samples.back().memory_bytes, 104u)
      << "another life";
}

TEST(JobSensorPlacesTest, ADisruptionIsACauseOfItsOwnUnlessTheNodeWasToEndAnyway) {
  SensedJob job;
  NodeExited exit{.node = "worker-0", .exit = {.signal = 9}};
  exit.disruption = Disruption::kEvicted;
  exit.disruption_text = "low on memory";
  const NodeEnd end = job.sensor.OnExit(exit, job.Kept("worker-0"), job.now);
  EXPECT_EQ(end.cause, EndCause::kDisrupted);
  EXPECT_EQ(end.disruption, Disruption::kEvicted);
  EXPECT_EQ(end.disruption_text, "low on memory");
  job.Kept("worker-0").told_to_end = true;
  EXPECT_EQ(job.sensor.OnExit(exit, job.Kept("worker-0"), job.now).cause, EndCause::kAsked);
}

TEST(JobSensorPlacesTest, ANodeWithoutAPlaceIsSeenWithItsReason) {
  SensedJob job;
  KeptNode& kept = job.Kept("worker-0");
  kept.no_process = true;
  kept.wait = NodeWait::kQuota;
  kept.wait_reason = "exceeded quota";
  kept.waits_since = job.now;
  kept.placed_limits = Resources{.memory_bytes = 5};
  const NodeView& node = PlacedNode(job.Second(), "worker-0");
  EXPECT_EQ(node.state, NodeState::kWaiting);
  EXPECT_EQ(node.wait, NodeWait::kQuota);
  EXPECT_EQ(node.wait_reason, "exceeded quota");
  EXPECT_EQ(node.waits_since, kept.waits_since);
  EXPECT_EQ(node.placed_limits, kept.placed_limits);
}

}  // namespace
}  // namespace muster::scaler
