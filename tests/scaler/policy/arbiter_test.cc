#include "scaler/policy/arbiter.h"

#include <gmock/gmock.h>

#include "tests/scaler/policy/fake_job.h"

namespace muster::scaler {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Verdict = Decision::Verdict;
using Kind = Proposal::Kind;

constexpr Resources kGiB{.cpus = 1, .memory_bytes = 1024 * kMiB};

class ArbiterTest : public ::testing::Test {
 protected:
  ArbiterTest() { job_.Add(NodeRole::kServer, 2, {}, kGiB).Add(NodeRole::kWorker, 3, {}, kGiB); }

  Proposal Relaunch(const std::string& node, Kind kind = Kind::kIntervention,
                    const std::string& policy = "worker-straggler") {
    return {.policy = policy,
            .action = Action::kRelaunch,
            .kind = kind,
            .target = node,
            .before = job_.Node(node).limits,
            .after = job_.Node(node).limits};
  }
  Proposal Limits(const std::string& node, Resources after, Kind kind = Kind::kIntervention) {
    return {.policy = "predicted-out-of-memory",
            .action = Action::kSetLimits,
            .kind = kind,
            .target = node,
            .before = job_.Node(node).limits,
            .after = after};
  }
  Proposal Workers(uint32_t after) {
    return {.policy = "worker-count",
            .action = Action::kSetWorkers,
            .target = "workers",
            .before = 3u,
            .after = after};
  }
  std::vector<Decision> Decide(std::vector<Proposal> proposals, int after_s = 1) {
    job_.view.now += seconds(after_s);
    return arbiter_.Decide(std::move(proposals), job_.view);
  }
  Decision One(const Proposal& proposal, int after_s = 1) {
    const std::vector<Decision> decisions = Decide({proposal}, after_s);
    EXPECT_THAT(decisions, SizeIs(1));
    return decisions.empty() ? Decision{.remark = "none"} : decisions[0];
  }
  /// The action on `node` comes to its end.
  void Relaunched(const std::string& node) { job_.Start(node); }

  FakeJob job_;
  Arbiter arbiter_;
};

TEST_F(ArbiterTest, WhatNothingSpeaksAgainstIsDone) {
  const Decision decision = One(Relaunch("worker-0"));
  EXPECT_EQ(decision.verdict, Verdict::kAct);
  EXPECT_EQ(decision.remark, "");
  EXPECT_EQ(decision.at, job_.view.now);
}

TEST_F(ArbiterTest, CooldownIsPerPolicyTargetAndAction) {
  EXPECT_EQ(One(Relaunch("worker-0")).verdict, Verdict::kAct);
  Relaunched("worker-0");
  const Decision again = One(Relaunch("worker-0"), 30);
  EXPECT_EQ(again.verdict, Verdict::kRefused);
  EXPECT_THAT(again.remark, HasSubstr("did the same to worker-0 less than 60 s ago"));
  EXPECT_EQ(One(Relaunch("worker-1")).verdict, Verdict::kAct);
  EXPECT_EQ(One(Relaunch("worker-0", Kind::kIntervention, "hang")).verdict, Verdict::kAct);
  Relaunched("worker-0");
  EXPECT_EQ(One(Relaunch("worker-0"), 40).verdict, Verdict::kAct);
}

TEST_F(ArbiterTest, ACooldownOfItsOwn) {
  Resources wanted = kGiB;
  for (int i = 0; i < 3; ++i) {
    wanted.memory_bytes += 256 * kMiB;
    EXPECT_EQ(One(Limits("ps-0", wanted), 10).verdict, Verdict::kAct);
    job_.Node("ps-0").limits = wanted;
  }
}

TEST_F(ArbiterTest, OneOpenActionPerNodeAndRepeatsArePassedOver) {
  EXPECT_EQ(One(Relaunch("worker-0")).verdict, Verdict::kAct);
  EXPECT_THAT(Decide({Relaunch("worker-0")}), IsEmpty());
  const Decision other = One(Limits("worker-0", {.cpus = 2, .memory_bytes = 2048 * kMiB}));
  EXPECT_EQ(other.verdict, Verdict::kRefused);
  EXPECT_THAT(other.remark, HasSubstr("in the middle of a relaunch by worker-straggler"));
  Relaunched("worker-0");
  EXPECT_EQ(One(Limits("worker-0", {.cpus = 2, .memory_bytes = 2048 * kMiB})).verdict,
            Verdict::kAct);
}

TEST_F(ArbiterTest, AnActionThatNeverEndsDoesNotKeepOthersAwayForEver) {
  One(Relaunch("worker-0"));
  EXPECT_EQ(One(Relaunch("worker-0", Kind::kIntervention, "hang"), 130).verdict, Verdict::kAct);
}

TEST_F(ArbiterTest, TwoPoliciesThatWantTheSameNodeAtOnce) {
  const std::vector<Decision> decisions =
      Decide({Relaunch("worker-0"), Relaunch("worker-0", Kind::kIntervention, "hang")});
  ASSERT_THAT(decisions, SizeIs(2));
  EXPECT_EQ(decisions[0].verdict, Verdict::kAct);
  EXPECT_EQ(decisions[1].verdict, Verdict::kRefused);
}

TEST_F(ArbiterTest, InterventionsPerHourRepairsAside) {
  Arbiter::Options options;
  options.interventions_per_hour = 2;
  arbiter_ = Arbiter(options);
  EXPECT_EQ(One(Relaunch("worker-0")).verdict, Verdict::kAct);
  EXPECT_EQ(One(Relaunch("worker-1")).verdict, Verdict::kAct);
  const Decision third = One(Relaunch("worker-2"));
  EXPECT_EQ(third.verdict, Verdict::kRefused);
  EXPECT_THAT(third.remark, HasSubstr("2 interventions within an hour"));
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(One(Relaunch("worker-2", Kind::kRepair, "crash-loop")).verdict, Verdict::kAct);
  }
  EXPECT_EQ(One(Relaunch("worker-2"), 3600).verdict, Verdict::kAct);
}

