#include "scaler/policy/arbiter.h"

#include <gmock/gmock.h>

#include "tests/scaler/model/fake_job.h"

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

  Proposal Restart(const std::string& node, Kind kind = Kind::kIntervention,
                   const std::string& policy = "worker-straggler") {
    return {.policy = policy,
            .action = Action::kRestart,
            .kind = kind,
            .target = node,
            .before = job_.Node(node).limits,
            .after = job_.Node(node).limits};
  }
  Proposal Limits(const std::string& node, Resources after, Kind kind = Kind::kIntervention) {
    return {.policy = "predicted-out-of-memory",
            .action = Action::kResize,
            .kind = kind,
            .target = node,
            .before = job_.Node(node).limits,
            .after = after};
  }
  Proposal Workers(uint32_t after) {
    return {.policy = "worker-count",
            .action = Action::kScale,
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
  void Restarted(const std::string& node) { job_.Start(node); }

  FakeJob job_;
  Arbiter arbiter_;
};

TEST_F(ArbiterTest, WhatNothingSpeaksAgainstIsDone) {
  const Decision decision = One(Restart("worker-0"));
  EXPECT_EQ(decision.verdict, Verdict::kAct);
  EXPECT_EQ(decision.remark, "");
  EXPECT_EQ(decision.at, job_.view.now);
}

TEST_F(ArbiterTest, CooldownIsPerPolicyTargetAndAction) {
  EXPECT_EQ(One(Restart("worker-0")).verdict, Verdict::kAct);
  Restarted("worker-0");
  const Decision again = One(Restart("worker-0"), 30);
  EXPECT_EQ(again.verdict, Verdict::kRefused);
  EXPECT_THAT(again.remark, HasSubstr("did the same to worker-0 less than 60 s ago"));
  EXPECT_EQ(One(Restart("worker-1")).verdict, Verdict::kAct);
  EXPECT_EQ(One(Restart("worker-0", Kind::kIntervention, "hang")).verdict, Verdict::kAct);
  Restarted("worker-0");
  EXPECT_EQ(One(Restart("worker-0"), 40).verdict, Verdict::kAct);
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
  EXPECT_EQ(One(Restart("worker-0")).verdict, Verdict::kAct);
  EXPECT_THAT(Decide({Restart("worker-0")}), IsEmpty());
  const Decision other = One(Limits("worker-0", {.cpus = 2, .memory_bytes = 2048 * kMiB}));
  EXPECT_EQ(other.verdict, Verdict::kRefused);
  EXPECT_THAT(other.remark, HasSubstr("by worker-straggler is still in progress"));
  Restarted("worker-0");
  EXPECT_EQ(One(Limits("worker-0", {.cpus = 2, .memory_bytes = 2048 * kMiB})).verdict,
            Verdict::kAct);
}

TEST_F(ArbiterTest, AnActionThatNeverEndsDoesNotKeepOthersAwayForEver) {
  One(Restart("worker-0"));
  EXPECT_EQ(One(Restart("worker-0", Kind::kIntervention, "hang"), 130).verdict, Verdict::kAct);
}

TEST_F(ArbiterTest, TwoPoliciesThatWantTheSameNodeAtOnce) {
  const std::vector<Decision> decisions =
      Decide({Restart("worker-0"), Restart("worker-0", Kind::kIntervention, "hang")});
  ASSERT_THAT(decisions, SizeIs(2));
  EXPECT_EQ(decisions[0].verdict, Verdict::kAct);
  EXPECT_EQ(decisions[1].verdict, Verdict::kRefused);
}

TEST_F(ArbiterTest, InterventionsPerHourRepairsAside) {
  Arbiter::Options options;
  options.interventions_per_hour = 2;
  arbiter_ = Arbiter(options);
  EXPECT_EQ(One(Restart("worker-0")).verdict, Verdict::kAct);
  EXPECT_EQ(One(Restart("worker-1")).verdict, Verdict::kAct);
  const Decision third = One(Restart("worker-2"));
  EXPECT_EQ(third.verdict, Verdict::kRefused);
  EXPECT_THAT(third.remark, HasSubstr("2 interventions in the last hour"));
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(One(Restart("worker-2", Kind::kRepair, "crash-loop")).verdict, Verdict::kAct);
  }
  EXPECT_EQ(One(Restart("worker-2"), 3600).verdict, Verdict::kAct);
}

