#include "scaler/policy/initial_resources.h"

#include <gmock/gmock.h>

#include "tests/scaler/model/fake_job.h"

namespace muster::scaler {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class InitialResourcesTest : public ::testing::Test {
 protected:
  InitialResourcesTest() {
    job_.Add(NodeRole::kServer, 1).Add(NodeRole::kWorker, 3);
    for (NodeView& node : job_.view.nodes) {
      node.state = NodeState::kPlanned;
      node.start = 0;
    }
    job_.view.machine = {.cpus = 4, .memory_bytes = 1000 * kMiB};
  }
  Resources After(const Proposal& proposal) { return std::get<Resources>(proposal.after); }
  FakeJob job_;
  InitialResourcesPolicy policy_;
};

TEST_F(InitialResourcesTest, WithoutHistoryAnEvenShareOfTheMachine) {
  const std::vector<Proposal> proposals = job_.Step(&policy_);
  ASSERT_THAT(proposals, SizeIs(4));
  for (const Proposal& proposal : proposals) {
    EXPECT_EQ(proposal.action, Action::kResize);
    EXPECT_EQ(proposal.kind, Proposal::Kind::kRepair);
    EXPECT_EQ(After(proposal), (Resources{.memory_bytes = 100 * kMiB}));
    EXPECT_THAT(proposal.because, HasSubstr("an even share of 50 %"));
    EXPECT_THAT(proposal.because, HasSubstr("known that trained for a minute, or to its end:"));
  }
  EXPECT_THAT(job_.Step(&policy_), IsEmpty()) << "said once";
}

TEST_F(InitialResourcesTest, ABudgetBelowTheMachineIsShared) {
  job_.view.budget.memory_bytes = 400 * kMiB;
  EXPECT_EQ(After(job_.Step(&policy_)[0]).memory_bytes, 50 * kMiB);
}

TEST_F(InitialResourcesTest, ABudgetAboveTheMachineIsNotThere) {
  job_.view.budget.memory_bytes = 4000 * kMiB;
  EXPECT_EQ(After(job_.Step(&policy_)[0]).memory_bytes, 100 * kMiB);
}

TEST_F(InitialResourcesTest, WhereTheMachineIsNotKnownTheBudgetIsShared) {
  job_.view.machine = {};
  job_.view.budget.memory_bytes = 400 * kMiB;
  EXPECT_EQ(After(job_.Step(&policy_)[0]).memory_bytes, 50 * kMiB);
}

TEST_F(InitialResourcesTest, NobodyGetsMoreCoresThanThereAre) {
  job_.view.history[NodeRole::kServer] = {
      .memory_peak_bytes = 100 * kMiB, .cpus_p95 = 1.6, .runs = 1};
  for (const double cores : {2.0, 0.0}) {
    job_.view.machine.cpus = cores;
    policy_ = InitialResourcesPolicy();
    EXPECT_NEAR(After(job_.Step(&policy_)[0]).cpus, cores > 0 ? cores : 2.4, 1e-9);
  }
}

TEST_F(InitialResourcesTest, HistoryOfTheSameJobIsAWarmStart) {
  job_.view.history[NodeRole::kServer] = {
      .memory_peak_bytes = 100 * kMiB, .cpus_p95 = 0.4, .runs = 2};
  job_.view.history[NodeRole::kWorker] = {
      .memory_peak_bytes = 50 * kMiB, .cpus_p95 = 1.6, .runs = 2};
  const std::vector<Proposal> proposals = job_.Step(&policy_);
  ASSERT_THAT(proposals, SizeIs(4));
  EXPECT_EQ(After(proposals[0]), (Resources{.cpus = 1, .memory_bytes = 150 * kMiB}));
  EXPECT_EQ(After(proposals[1]).memory_bytes, 75 * kMiB);
  EXPECT_NEAR(After(proposals[1]).cpus, 2.4, 1e-9);
  EXPECT_EQ(Figure(proposals[0], "memory peak of earlier runs"), 100.0 * kMiB);
  EXPECT_THAT(proposals[0].because, HasSubstr("in 2 earlier runs"));
}

TEST_F(InitialResourcesTest, ASmallPeakIsNoTightLimit) {
  job_.view.history[NodeRole::kServer] = {.memory_peak_bytes = 6 * kMiB, .runs = 1};
  EXPECT_EQ(After(job_.Step(&policy_)[0]).memory_bytes, 64 * kMiB);
}

TEST_F(InitialResourcesTest, WhatDoesNotFitIsScaledDown) {
  job_.view.history[NodeRole::kServer] = {.memory_peak_bytes = 400 * kMiB, .runs = 1};
  job_.view.history[NodeRole::kWorker] = {.memory_peak_bytes = 400 * kMiB, .runs = 1};
  uint64_t sum = 0;
  for (const Proposal& proposal : job_.Step(&policy_)) sum += After(proposal).memory_bytes;
  EXPECT_LE(sum, 804 * kMiB);
  EXPECT_GE(sum, 796 * kMiB);
}

TEST_F(InitialResourcesTest, WhoeverNamesSomethingKeepsIt) {
  job_.Node("ps-0").requested = job_.Node("ps-0").limits = {.memory_bytes = 500 * kMiB};
  const std::vector<Proposal> proposals = job_.Step(&policy_);
  ASSERT_THAT(proposals, SizeIs(3));
  // The rest is shared by the others.
  EXPECT_EQ(After(proposals[0]).memory_bytes, 50 * kMiB);
}

TEST_F(InitialResourcesTest, ARunningNodeIsNotTouchedAndAnUnknownMachineIsNotShared) {
  job_.view.machine = {};
  EXPECT_THAT(job_.Step(&policy_), IsEmpty());
  job_.view.machine = {.memory_bytes = 1000 * kMiB};
  for (NodeView& node : job_.view.nodes) node.start = 1;
  EXPECT_THAT(job_.Step(&policy_), IsEmpty());
}

}  // namespace
}  // namespace muster::scaler