TEST_F(ArbiterTest, ARefusalIsToldOnceAndAgainWhenItsReasonChanges) {
  arbiter_.Pause("worker-straggler");
  const Decision refused = One(Relaunch("worker-0"));
  EXPECT_EQ(refused.verdict, Verdict::kRefused);
  EXPECT_THAT(refused.remark, HasSubstr("worker-straggler is paused"));
  for (int i = 0; i < 10; ++i) EXPECT_THAT(Decide({Relaunch("worker-0")}), IsEmpty());
  EXPECT_EQ(One(Relaunch("worker-0"), 600).verdict, Verdict::kRefused);
  arbiter_.Resume("worker-straggler");
  EXPECT_EQ(One(Relaunch("worker-0")).verdict, Verdict::kAct);
  Relaunched("worker-0");
  EXPECT_THAT(One(Relaunch("worker-0")).remark, HasSubstr("less than"));
}

TEST_F(ArbiterTest, APausedPolicyRepairsNothingEither) {
  arbiter_.Pause("out-of-memory");
  EXPECT_EQ(One(Relaunch("ps-0", Kind::kRepair, "out-of-memory")).verdict, Verdict::kRefused);
  EXPECT_THAT(arbiter_.paused(), ::testing::ElementsAre("out-of-memory"));
}

TEST_F(ArbiterTest, ADryRunTellsWhatItWouldDoAtTheSamePace) {
  arbiter_.SetDryRun(true);
  int told = 0;
  for (int i = 0; i < 120; ++i) {
    for (const Decision& decision : Decide({Relaunch("worker-0")})) {
      if (decision.verdict == Verdict::kDryRun) ++told;
      EXPECT_NE(decision.verdict, Verdict::kAct);
    }
  }
  EXPECT_EQ(told, 2);
}

TEST_F(ArbiterTest, LimitsAreCutToTheBudgetOrRefused) {
  job_.view.budget.memory_bytes = (5 * 1024 + 512) * kMiB;
  const Decision cut = One(Limits("ps-0", {.cpus = 1, .memory_bytes = 4096 * kMiB}));
  EXPECT_EQ(cut.verdict, Verdict::kAct);
  EXPECT_EQ(std::get<Resources>(cut.proposal.after).memory_bytes, 1536 * kMiB);
  EXPECT_THAT(cut.remark, HasSubstr("the job's budget allows 1 core, 1.5 GiB"));
  job_.Node("ps-0").limits.memory_bytes = 1536 * kMiB;
  const Decision refused = One(Limits("ps-1", {.cpus = 1, .memory_bytes = 4096 * kMiB}));
  EXPECT_EQ(refused.verdict, Verdict::kRefused);
  EXPECT_THAT(refused.remark, HasSubstr("as much as there is now"));
}

