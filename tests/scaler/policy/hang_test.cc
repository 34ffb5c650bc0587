#include "scaler/policy/hang.h"

#include <gmock/gmock.h>

#include "tests/scaler/policy/fake_job.h"

namespace muster::scaler {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class HangTest : public ::testing::Test {
 protected:
  HangTest() { job_.Add(NodeRole::kServer, 1).Add(NodeRole::kWorker, 2); }
  /// Seconds until something is proposed, which is carried out; 0 = nothing in `seconds`.
  int Act(int seconds, std::vector<Proposal>* proposals) {
    for (int second = 1; second <= seconds; ++second) {
      *proposals = job_.Run(&policy_, 1);
      if (proposals->empty()) continue;
      for (const Proposal& proposal : *proposals) job_.CarryOut(proposal);
      return second;
    }
    return 0;
  }
  void Freeze(const std::string& worker, double cpus) {
    job_.loads[worker].minibatches = 0;
    job_.loads[worker].cpus = cpus;
  }
  FakeJob job_;
  HangPolicy policy_;
  std::vector<Proposal> proposals_;
};

TEST_F(HangTest, FirstTheStacksThenARelaunch) {
  EXPECT_THAT(job_.Run(&policy_, 60), IsEmpty());
  Freeze("worker-1", 0);
  EXPECT_EQ(Act(100, &proposals_), 60);
  ASSERT_THAT(Actions(proposals_), ElementsAre(Action::kDumpStacks));
  EXPECT_EQ(proposals_[0].target, "worker-1");
  EXPECT_NEAR(Figure(proposals_[0], "time without a minibatch"), 60, 1);
  EXPECT_EQ(Act(100, &proposals_), 5);
  ASSERT_THAT(Actions(proposals_), ElementsAre(Action::kRelaunch));
  EXPECT_THAT(proposals_[0].because, HasSubstr("its stacks are in its log"));
  job_.loads["worker-1"] = {};
  EXPECT_EQ(Act(300, &proposals_), 0);
}

TEST_F(HangTest, ProgressAfterTheStacksEndsIt) {
  job_.Run(&policy_, 10);
  Freeze("worker-1", 0);
  EXPECT_GT(Act(100, &proposals_), 0);
  job_.loads["worker-1"] = {};
  EXPECT_EQ(Act(100, &proposals_), 0);
}

TEST_F(HangTest, WithoutWorkNobodyHangs) {
  job_.Run(&policy_, 10);
  Freeze("worker-1", 0);
  job_.loads["worker-1"].shards_held = 0;
  EXPECT_EQ(Act(1000, &proposals_), 0);
}

TEST_F(HangTest, WhileAServerIsAwayOrTheJobReplaysNobodyHangs) {
  job_.Run(&policy_, 10);
  Freeze("worker-0", 0);
  Freeze("worker-1", 0);
  job_.Node("ps-0").state = NodeState::kDown;
  EXPECT_EQ(Act(500, &proposals_), 0);
  job_.Node("ps-0").state = NodeState::kRunning;
  job_.view.activity = Activity::kReplaying;
  EXPECT_EQ(Act(500, &proposals_), 0);
}

TEST_F(HangTest, WhereAllStandStillTheyHaveLongerUnlessOneLoops) {
  job_.Run(&policy_, 10);
  Freeze("worker-0", 0);
  Freeze("worker-1", 0);
  EXPECT_EQ(Act(500, &proposals_), 180);
  EXPECT_EQ(proposals_.size(), 2u);

  job_ = FakeJob();
  policy_ = HangPolicy();
  job_.Add(NodeRole::kServer, 1).Add(NodeRole::kWorker, 2);
  job_.Run(&policy_, 10);
  Freeze("worker-0", 0);
  Freeze("worker-1", 1.0);
  EXPECT_EQ(Act(500, &proposals_), 60);
  ASSERT_EQ(proposals_.size(), 1u);
  EXPECT_EQ(proposals_[0].target, "worker-1");
}

TEST_F(HangTest, SlowMinibatchesAreNoHang) {
  const auto slow = [this](int second) {
    for (const char* worker : {"worker-0", "worker-1"}) {
      job_.loads[worker].minibatches = second % 100 == 0 ? 1 : 0;
    }
  };
  EXPECT_THAT(job_.Run(&policy_, 2000, slow), IsEmpty());
  Freeze("worker-1", 0);
  EXPECT_THAT(job_.Run(&policy_, 250,
                       [&](int s) { job_.loads["worker-0"].minibatches = s % 100 == 0 ? 1 : 0; }),
              IsEmpty());
  EXPECT_GT(Act(1000, &proposals_), 0);
}

TEST_F(HangTest, TheFirstMinibatchMayTakeLong) {
  Freeze("worker-1", 0.2);
  EXPECT_EQ(Act(290, &proposals_), 0);
  EXPECT_GT(Act(20, &proposals_), 0);
}

TEST_F(HangTest, ALostNodeIsTheKeepersBusiness) {
  job_.Run(&policy_, 10);
  Freeze("worker-1", 0);
  job_.Node("worker-1").state = NodeState::kLost;
  EXPECT_EQ(Act(500, &proposals_), 0);
}

}  // namespace
}  // namespace muster::scaler