TEST_F(ArbiterTest, ARefusalIsToldOnceAndAgainWhenItsReasonChanges) {
  arbiter_.Pause("worker-straggler");
  const Decision refused = One(Restart("worker-0"));
  EXPECT_EQ(refused.verdict, Verdict::kRefused);
  EXPECT_THAT(refused.remark, HasSubstr("worker-straggler is paused"));
  for (int i = 0; i < 10; ++i) EXPECT_THAT(Decide({Restart("worker-0")}), IsEmpty());
  EXPECT_EQ(One(Restart("worker-0"), 600).verdict, Verdict::kRefused);
  arbiter_.Resume("worker-straggler");
  EXPECT_EQ(One(Restart("worker-0")).verdict, Verdict::kAct);
  Restarted("worker-0");
  EXPECT_THAT(One(Restart("worker-0")).remark, HasSubstr("less than"));
}

TEST_F(ArbiterTest, APausedPolicyRepairsNothingEither) {
  arbiter_.Pause("out-of-memory");
  EXPECT_EQ(One(Restart("ps-0", Kind::kRepair, "out-of-memory")).verdict, Verdict::kRefused);
  EXPECT_THAT(arbiter_.paused(), ::testing::ElementsAre("out-of-memory"));
}

TEST_F(ArbiterTest, ADryRunTellsWhatItWouldDoAtTheSamePace) {
  arbiter_ = Arbiter({.dry_run = true});
  int told = 0;
  for (int i = 0; i < 120; ++i) {
    for (const Decision& decision : Decide({Restart("worker-0")})) {
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
  EXPECT_THAT(cut.remark, HasSubstr("the job's budget allows only 1 core, 1.5 GiB"));
  job_.Node("ps-0").limits.memory_bytes = 1536 * kMiB;
  const Decision refused = One(Limits("ps-1", {.cpus = 1, .memory_bytes = 4096 * kMiB}));
  EXPECT_EQ(refused.verdict, Verdict::kRefused);
  EXPECT_THAT(refused.remark, HasSubstr("which the node has already"));
}

TEST_F(ArbiterTest, WhatIsGrantedInTheSameStepCounts) {
  job_.view.budget.memory_bytes = (5 * 1024 + 512) * kMiB;
  const Resources more{.cpus = 1, .memory_bytes = 1536 * kMiB};
  const std::vector<Decision> decisions = Decide({Limits("ps-0", more), Limits("ps-1", more)});
  ASSERT_THAT(decisions, SizeIs(2));
  EXPECT_EQ(decisions[0].verdict, Verdict::kAct);
  EXPECT_EQ(decisions[1].verdict, Verdict::kRefused);
}

TEST_F(ArbiterTest, WhatWasGrantedAndDidNotComeCountsInItsOwnStepAlone) {
  job_.view.budget.memory_bytes = (5 * 1024 + 512) * kMiB;
  const Resources more{.cpus = 1, .memory_bytes = 1536 * kMiB};
  EXPECT_EQ(One(Limits("ps-0", more)).verdict, Verdict::kAct);
  // The kernel refused it: the view still shows what was there before.
  EXPECT_EQ(One(Limits("ps-1", more)).verdict, Verdict::kAct);
}

TEST_F(ArbiterTest, ARepairIsDoneWithWhatThereIs) {
  job_.view.budget.memory_bytes = 5 * 1024 * kMiB;
  Proposal repair = Restart("ps-0", Kind::kRepair, "out-of-memory");
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
  EXPECT_THAT(refused.remark, HasSubstr("which is the number already"));
  EXPECT_EQ(One(Workers(2), 200).verdict, Verdict::kAct) << "fewer always fit";
}

TEST_F(ArbiterTest, StoppingTheJobComesFirstAndIsTheLast) {
  const Proposal stop{
      .policy = "crash-loop", .action = Action::kStopJob, .kind = Kind::kRepair, .target = "job"};
  const std::vector<Decision> decisions =
      Decide({Restart("worker-0"), Restart("ps-0", Kind::kRepair), stop});
  ASSERT_THAT(decisions, SizeIs(3));
  EXPECT_EQ(decisions[0].proposal.action, Action::kStopJob);
  EXPECT_EQ(decisions[0].verdict, Verdict::kAct);
  for (size_t i : {1, 2}) {
    EXPECT_EQ(decisions[i].verdict, Verdict::kRefused);
    EXPECT_EQ(decisions[i].remark, "the job is being stopped");
  }
}

TEST_F(ArbiterTest, ANodeThatIsGoneIsNoTarget) {
  Proposal proposal = Restart("worker-0");
  proposal.target = "worker-9";
  EXPECT_THAT(One(proposal).remark, HasSubstr("no node worker-9"));
}

/// When an action on a node, or on the number of workers, has come to its end.
TEST_F(ArbiterTest, AnActionIsOpenUntilItIsSeenInTheJob) {
  NodeView& node = job_.Node("worker-0");
  const auto is_open = [this](const std::string& target) {
    Proposal other{.policy = "human", .action = Action::kDumpStacks, .target = target};
    other.action = target == "workers" ? Action::kScale : Action::kDumpStacks;
    const std::vector<Decision> decisions = Decide({other}, 601);
    EXPECT_THAT(decisions, SizeIs(1));
    return !decisions.empty() && decisions[0].verdict == Verdict::kRefused;
  };
  Arbiter::Options options;
  options.open_max = std::chrono::hours(100);
  arbiter_ = Arbiter(options);

  One(Restart("worker-0"));
  node.start = 2;
  node.state = NodeState::kStarting;
  EXPECT_TRUE(is_open("worker-0")) << "it is not there yet";
  node.state = NodeState::kRunning;
  EXPECT_FALSE(is_open("worker-0"));

  const Resources more{.cpus = 2, .memory_bytes = 2048 * kMiB};
  One(Limits("worker-0", more));
  node.limits.cpus = 2;
  EXPECT_TRUE(is_open("worker-0"));
  node.limits = more;
  EXPECT_FALSE(is_open("worker-0"));

  One({.policy = "human", .action = Action::kDrain, .target = "worker-0"});
  node.state = NodeState::kDraining;
  EXPECT_TRUE(is_open("worker-0"));
  node.state = NodeState::kExited;
  EXPECT_FALSE(is_open("worker-0"));
  node.state = NodeState::kRunning;

  job_.view.workers_min = 1;
  job_.view.workers_max = 6;
  One(Workers(4));
  EXPECT_TRUE(is_open("workers"));
  job_.view.nodes.push_back(node);
  job_.view.nodes.back().name = "worker-3";
  job_.view.nodes.back().state = NodeState::kStarting;
  EXPECT_TRUE(is_open("workers")) << "it does not work yet";
  job_.view.nodes.back().state = NodeState::kRunning;
  EXPECT_FALSE(is_open("workers"));
  One(Workers(3));
  job_.view.nodes.back().state = NodeState::kDraining;
  EXPECT_TRUE(is_open("workers")) << "it has not left yet";
  job_.view.nodes.pop_back();
  EXPECT_FALSE(is_open("workers"));

  One(Restart("worker-2"));
  job_.view.nodes.pop_back();
  EXPECT_FALSE(is_open("worker-2")) << "the node is gone";
}

TEST_F(ArbiterTest, StacksDoNotKeepTheRestartThatFollowsAway) {
  Proposal stacks = Restart("worker-0", Kind::kIntervention, "hang");
  stacks.action = Action::kDumpStacks;
  stacks.before = stacks.after = Amount();
  EXPECT_EQ(One(stacks).verdict, Verdict::kAct);
  EXPECT_EQ(One(Restart("worker-0", Kind::kIntervention, "hang"), 5).verdict, Verdict::kAct);
}

TEST_F(ArbiterTest, AnActionIsNotOpenForLongerThanItMayBe) {
  One(Restart("worker-0"));
  const Proposal other = Restart("worker-0", Kind::kIntervention, "hang");
  EXPECT_EQ(One(other, 119).verdict, Verdict::kRefused);
  EXPECT_EQ(One(other).verdict, Verdict::kAct);
}

TEST_F(ArbiterTest, ACooldownEndsOnTime) {
  One(Restart("worker-0"));
  Restarted("worker-0");
  EXPECT_EQ(One(Restart("worker-0"), 59).verdict, Verdict::kRefused);
  EXPECT_EQ(One(Restart("worker-0")).verdict, Verdict::kAct);
}

TEST_F(ArbiterTest, WhatAnArbiterBeforeGrantedGoesOn) {
  Arbiter::Options options;
  options.interventions_per_hour = 2;
  arbiter_ = Arbiter(options);
  const TimePoint before = job_.view.now - seconds(30);
  arbiter_.Adopt(Restart("worker-0"), before);
  for (const char* node : {"worker-1", "ps-0"})
    arbiter_.Adopt(Restart(node, Kind::kRepair), before);
  EXPECT_THAT(One(Restart("worker-0")).remark, HasSubstr("less than 60 s ago"));
  EXPECT_EQ(One(Restart("worker-2")).verdict, Verdict::kAct) << "repairs are not counted";
  EXPECT_THAT(One(Restart("worker-1"), 60).remark, HasSubstr("2 interventions in the last hour"));
  // The adopted one is an hour old, the other is not.
  EXPECT_EQ(One(Restart("worker-1"), 3600 - 30 - 62).verdict, Verdict::kAct);
  EXPECT_EQ(One(Restart("worker-2")).verdict, Verdict::kRefused);
}

TEST_F(ArbiterTest, APolicyThatMadeThingsWorseIsHeldBack) {
  arbiter_.HoldBack("worker-straggler", job_.view.now);
  const Decision refused = One(Restart("worker-0"), 3'597);
  EXPECT_EQ(refused.verdict, Verdict::kRefused);
  EXPECT_THAT(refused.remark, HasSubstr("what worker-straggler did last made things worse"));
  EXPECT_EQ(One(Restart("worker-1", Kind::kIntervention, "hang")).verdict, Verdict::kAct);
  EXPECT_EQ(One(Restart("worker-2", Kind::kRepair)).verdict, Verdict::kAct)
      << "what is down is started again all the same";
  EXPECT_EQ(One(Restart("worker-0")).verdict, Verdict::kAct) << "after an hour";
}

TEST_F(ArbiterTest, AnOlderHoldDoesNotShortenANewerOne) {
  const TimePoint now = job_.view.now;
  arbiter_.HoldBack("worker-straggler", now);
  arbiter_.HoldBack("worker-straggler", now - seconds(3'000));
  EXPECT_EQ(One(Restart("worker-0"), 3'000).verdict, Verdict::kRefused);
}

TEST_F(ArbiterTest, ARefusalIsToldAgainAfterAGrantAndAfterAWhile) {
  EXPECT_EQ(One(Restart("worker-0")).verdict, Verdict::kAct);
  for (int i = 0; i < 2; ++i) {
    Restarted("worker-0");
    EXPECT_EQ(One(Restart("worker-0")).verdict, Verdict::kRefused);
    EXPECT_THAT(Decide({Restart("worker-0")}), IsEmpty());
    EXPECT_EQ(One(Restart("worker-0"), 60).verdict, Verdict::kAct);
  }
  arbiter_.Pause("worker-straggler");
  EXPECT_EQ(One(Restart("worker-1")).verdict, Verdict::kRefused);
  EXPECT_THAT(Decide({Restart("worker-1")}, 599), IsEmpty());
  EXPECT_EQ(One(Restart("worker-1")).verdict, Verdict::kRefused);
}

TEST_F(ArbiterTest, OfADryRunNothingIsUnderWay) {
  arbiter_ = Arbiter({.dry_run = true});
  EXPECT_EQ(One(Restart("worker-0")).verdict, Verdict::kDryRun);
  EXPECT_EQ(One(Restart("worker-0", Kind::kIntervention, "hang")).verdict, Verdict::kDryRun);
  One({.policy = "crash-loop", .action = Action::kStopJob, .kind = Kind::kRepair, .target = "job"});
  EXPECT_EQ(One(Restart("worker-1")).verdict, Verdict::kDryRun) << "the job continues";
}

TEST_F(ArbiterTest, RepairsComeBeforeInterventionsAndKeepTheirOrder) {
  const std::vector<Decision> decisions =
      Decide({Restart("worker-0"), Restart("worker-1"), Restart("worker-2", Kind::kRepair),
              Restart("ps-0", Kind::kRepair)});
  std::vector<std::string> order;
  for (const Decision& decision : decisions) order.push_back(decision.proposal.target);
  EXPECT_THAT(order, ::testing::ElementsAre("worker-2", "ps-0", "worker-0", "worker-1"));
}

/// The proposal, its bounds, and the decision.
TEST_F(ArbiterTest, LimitsAreFittedBetweenMinimumAndRoom) {
  struct Case {
    const char* what;
    Resources wanted, min, max, budget;
    Resources done;
    const char* remark;
  };
  constexpr uint64_t kG = 1024 * kMiB;
  const Case cases[] = {
      {"all of it", {2, 2 * kG}, {}, {}, {}, {2, 2 * kG}, ""},
      {"cores below the minimum",
       {0.25, 2 * kG},
       {.cpus = 0.5},
       {},
       {},
       {0.5, 2 * kG},
       "raised to the minimum of ps-0: 0.5 cores, 2 GiB"},
      {"no limit is not raised to the minimum",
       {0, 2 * kG},
       {.cpus = 0.5},
       {},
       {},
       {0, 2 * kG},
       ""},
      {"nor one of memory", {2, 0}, {.memory_bytes = 3 * kG}, {}, {}, {2, 0}, ""},
      {"no limit is not cut", {0, 0}, {}, {1, kG}, {}, {0, 0}, ""},
      {"cores above its own maximum",
       {4, 2 * kG},
       {},
       {.cpus = 3},
       {},
       {3, 2 * kG},
       "4 cores, 2 GiB are wanted, but the job file's maximum for ps nodes allows only 3 cores, "
       "2 GiB"},
      {"cores above the budget",
       {4, 2 * kG},
       {},
       {},
       {.cpus = 6},
       {2, 2 * kG},
       "4 cores, 2 GiB are wanted, but the rest of the job's budget "
       "allows only 2 cores, 2 GiB"},
      {"memory above its own maximum",
       {2, 4 * kG},
       {},
       {.memory_bytes = 3 * kG},
       {},
       {2, 3 * kG},
       "2 cores, 4 GiB are wanted, but the job file's maximum for ps nodes allows only 2 cores, "
       "3 GiB"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.what);
    arbiter_ = Arbiter();
    NodeView& node = job_.Node("ps-0");
    node.min = c.min;
    node.max = c.max;
    job_.view.budget = c.budget;
    const Decision decision = One(Limits("ps-0", c.wanted));
    EXPECT_EQ(decision.verdict, Verdict::kAct);
    EXPECT_EQ(std::get<Resources>(decision.proposal.after), c.done);
    EXPECT_EQ(decision.remark, c.remark);
  }
}

TEST_F(ArbiterTest, ACutThatChangesNothingIsRefusedButForARepair) {
  job_.Node("ps-0").max = {.cpus = 1};
  const Resources more{.cpus = 2, .memory_bytes = 1024 * kMiB};
  EXPECT_THAT(One(Limits("ps-0", more)).remark, HasSubstr("which the node has already"));
  Proposal restart = Restart("ps-0", Kind::kRepair);
  restart.after = more;
  const Decision decision = One(restart);
  EXPECT_EQ(decision.verdict, Verdict::kAct);
  EXPECT_EQ(std::get<Resources>(decision.proposal.after), kGiB);
}

TEST_F(ArbiterTest, WorkersAreFittedIntoTheirRange) {
  job_.view.workers_min = 2;
  job_.view.workers_max = 4;
  const Decision up = One(Workers(1));
  EXPECT_EQ(std::get<uint32_t>(up.proposal.after), 2u);
  EXPECT_EQ(up.remark, "1 worker is wanted, but the job file's range of worker counts allows 2");
  job_.view.workers_max = 3;
  EXPECT_EQ(One(Workers(5), 200).remark,
            "5 workers are wanted, but the job file's range of worker counts allows 3, which is "
            "the number already");
  // A file that contradicts itself: the minimum counts.
  job_.view.workers_min = 5;
  EXPECT_EQ(std::get<uint32_t>(One(Workers(1), 200).proposal.after), 5u);
}

}  // namespace
}  // namespace muster::scaler