TEST_F(ArbiterTest, WhatIsGrantedInTheSameStepCounts) {
  job_.view.budget.memory_bytes = (5 * 1024 + 512) * kMiB;
  const Resources more{.cpus = 1, .memory_bytes = 1536 * kMiB};
  const std::vector<Decision> decisions = Decide({Limits("ps-0", more), Limits("ps-1", more)});
  ASSERT_THAT(decisions, SizeIs(2));
  EXPECT_EQ(decisions[0].verdict, Verdict::kAct);
  EXPECT_EQ(decisions[1].verdict, Verdict::kRefused);
}

TEST_F(ArbiterTest, ARepairIsDoneWithWhatThereIs) {
  job_.view.budget.memory_bytes = 5 * 1024 * kMiB;
  Proposal repair = Relaunch("ps-0", Kind::kRepair, "out-of-memory");
  repair.after = Resources{.cpus = 1, .memory_bytes = 1536 * kMiB};
  const Decision decision = One(repair);
  EXPECT_EQ(decision.verdict, Verdict::kAct);
  EXPECT_EQ(std::get<Resources>(decision.proposal.after), kGiB);
  EXPECT_THAT(decision.remark, HasSubstr("1.5 GiB"));
}

TEST_F(ArbiterTest, AMinimumIsKept) {
  job_.Node("ps-0").min.memory_bytes = 1500 * kMiB;
  const Decision decision = One(Limits("ps-0", {.cpus = 1, .memory_bytes = 1100 * kMiB}));
  EXPECT_EQ(std::get<Resources>(decision.proposal.after).memory_bytes, 1500 * kMiB);
  EXPECT_THAT(decision.remark, HasSubstr("minimum"));
}

TEST_F(ArbiterTest, WorkersAreCutToRangeAndBudget) {
  job_.view.workers_min = 1;
  job_.view.workers_max = 6;
  EXPECT_EQ(std::get<uint32_t>(One(Workers(9)).proposal.after), 6u);
  job_.view.budget.memory_bytes = 7 * 1024 * kMiB;
  const Decision cut = One(Workers(6), 200);
  EXPECT_EQ(std::get<uint32_t>(cut.proposal.after), 5u);
  EXPECT_THAT(cut.remark, HasSubstr("the job's budget allows 5"));
  job_.view.budget.memory_bytes = 5 * 1024 * kMiB;
  const Decision refused = One(Workers(6), 200);
  EXPECT_EQ(refused.verdict, Verdict::kRefused);
  EXPECT_THAT(refused.remark, HasSubstr("as many as there are"));
  EXPECT_EQ(One(Workers(2), 200).verdict, Verdict::kAct) << "fewer always fit";
}

TEST_F(ArbiterTest, StoppingTheJobComesFirstAndIsTheLast) {
  const Proposal stop{
      .policy = "crash-loop", .action = Action::kStopJob, .kind = Kind::kRepair, .target = "job"};
  const std::vector<Decision> decisions =
      Decide({Relaunch("worker-0"), Relaunch("ps-0", Kind::kRepair), stop});
  ASSERT_THAT(decisions, SizeIs(3));
  EXPECT_EQ(decisions[0].proposal.action, Action::kStopJob);
  EXPECT_EQ(decisions[0].verdict, Verdict::kAct);
  for (size_t i : {1, 2}) {
    EXPECT_EQ(decisions[i].verdict, Verdict::kRefused);
    EXPECT_EQ(decisions[i].remark, "the job is being stopped");
  }
}

TEST_F(ArbiterTest, ANodeThatIsGoneIsNoTarget) {
  Proposal proposal = Relaunch("worker-0");
  proposal.target = "worker-9";
  EXPECT_THAT(One(proposal).remark, HasSubstr("no node worker-9"));
}

}  // namespace
}  // namespace muster::scaler
