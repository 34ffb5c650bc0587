#include "scaler/policy/no_room.h"

#include <gmock/gmock.h>

#include "tests/scaler/model/fake_job.h"

namespace muster::scaler {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr Resources kSmall{.cpus = 1, .memory_bytes = 1'024 * kMiB};
constexpr Resources kBig{.cpus = 1, .memory_bytes = 1'536 * kMiB};

class NoRoomTest : public ::testing::Test {
 protected:
  NoRoomTest() {
    job_.Add(NodeRole::kServer, 1, {}, kSmall).Add(NodeRole::kWorker, 4, {}, kSmall);
    job_.view.workers_min = 2;
    job_.view.workers_max = 6;
    for (NodeView& node : job_.view.nodes) node.placed_limits = kSmall;
  }
  void Hold(const std::string& name, NodeWait wait = NodeWait::kUnschedulable) {
    NodeView& node = job_.Node(name);
    node.state = NodeState::kWaiting;
    node.wait = wait;
    node.wait_reason = "0/3 nodes are available";
    node.waits_since = job_.view.now;
    node.samples.clear();
  }
  void Place(const std::string& name) {
    job_.Start(name);
    job_.Node(name).wait = NodeWait::kNone;
  }
  /// As the keeper does it: those without a place go first.
  void Scale(const Proposal& proposal) {
    job_.NoteTaken(proposal);
    const uint32_t before = std::get<uint32_t>(proposal.before);
    const uint32_t after = std::get<uint32_t>(proposal.after);
    for (uint32_t n = before; n > after; --n) {
      const auto waits = std::ranges::find(job_.view.nodes, NodeState::kWaiting, &NodeView::state);
      ASSERT_NE(waits, job_.view.nodes.end());
      job_.view.nodes.erase(waits);
    }
    for (uint32_t n = before; n < after; ++n) {
      NodeView node = job_.Node("worker-0");
      node.name = fmt::format("worker-{}", n);
      node.start = 0;
      job_.loads[node.name] = {};
      job_.view.nodes.push_back(node);
      Hold(node.name);
    }
  }
  std::vector<Proposal> Run(int seconds) { return job_.Run(&policy_, seconds); }
  /// Until something is proposed, and does it; the seconds until then.
  int RunUntilScaled() {
    for (int second = 1; second <= 5'000; ++second) {
      const std::vector<Proposal> proposals = Run(1);
      if (proposals.empty()) continue;
      Scale(proposals.at(0));
      return second;
    }
    return 0;
  }

  FakeJob job_;
  NoRoomOptions options_;
  NoRoomPolicy policy_;
};

TEST_F(NoRoomTest, WithAPlaceForAllNothingIsDone) {
  EXPECT_THAT(Run(1'000), IsEmpty());
}

TEST_F(NoRoomTest, FewerWorkersAreWantedWhenSomeHaveWaitedTooLong) {
  Hold("worker-1");
  Hold("worker-3", NodeWait::kQuota);
  EXPECT_THAT(Run(299), IsEmpty()) << "an autoscaler may still help";
  const std::vector<Proposal> proposals = Run(1);
  ASSERT_THAT(proposals, SizeIs(1));
  EXPECT_EQ(proposals[0].action, Action::kScale);
  EXPECT_EQ(std::get<uint32_t>(proposals[0].before), 4u);
  EXPECT_EQ(std::get<uint32_t>(proposals[0].after), 2u);
  EXPECT_THAT(proposals[0].because, HasSubstr("0/3 nodes are available"));
  EXPECT_THAT(proposals[0].because, HasSubstr("more are tried in 300 s"));
  EXPECT_EQ(Figure(proposals[0], "workers without a place"), 2);
}

TEST_F(NoRoomTest, NotBelowTheMinimum) {
  for (const char* name : {"worker-1", "worker-2", "worker-3"}) Hold(name);
  const std::vector<Proposal> proposals = Run(300);
  ASSERT_THAT(proposals, SizeIs(1));
  EXPECT_EQ(std::get<uint32_t>(proposals[0].after), 2u);
  Scale(proposals[0]);
  EXPECT_THAT(Run(1'000), IsEmpty()) << "one more waits, and may go on";
}

TEST_F(NoRoomTest, AFixedNumberOfWorkersWaits) {
  job_.view.workers_min = job_.view.workers_max = 4;
  Hold("worker-1");
  EXPECT_THAT(Run(1'000), IsEmpty());
}

TEST_F(NoRoomTest, OnlyAWantOfRoomIsAnsweredWithFewer) {
  Hold("worker-0", NodeWait::kImage);
  Hold("worker-1", NodeWait::kForbidden);
  Hold("worker-2", NodeWait::kConfig);
  Hold("worker-3", NodeWait::kUnreachable);
  EXPECT_THAT(Run(1'000), IsEmpty());
}

TEST_F(NoRoomTest, AServerThatNeverHadMoreIsLeftWaiting) {
  Hold("ps-0");
  EXPECT_THAT(Run(1'000), IsEmpty());
}

TEST_F(NoRoomTest, TheyAreTriedAgainLaterEachTime) {
  Hold("worker-3");
  EXPECT_EQ(RunUntilScaled(), 300) << "given up";
  EXPECT_EQ(RunUntilScaled(), 300) << "tried again";
  EXPECT_EQ(RunUntilScaled(), 300) << "given up";
  EXPECT_EQ(RunUntilScaled(), 600) << "tried again";
  EXPECT_EQ(RunUntilScaled(), 300);
  EXPECT_EQ(RunUntilScaled(), 1'200);
  EXPECT_EQ(RunUntilScaled(), 300);
  EXPECT_EQ(RunUntilScaled(), 2'400);
  EXPECT_EQ(RunUntilScaled(), 300);
  EXPECT_EQ(RunUntilScaled(), 3'600) << "at the most";
}

TEST_F(NoRoomTest, ThoseThatWereGivenUpOneAfterTheOtherAreAllTriedAgain) {
  Hold("worker-2");
  EXPECT_THAT(Run(100), IsEmpty());
  Hold("worker-3");
  EXPECT_EQ(RunUntilScaled(), 200) << "worker-2 is given up";
  EXPECT_EQ(RunUntilScaled(), 100) << "worker-3 is given up";
  EXPECT_EQ(RunUntilScaled(), 600) << "tried again";
  EXPECT_THAT(job_.view.nodes, SizeIs(5)) << "a server and four workers";
}

TEST_F(NoRoomTest, APlaceForAWhileEndsTheDoubling) {
  Hold("worker-3");
  EXPECT_EQ(RunUntilScaled(), 300);
  EXPECT_EQ(RunUntilScaled(), 300);
  Place("worker-3");
  EXPECT_THAT(Run(302), IsEmpty());
  Hold("worker-3");
  EXPECT_EQ(RunUntilScaled(), 300);
  EXPECT_EQ(RunUntilScaled(), 300) << "as the first time";
}

TEST_F(NoRoomTest, ASuccessorTriesThemAgain) {
  // What the scaler before it did is told once.
  job_.view.taken = {{.policy = "no-room",
                      .target = "workers",
                      .action = Action::kScale,
                      .at = job_.view.now - seconds(100),
                      .workers_before = 6,
                      .workers_after = 4}};
  EXPECT_THAT(Run(199), IsEmpty());
  const std::vector<Proposal> proposals = Run(1);
  ASSERT_THAT(proposals, SizeIs(1));
  EXPECT_EQ(std::get<uint32_t>(proposals[0].after), 6u);
}

TEST_F(NoRoomTest, AnotherNumberOfWorkersEndsTheTries) {
  Hold("worker-3");
  const std::vector<Proposal> proposals = Run(300);
  ASSERT_THAT(proposals, SizeIs(1));
  Scale(proposals[0]);
  Run(1);
  job_.NoteTaken({.policy = "", .action = Action::kScale, .target = "workers"});
  EXPECT_THAT(Run(1'000), IsEmpty()) << "a person chose it";
}

TEST_F(NoRoomTest, ALargerRequestIsTakenBackAfterAWhile) {
  job_.Node("ps-0").limits = kBig;
  Hold("ps-0");
  EXPECT_THAT(Run(59), IsEmpty());
  const std::vector<Proposal> proposals = Run(1);
  ASSERT_THAT(proposals, SizeIs(1));
  EXPECT_EQ(proposals[0].action, Action::kRestart);
  EXPECT_EQ(proposals[0].kind, Proposal::Kind::kRepair);
  EXPECT_EQ(proposals[0].target, "ps-0");
  EXPECT_EQ(std::get<Resources>(proposals[0].after), kSmall);
  EXPECT_THAT(proposals[0].because, HasSubstr("no machine has room for it: 0/3 nodes"));
}

TEST_F(NoRoomTest, AProposalForLessIsRepeatedButNotEverySecond) {
  job_.Node("ps-0").limits = kBig;
  Hold("ps-0");
  EXPECT_THAT(Run(240), SizeIs(4)) << "nobody has carried it out";
  Hold("ps-0");
  EXPECT_THAT(Run(60), SizeIs(1)) << "it waits anew";
}

TEST_F(NoRoomTest, NoLimitIsALargerRequestAndASmallerOneIsNone) {
  job_.Node("ps-0").limits = {.cpus = 0, .memory_bytes = kSmall.memory_bytes};
  Hold("ps-0");
  job_.Node("worker-0").limits = {.cpus = 0.5, .memory_bytes = kSmall.memory_bytes / 2};
  job_.view.workers_min = job_.view.workers_max = 4;
  Hold("worker-0");
  const std::vector<Proposal> proposals = Run(60);
  ASSERT_THAT(proposals, SizeIs(1));
  EXPECT_EQ(proposals[0].target, "ps-0");
}

TEST_F(NoRoomTest, AWorkerWithALargerRequestIsNotGivenUp) {
  job_.Node("worker-3").limits = kBig;
  Hold("worker-3");
  for (const Proposal& proposal : Run(400)) EXPECT_EQ(proposal.target, "worker-3");
}

TEST_F(NoRoomTest, AJobThatDrainsNeedsItsServersOnly) {
  job_.view.activity = Activity::kDraining;
  job_.Node("ps-0").limits = kBig;
  Hold("ps-0");
  Hold("worker-3");
  for (const Proposal& proposal : Run(400)) EXPECT_EQ(proposal.target, "ps-0");
  job_.view.activity = Activity::kOver;
  EXPECT_THAT(Run(400), IsEmpty());
}

}  // namespace
}  // namespace muster::scaler
