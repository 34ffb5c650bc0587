#include "scaler/nodes/keeper_node.h"

#include <gtest/gtest.h>
#include <signal.h>

namespace muster::scaler {
namespace {

using std::chrono::seconds;
using Ending = NodePlan::Ending;

constexpr TimePoint kNow{seconds(100)};

class KeeperNodeTest : public ::testing::Test {
 protected:
  static KeeperNode Node(const NodePlan& plan) { return {"worker-3", {}, plan}; }
  static KeeperNode Node(KeeperNode::State state) {
    KeeperNode node = Node(NodePlan{.starts = 2, .pid = 4711});
    node.state = std::move(state);
    return node;
  }
  static KeeperNode::Reporting Gone(KeeperNode::Running life) {
    return {.life = life, .exit = {.node = "worker-3", .exit = {.signal = SIGKILL}}};
  }
};

TEST_F(KeeperNodeTest, APlanMakesANodeThatHasTheSamePlan) {
  for (const NodePlan::State state :
       {NodePlan::State::kIdle, NodePlan::State::kRunning, NodePlan::State::kFinished}) {
    const NodePlan plan{.role = NodeRole::kServer,
                        .state = state,
                        .starts = 3,
                        .exits = 2,
                        .leaves = 1,
                        .pid = 4711,
                        .limits = {.cpus = 1, .memory_bytes = 512},
                        .former_limits = Resources{.cpus = 2, .memory_bytes = 256}};
    EXPECT_EQ(Node(plan).plan(), plan) << static_cast<int>(state);
  }
  const NodePlan leaving{.state = NodePlan::State::kRunning, .starts = 1, .ending = Ending::kDrain};
  EXPECT_EQ(Node(leaving).plan(), leaving);
}

TEST_F(KeeperNodeTest, ItRunsForSuccessorsUntilItsExitIsDealtWith) {
  const KeeperNode node = Node(Gone({.ending = Ending::kRestart}));
  EXPECT_EQ(node.plan().state, NodePlan::State::kRunning);
  EXPECT_EQ(node.plan().ending, Ending::kRestart) << "an exit that was wanted is no crash";
  EXPECT_EQ(Node(KeeperNode::Waiting{.start_at = kNow}).plan().state, NodePlan::State::kIdle);
}

TEST_F(KeeperNodeTest, ProgressCountsForALifeThatTheMasterHasSeen) {
  EXPECT_FALSE(Node(KeeperNode::Running{.progress_at_start = 5}).progressed(6)) << "not seen";
  EXPECT_FALSE(Node(KeeperNode::Running{.progress_at_start = 5, .seen = true}).progressed(5));
  EXPECT_TRUE(Node(KeeperNode::Running{.progress_at_start = 5, .seen = true}).progressed(6));
  // Reports after its exit are not about this life.
  EXPECT_FALSE(Node(Gone({.progress_at_start = 5, .seen = true})).progressed(7));
  EXPECT_FALSE(Node(KeeperNode::Finished{}).progressed(7));
}

TEST_F(KeeperNodeTest, WhoIsToLeaveAfterThisLife) {
  EXPECT_TRUE(Node(KeeperNode::Running{.ending = Ending::kDrain}).leaving());
  EXPECT_TRUE(Node(Gone({.ending = Ending::kDrain})).leaving());
  EXPECT_FALSE(Node(KeeperNode::Running{.ending = Ending::kRestart}).leaving());
  EXPECT_FALSE(Node(KeeperNode::Waiting{}).leaving());
  KeeperNode server = Node(KeeperNode::Running{.ending = Ending::kDrain});
  server.role = NodeRole::kServer;
  EXPECT_FALSE(server.leaving()) << "it stays";
}

TEST_F(KeeperNodeTest, HowEachStateIsShown) {
  const KeptNode waiting = Node(KeeperNode::Waiting{}).Shown(0);
  EXPECT_EQ(waiting.state, KeptNode::State::kWaiting);
  EXPECT_EQ(waiting.pid, 0u) << "of the life before";
  const KeptNode running = Node(KeeperNode::Running{}).Shown(0);
  EXPECT_EQ(running.state, KeptNode::State::kRunning);
  EXPECT_EQ(running.pid, 4711u);
  EXPECT_FALSE(running.told_to_end);
  EXPECT_TRUE(Node(KeeperNode::Running{.stop_due = kNow}).Shown(0).told_to_end);
  EXPECT_TRUE(Node(KeeperNode::Running{.ending = Ending::kRestart}).Shown(0).told_to_end);
  const KeptNode draining = Node(KeeperNode::Running{.ending = Ending::kDrain}).Shown(0);
  EXPECT_EQ(draining.state, KeptNode::State::kDraining);
  EXPECT_TRUE(draining.told_to_end);
  const KeptNode gone = Node(Gone({.ending = Ending::kDrain})).Shown(0);
  EXPECT_EQ(gone.state, KeptNode::State::kReporting);
  EXPECT_EQ(gone.pid, 4711u);
  EXPECT_EQ(Node(KeeperNode::Finished{}).Shown(0).state, KeptNode::State::kFinished);
}

}  // namespace
}  // namespace muster::scaler
