#include "scaler/nodes/kept_workers.h"

#include <gmock/gmock.h>

#include <utility>

#include "base/words/limits.h"

namespace muster::scaler {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;
using Ending = NodePlan::Ending;

constexpr Resources kUsual{.cpus = 1, .memory_bytes = 512};
constexpr Resources kMoreMemory{.cpus = 1, .memory_bytes = 768};
constexpr Resources kMoreCpus{.cpus = 2, .memory_bytes = 256};

class KeptWorkersTest : public ::testing::Test {
 protected:
  KeeperNode& Add(const std::string& name, const NodePlan& plan, KeeperNode::State state) {
    KeeperNode& node = nodes_.try_emplace(name, name, RestartPolicy::Options{}, plan).first->second;
    node.state = std::move(state);
    return node;
  }
  KeeperNode& AddRunning(const std::string& name, Ending ending = Ending::kNone) {
    return Add(name, {.starts = 1, .limits = kUsual}, KeeperNode::Running{.ending = ending});
  }
  bool Waits(const std::string& name) const { return nodes_.at(name).is<KeeperNode::Waiting>(); }

  KeeperNodes nodes_;
  KeptWorkers workers_{{.restarts = {}, .limits = kUsual}, 2};
};

TEST_F(KeptWorkersTest, WhoLivesAndGoesOnByNumber) {
  Add("ps-0", {.role = NodeRole::kServer}, KeeperNode::Running{});
  AddRunning("worker-10");
  AddRunning("worker-9");
  AddRunning("worker-8", Ending::kDrain);
  AddRunning("worker-7", Ending::kRestart);
  Add("worker-6", {}, KeeperNode::Waiting{});
  Add("worker-5", {}, KeeperNode::Finished{});
  Add("worker-4", {}, KeeperNode::Reporting{.life = {.ending = Ending::kDrain}, .exit = {}});
  Add("worker-3", {}, KeeperNode::Reporting{.life = {}, .exit = {}});
  EXPECT_THAT(KeptWorkers::Living(nodes_),
              ElementsAre(Pair(3, "worker-3"), Pair(6, "worker-6"), Pair(7, "worker-7"),
                          Pair(9, "worker-9"), Pair(10, "worker-10")));
  workers_.WantTheLiving(nodes_);
  EXPECT_EQ(workers_.wanted(), 5u);
}

TEST_F(KeptWorkersTest, NewOnesWaitWithTheLowestFreeNumbers) {
  AddRunning("worker-1");
  AddRunning("worker-2", Ending::kDrain);  // it has its name until it has ended
  EXPECT_THAT(workers_.Want(3, &nodes_), IsEmpty());
  EXPECT_EQ(workers_.wanted(), 3u);
  ASSERT_THAT(nodes_, SizeIs(4));
  EXPECT_TRUE(Waits("worker-0"));
  EXPECT_TRUE(Waits("worker-3"));
  EXPECT_EQ(nodes_.at("worker-3").role, NodeRole::kWorker);
}

TEST_F(KeptWorkersTest, AFinishedOneBeginsAnewButForItsStartsAndWhatItNeeded) {
  AddRunning("worker-0").limits = kMoreCpus;
  Add("worker-1", {.starts = 7, .exits = 2, .leaves = 3, .limits = kMoreMemory},
      KeeperNode::Finished{});
  workers_.Want(2, &nodes_);
  ASSERT_TRUE(Waits("worker-1"));
  const NodePlan plan = nodes_.at("worker-1").plan();
  EXPECT_EQ(plan.starts, 7u);
  EXPECT_EQ(plan.exits, 0u);
  EXPECT_EQ(plan.leaves, 0u);
  EXPECT_EQ(plan.limits, (Resources{.cpus = 2, .memory_bytes = 768}));
}

TEST_F(KeptWorkersTest, TheHighestNumbersLeaveWhateverTheyDo) {
  AddRunning("worker-0");
  Add("worker-2", {}, KeeperNode::Waiting{});
  Add("worker-9", {}, KeeperNode::Reporting{.life = {}, .exit = {}});
  AddRunning("worker-10");
  EXPECT_THAT(workers_.Want(1, &nodes_), ElementsAre("worker-10", "worker-9", "worker-2"));
  EXPECT_TRUE(nodes_.at("worker-10").leaving());
  EXPECT_TRUE(nodes_.at("worker-9").leaving());
  EXPECT_TRUE(nodes_.at("worker-2").is<KeeperNode::Finished>()) << "nothing needs to wait for it";
  EXPECT_FALSE(nodes_.at("worker-0").leaving());
  EXPECT_THAT(workers_.Want(1, &nodes_), IsEmpty());
}

TEST_F(KeptWorkersTest, WhoLeavesDoesSoOnce) {
  KeeperNode& worker = AddRunning("worker-0", Ending::kRestart);
  EXPECT_TRUE(KeptWorkers::Leave(&worker)) << "it was to come again";
  EXPECT_FALSE(KeptWorkers::Leave(&worker));
  EXPECT_FALSE(KeptWorkers::Leave(&Add("worker-1", {}, KeeperNode::Finished{})));
}

TEST_F(KeptWorkersTest, ANewOneHasAtLeastWhatEachPeerHas) {
  EXPECT_EQ(workers_.LimitsOfNew(nodes_), kUsual) << "there are none";
  AddRunning("worker-0").limits = kMoreMemory;
  AddRunning("worker-1").limits = kMoreCpus;
  AddRunning("worker-2", Ending::kDrain).limits = {.cpus = 9, .memory_bytes = 9'000};
  EXPECT_EQ(workers_.LimitsOfNew(nodes_), (Resources{.cpus = 2, .memory_bytes = 768}));
  AddRunning("worker-3").limits = {.cpus = 1, .memory_bytes = 0};
  EXPECT_EQ(workers_.LimitsOfNew(nodes_), (Resources{.cpus = 2, .memory_bytes = 0}))
      << "nothing is larger than none";
}

TEST_F(KeptWorkersTest, ThereIsAnEndToMore) {
  workers_.Want(kWorkersMax + 1, &nodes_);
  EXPECT_EQ(workers_.wanted(), kWorkersMax);
  EXPECT_THAT(nodes_, SizeIs(kWorkersMax));
}

}  // namespace
}  // namespace muster::scaler
