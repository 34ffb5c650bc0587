#include <gmock/gmock.h>

#include "scaler/policy/arbiter.h"
#include "scaler/policy/policies.h"
#include "tests/scaler/model/fake_job.h"

/// All policies and the arbiter over a job that does what is decided.
namespace muster::scaler {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class ClosedLoopTest : public ::testing::Test {
 protected:
  /// One second: what runs out of memory is killed, everything is looked at, what is decided is
  /// done.
  void Second() {
    job_.Tick();
    for (NodeView& node : job_.view.nodes) {
      const double limit = static_cast<double>(node.limits.memory_bytes) / kMiB;
      if (node.state != NodeState::kRunning || limit == 0) continue;
      if (job_.loads[node.name].memory_mib > limit) {
        job_.End(node.name, EndCause::kKernelOutOfMemory);
        ++kills_;
      }
    }
    const JobView view = job_.view;
    job_.view.ends.clear();
    job_.view.taken.clear();
    for (const Decision& decision : arbiter_.Decide(StepAll(policies_, view), view)) {
      if (decision.verdict == Decision::Verdict::kAct) {
        acted_.push_back(decision.proposal);
        if (decision.proposal.action == Action::kStopJob) stopped_ = true;
        job_.CarryOut(decision.proposal);
      }
      if (decision.verdict == Decision::Verdict::kDryRun) ++dry_;
    }
    // Whoever is down is started again as it was, whatever policies say.
    for (NodeView& node : job_.view.nodes) {
      if (node.state == NodeState::kExited && !stopped_) job_.Start(node.name);
    }
  }
  /// A table that grows: the server's memory follows what was trained.
  void Grow(int seconds, double mib_per_second) {
    for (int i = 0; i < seconds && !stopped_; ++i) {
      job_.loads["ps-0"].memory_mib += mib_per_second;
      Second();
    }
  }
  std::vector<std::string> Who() const {
    std::vector<std::string> who;
    for (const Proposal& proposal : acted_) who.push_back(proposal.policy);
    return who;
  }

  FakeJob job_ = FakeJob()
                     .Add(NodeRole::kServer, 2, {.memory_mib = 300}, {.memory_bytes = 512 * kMiB})
                     .Add(NodeRole::kWorker, 2);
  std::vector<std::unique_ptr<Policy>> policies_ = MakePolicies();
  Arbiter arbiter_;
  std::vector<Proposal> acted_;
  int kills_ = 0;
  int dry_ = 0;
  bool stopped_ = false;
};

TEST_F(ClosedLoopTest, GrowthIsMetBeforeAnyKill) {
  Grow(600, 3);
  EXPECT_EQ(kills_, 0);
  EXPECT_THAT(Who(), Each("predicted-out-of-memory"));
  EXPECT_THAT(Who(), SizeIs(::testing::AllOf(::testing::Ge(2u), ::testing::Le(4u))));
}

TEST_F(ClosedLoopTest, WithoutPredictionEveryKillIsMetOnce) {
  arbiter_.Pause("predicted-out-of-memory");
  Grow(600, 3);
  EXPECT_EQ(kills_, 4);  // at 512, 768, 1152 and 1728 MiB
  EXPECT_THAT(Who(),
              ElementsAre("out-of-memory", "out-of-memory", "out-of-memory", "out-of-memory"));
}

TEST_F(ClosedLoopTest, AtTheBoundTheJobStops) {
  job_.Node("ps-0").max.memory_bytes = 1024 * kMiB;
  Grow(600, 3);
  EXPECT_TRUE(stopped_);
  EXPECT_EQ(kills_, 1);
  EXPECT_EQ(acted_.back().action, Action::kStopJob);
}

TEST_F(ClosedLoopTest, ADryRunDoesNothing) {
  arbiter_ = Arbiter({.dry_run = true});
  Grow(600, 3);
  EXPECT_GT(kills_, 4);
  EXPECT_GT(dry_, 4);
  EXPECT_THAT(acted_, IsEmpty());
  EXPECT_EQ(job_.Node("ps-0").limits.memory_bytes, 512 * kMiB);
}

TEST_F(ClosedLoopTest, AStragglerIsRestartedOnceAndThatIsAll) {
  for (int i = 0; i < 60; ++i) Second();
  job_.loads["worker-1"] = {.minibatches = 10, .computing_us = 40'000};
  for (int i = 0; i < 300; ++i) {
    if (job_.Node("worker-1").start > 1) job_.loads["worker-1"] = {};
    Second();
  }
  EXPECT_THAT(Who(), ElementsAre("worker-straggler"));
}

TEST_F(ClosedLoopTest, AHangIsDumpedThenRestarted) {
  for (int i = 0; i < 60; ++i) Second();
  job_.loads["worker-1"].minibatches = 0;
  for (int i = 0; i < 300; ++i) {
    if (job_.Node("worker-1").start > 1) job_.loads["worker-1"] = {};
    Second();
  }
  EXPECT_THAT(Actions(acted_), ElementsAre(Action::kDumpStacks, Action::kRestart));
}

}  // namespace
}  // namespace muster::scaler
