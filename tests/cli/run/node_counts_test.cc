#include "cli/run/node_counts.h"

#include <gtest/gtest.h>

#include <string>

namespace muster {
namespace {

void AddWorker(NodeState state, DrainState drain, JobStatus* status) {
  NodeStatus& node = status->nodes.emplace_back();
  node.name = "worker-" + std::to_string(status->nodes.size() - 1);
  node.state = state;
  node.drain = drain;
  node.restarts = 1;
}

TEST(NodeCountsTest, WorkersThatWereSentAwayAreNotWanted) {
  JobStatus status;
  EXPECT_EQ(WorkersWanted(std::nullopt, nullptr, 4), 4u);
  AddWorker(NodeState::kRunning, DrainState::kNone, &status);
  EXPECT_EQ(WorkersWanted(std::nullopt, &status, 4), 4u) << "the others are yet to come";
  AddWorker(NodeState::kExited, DrainState::kNone, &status);
  AddWorker(NodeState::kExited, DrainState::kDrained, &status);
  AddWorker(NodeState::kRunning, DrainState::kDraining, &status);
  EXPECT_EQ(WorkersWanted(std::nullopt, &status, 4), 3u);
  EXPECT_EQ(CountRunning(status, NodeRole::kWorker), 2u);
  EXPECT_EQ(CountRunning(status, NodeRole::kServer), 0u);
  EXPECT_EQ(CountRestarts(status, NodeRole::kWorker), 4u);
}

TEST(NodeCountsTest, ThePlanKnowsWhoWasSentAwayWhenTheMasterHasForgotten) {
  JobStatus status;
  for (int i = 0; i < 2; ++i) AddWorker(NodeState::kRunning, DrainState::kNone, &status);
  for (int i = 0; i < 2; ++i) AddWorker(NodeState::kExited, DrainState::kNone, &status);
  EXPECT_EQ(WorkersWanted(2, &status, 4), 2u);
  EXPECT_EQ(WorkersWanted(6, &status, 4), 6u) << "two are yet to come";
}

}  // namespace
}  // namespace muster
