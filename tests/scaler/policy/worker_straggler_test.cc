#include "scaler/policy/worker_straggler.h"

#include <gmock/gmock.h>

#include "base/random.h"
#include "tests/scaler/model/fake_job.h"

namespace muster::scaler {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr Load kSlow{.minibatches = 10, .computing_us = 40'000};

class WorkerStragglerTest : public ::testing::Test {
 protected:
  void Workers(uint32_t count, Resources limits = {}) {
    job_.Add(NodeRole::kWorker, count, {}, limits);
  }
  std::vector<Proposal> Run(int seconds) { return job_.Run(&policy_, seconds); }
  /// Runs until something is proposed, and carries it out; at most `seconds`.
  std::vector<Proposal> Act(int seconds) {
    for (int second = 0; second < seconds; ++second) {
      std::vector<Proposal> proposals = Run(1);
      if (proposals.empty()) continue;
      job_.CarryOut(proposals[0]);
      return proposals;
    }
    return {};
  }
  FakeJob job_;
  WorkerStragglerPolicy policy_;
};

TEST_F(WorkerStragglerTest, SlowAgainstItsPeersIsRestarted) {
  Workers(4);
  EXPECT_THAT(Run(60), IsEmpty());
  job_.loads["worker-2"] = kSlow;
  job_.loads["worker-2"].cpu_pressure = 40;
  const std::vector<Proposal> proposals = Act(30);
  ASSERT_EQ(proposals.size(), 1u);
  EXPECT_EQ(proposals[0].target, "worker-2");
  EXPECT_EQ(proposals[0].action, Action::kRestart);
  EXPECT_EQ(proposals[0].kind, Proposal::Kind::kIntervention);
  EXPECT_GT(Figure(proposals[0], "ratio"), 2);
  EXPECT_NEAR(Figure(proposals[0], "the same of the median of its 3 peers"), 8'000, 1);
  EXPECT_NEAR(Figure(proposals[0], "waiting for shards"), 0.02, 0.001);
  EXPECT_NEAR(Figure(proposals[0], "waiting for pulls"), 0.2, 0.01);
  EXPECT_NEAR(Figure(proposals[0], "waiting for pushes"), 0.1, 0.01);
  EXPECT_EQ(Figure(proposals[0], "CPU pressure"), 40);
  EXPECT_THAT(proposals[0].because, HasSubstr("its CPU quota is not the reason"));
}

TEST_F(WorkerStragglerTest, OneOfThreeThatWasSlowFromTheStartIsSeen) {
  Workers(3);
  job_.loads["worker-0"] = kSlow;
  EXPECT_THAT(Run(22), IsEmpty());
  EXPECT_THAT(Actions(Act(20)), ElementsAre(Action::kRestart));
}

TEST_F(WorkerStragglerTest, ThrottledGetsMoreCpuFirstThenIsRestarted) {
  Workers(3, {.cpus = 1});
  Run(60);
  job_.loads["worker-1"] = kSlow;
  job_.loads["worker-1"].cpus = 0.95;
  job_.loads["worker-1"].throttled = 0.6;
  const std::vector<Proposal> first = Act(30);
  ASSERT_THAT(Actions(first), ElementsAre(Action::kResize));
  EXPECT_EQ(std::get<Resources>(first[0].after).cpus, 2);
  EXPECT_THAT(first[0].because, HasSubstr("its quota held it back for 60 % of the time: its CPU "
                                          "limit becomes 2 cores"));
  EXPECT_THAT(first[0].because, Not(HasSubstr("started again")));
  EXPECT_NEAR(Figure(first[0], "throttled"), 0.6, 0.1);
  EXPECT_THAT(Run(19), IsEmpty()) << "it has time to help";
  const std::vector<Proposal> second = Act(5);
  ASSERT_THAT(Actions(second), ElementsAre(Action::kRestart));
  EXPECT_THAT(second[0].because, HasSubstr("though it was given more CPU"));
  // Well for long, it begins with more CPU again.
  job_.loads["worker-1"] = {};
  EXPECT_THAT(Act(700), IsEmpty());
  job_.loads["worker-1"] = kSlow;
  job_.loads["worker-1"].cpus = 1.9;
  job_.loads["worker-1"].throttled = 0.6;
  EXPECT_THAT(Actions(Act(30)), ElementsAre(Action::kResize));
}

TEST_F(WorkerStragglerTest, AQuotaThatIsNotOursIsWrittenOver) {
  Workers(2);
  Run(60);
  // From outside: a fifth of a core, where no limit of ours is.
  job_.loads["worker-1"] = kSlow;
  job_.loads["worker-1"].cpus = 0.2;
  job_.loads["worker-1"].throttled = 0.8;
  const std::vector<Proposal> proposals = Act(30);
  ASSERT_THAT(Actions(proposals), ElementsAre(Action::kResize));
  EXPECT_EQ(proposals[0].after, proposals[0].before);
  EXPECT_THAT(proposals[0].because, HasSubstr("not the one that Muster set"));
}

TEST_F(WorkerStragglerTest, WithoutMoreCpuToGiveItIsRestarted) {
  Workers(3, {.cpus = 1});
  for (NodeView& node : job_.view.nodes) node.max.cpus = 1;
  Run(60);
  job_.loads["worker-1"] = kSlow;
  job_.loads["worker-1"].cpus = 0.95;
  job_.loads["worker-1"].throttled = 0.6;
  const std::vector<Proposal> proposals = Act(30);
  ASSERT_THAT(Actions(proposals), ElementsAre(Action::kRestart));
  EXPECT_THAT(proposals[0].because, HasSubstr("no more CPU for it"));
}

TEST_F(WorkerStragglerTest, TwoRestartesThatDoNotHelpAreEnough) {
  Workers(3);
  Run(30);
  job_.loads["worker-1"] = kSlow;
  EXPECT_THAT(Actions(Act(60)), ElementsAre(Action::kRestart));
  EXPECT_THAT(Actions(Act(60)), ElementsAre(Action::kRestart));
  EXPECT_THAT(Act(1200), IsEmpty());
  // Well for long, it is like any other again.
  job_.loads["worker-1"] = {};
  EXPECT_THAT(Act(700), IsEmpty());
  job_.loads["worker-1"] = kSlow;
  EXPECT_THAT(Actions(Act(60)), ElementsAre(Action::kRestart));
  EXPECT_THAT(Actions(Act(60)), ElementsAre(Action::kRestart));
  EXPECT_THAT(Act(1200), IsEmpty());
}

TEST_F(WorkerStragglerTest, WellForAShortWhileIsNotForgiven) {
  Workers(3);
  Run(30);
  job_.loads["worker-1"] = kSlow;
  for (int i = 0; i < 2; ++i) EXPECT_THAT(Actions(Act(60)), ElementsAre(Action::kRestart));
  for (int i = 0; i < 10; ++i) {
    EXPECT_THAT(Act(200), IsEmpty());
    job_.loads["worker-1"] = {};
    EXPECT_THAT(Act(100), IsEmpty());
    job_.loads["worker-1"] = kSlow;
  }
}

TEST_F(WorkerStragglerTest, ARestartThatHelpedIsTheLast) {
  Workers(2);
  Run(60);
  job_.loads["worker-1"] = kSlow;
  EXPECT_THAT(Actions(Act(60)), ElementsAre(Action::kRestart));
  job_.loads["worker-1"] = {};
  EXPECT_THAT(Run(600), IsEmpty());
}

TEST_F(WorkerStragglerTest, OneOfTwoIsComparedWithItsOwnPast) {
  Workers(2);
  // It always took twice as long, as on the slower half of a machine: nothing is wrong with it.
  job_.loads["worker-1"].computing_us = 17'000;
  EXPECT_THAT(Run(120), IsEmpty());
  job_.loads["worker-1"].computing_us = 60'000;
  const std::vector<Proposal> proposals = Act(30);
  ASSERT_EQ(proposals.size(), 1u);
  EXPECT_EQ(proposals[0].target, "worker-1");
  EXPECT_NEAR(Figure(proposals[0], "the same of what it took before"), 17'000, 1);
}

TEST_F(WorkerStragglerTest, AllSlowAlikeIsNobodysFault) {
  for (uint32_t count : {2, 5}) {
    job_ = FakeJob();
    policy_ = WorkerStragglerPolicy();
    Workers(count);
    Run(60);
    for (auto& [name, load] : job_.loads) load = kSlow;
    EXPECT_THAT(Run(300), IsEmpty()) << count;
  }
}

TEST_F(WorkerStragglerTest, APeerThatBecomesFasterMakesNobodySlow) {
  Workers(2);
  for (auto& [name, load] : job_.loads) load.computing_us = 18'000;
  Run(60);
  job_.loads["worker-0"].computing_us = 8'000;
  EXPECT_THAT(Run(300), IsEmpty());
}

TEST_F(WorkerStragglerTest, AloneItMustBeMuchSlower) {
  Workers(1);
  Run(60);
  job_.loads["worker-0"].computing_us = 20'000;  // heavier data
  EXPECT_THAT(Run(120), IsEmpty());
  job_.loads["worker-0"].computing_us = 80'000;
  EXPECT_THAT(Actions(Act(30)), ElementsAre(Action::kRestart));
}

TEST_F(WorkerStragglerTest, AloneThreeTimesItsPastIsEnough) {
  Workers(1);
  Run(60);
  job_.loads["worker-0"].computing_us = 28'000;
  EXPECT_THAT(Actions(Act(30)), ElementsAre(Action::kRestart));
}

TEST_F(WorkerStragglerTest, TwoWindowsAreAPastAndOneIsNone) {
  for (uint32_t count : {1, 2}) {
    SCOPED_TRACE(count);
    for (const int known_s : {20, 30}) {
      if (known_s == 20 && count == 2) continue;  // what it took while slow becomes its past
      job_ = FakeJob();
      policy_ = WorkerStragglerPolicy();
      Workers(count);
      EXPECT_THAT(Run(known_s), IsEmpty());  // ten of which it settles in
      job_.loads["worker-0"].computing_us = 80'000;
      if (known_s == 20) {
        EXPECT_THAT(Run(120), IsEmpty());
      } else {
        EXPECT_THAT(Actions(Act(16)), ElementsAre(Action::kRestart));
      }
    }
  }
}

TEST_F(WorkerStragglerTest, WhatSlowsAnUnequalPairDownBlamesNeither) {
  Workers(2);
  job_.loads["worker-1"].computing_us = 17'000;
  Run(120);
  job_.loads["worker-0"].computing_us = 40'000;
  job_.loads["worker-1"].computing_us = 85'000;
  EXPECT_THAT(Run(120), IsEmpty());
}

TEST_F(WorkerStragglerTest, SlowInTheSumOfComputingAndWaits) {
  Workers(3);
  EXPECT_THAT(Run(60), IsEmpty());
  // Half as long again for computing, and more than twice as long with its waits.
  job_.loads["worker-1"] = {.minibatches = 30, .computing_us = 12'000, .waiting_pulls = 0.6};
  const std::vector<Proposal> proposals = Act(30);
  ASSERT_THAT(Actions(proposals), ElementsAre(Action::kRestart));
  EXPECT_THAT(proposals[0].because, HasSubstr("computing and waiting for servers per minibatch"));
}

TEST_F(WorkerStragglerTest, OneThatLeavesIsNotJudged) {
  for (const NodeState state : {NodeState::kDraining, NodeState::kLost}) {
    job_ = FakeJob();
    policy_ = WorkerStragglerPolicy();
    Workers(4);
    Run(60);
    job_.loads["worker-1"] = kSlow;
    job_.Node("worker-1").state = state;
    EXPECT_THAT(Run(120), IsEmpty());
  }
}

TEST_F(WorkerStragglerTest, QuietOnNoiseSpikesStartsAndWaits) {
  Workers(4);
  Rng rng(5);
  EXPECT_THAT(job_.Run(&policy_, 600,
                       [&](int second) {
                         for (auto& [name, load] : job_.loads) {
                           load.computing_us = 8'000 * (0.6 + 0.8 * rng.Uniform());
                         }
                         // One spike of two seconds, again and again.
                         job_.loads["worker-3"].minibatches = second % 60 < 2 ? 8 : 50;
                         if (second % 60 < 2) job_.loads["worker-3"].computing_us = 50'000;
                         // Slow at first, as everything is.
                         job_.loads["worker-0"].minibatches = second < 8 ? 5 : 50;
                         if (second < 8) job_.loads["worker-0"].computing_us = 80'000;
                         // Waiting is hardly a slowness of its own.
                         job_.loads["worker-1"].waiting_pulls = 0.5;
                         job_.loads["worker-1"].minibatches = 35;
                       }),
              IsEmpty());
}

TEST_F(WorkerStragglerTest, HeldToHalfOfTheCpuThatItWants) {
  // As it was measured: the flights' trainer at 0.2 of its 0.42 cores, beside one peer.
  constexpr Load kWell{.minibatches = 600, .computing_us = 1'040, .waiting_pulls = 0.36};
  constexpr Load kHeld{.minibatches = 235, .computing_us = 1'830, .waiting_pulls = 0.56};
  Workers(2);
  for (auto& [name, load] : job_.loads) load = kWell;
  EXPECT_THAT(Run(60), IsEmpty());
  job_.loads["worker-0"] = kHeld;
  EXPECT_THAT(Actions(Act(25)), ElementsAre(Action::kRestart));
}

TEST_F(WorkerStragglerTest, OneLongStallIsNoSlowness) {
  Workers(3);
  EXPECT_THAT(job_.Run(&policy_, 300,
                       [&](int second) {
                         // 8 s in which a minibatch takes 8 s, as where a disk does not answer.
                         const int now = second % 60;
                         job_.loads["worker-1"] = Load{};
                         if (now < 8) job_.loads["worker-1"].minibatches = now == 7 ? 1 : 0;
                         if (now < 8) job_.loads["worker-1"].computing_us = now == 7 ? 8e6 : 0;
                       }),
              IsEmpty());
}

TEST_F(WorkerStragglerTest, SlowInItsWaitsForServersAlone) {
  Workers(3);
  EXPECT_THAT(Run(60), IsEmpty());
  // A bad link: it computes as fast as the others, when it has something to compute with.
  job_.loads["worker-1"].waiting_pulls = 0.85;
  job_.loads["worker-1"].minibatches = 12;
  const std::vector<Proposal> proposals = Act(30);
  ASSERT_THAT(Actions(proposals), ElementsAre(Action::kRestart));
  EXPECT_EQ(proposals[0].target, "worker-1");
  EXPECT_THAT(proposals[0].because, HasSubstr("computing and waiting for servers per minibatch"));
}

TEST_F(WorkerStragglerTest, WaitsMakeNobodySlowWithoutPeers) {
  Workers(1);
  Run(60);
  // Its servers are slow.
  job_.loads["worker-0"].waiting_pulls = 0.95;
  job_.loads["worker-0"].minibatches = 3;
  EXPECT_THAT(Run(120), IsEmpty());
}

TEST_F(WorkerStragglerTest, EvaluationsAreLeftOutAndOtherwiseDoNoHarm) {
  Workers(3);
  const auto epochs = [this](int seconds, const std::string& slow) {
    return job_.Run(&policy_, seconds, [&](int second) {
      // 6 s of training, 3 s in which one evaluates what the others do not.
      const bool evaluates = second % 9 >= 6;
      job_.view.activity = evaluates ? Activity::kEvaluating : Activity::kTraining;
      for (auto& [name, load] : job_.loads) load = name == slow && !evaluates ? kSlow : Load{};
      if (evaluates) job_.loads["worker-0"] = {.minibatches = 2, .computing_us = 400'000};
    });
  };
  EXPECT_THAT(epochs(90, ""), IsEmpty());
  const std::vector<Proposal> proposals = epochs(45, "worker-1");
  ASSERT_THAT(proposals, Not(IsEmpty()));
  EXPECT_THAT(proposals, Each(::testing::Field(&Proposal::target, "worker-1")));
  EXPECT_NEAR(Figure(proposals.back(), "computing time per minibatch"), 40'000, 1);
  EXPECT_NEAR(Figure(proposals.back(), "the same of the median of its 2 peers"), 8'000, 1);
}

TEST_F(WorkerStragglerTest, OnlyTrainingIsCompared) {
  for (Activity activity :
       {Activity::kStarting, Activity::kReplaying, Activity::kDraining, Activity::kOver}) {
    job_ = FakeJob();
    policy_ = WorkerStragglerPolicy();
    Workers(4);
    Run(30);
    job_.loads["worker-1"] = kSlow;
    job_.view.activity = activity;
    EXPECT_THAT(Run(120), IsEmpty()) << static_cast<int>(activity);
    job_.view.activity = Activity::kTraining;
    EXPECT_THAT(Run(28), IsEmpty()) << "what was before training is not looked at";
    EXPECT_THAT(Run(10), Not(IsEmpty()));
  }
}

TEST_F(WorkerStragglerTest, HysteresisKeepsOneThatIsBetterButNotWell) {
  Workers(4);
  Run(30);
  job_.loads["worker-1"].computing_us = 15'000;
  Run(12);
  // Below what makes slow (1.7), above what clears (1.35).
  job_.loads["worker-1"].computing_us = 12'000;
  EXPECT_THAT(Run(20), Each(::testing::Field(&Proposal::target, "worker-1")));
  EXPECT_THAT(Run(1), Not(IsEmpty()));
  job_.loads["worker-1"].computing_us = 10'000;
  Run(10);
  EXPECT_THAT(Run(60), IsEmpty());
}

TEST_F(WorkerStragglerTest, SlowMinibatchesAreLookedAtOverLongerWindows) {
  Workers(3);
  for (auto& [name, load] : job_.loads) load = {.minibatches = 0.25, .computing_us = 3.8e6};
  EXPECT_THAT(Run(120), IsEmpty());
  job_.loads["worker-1"] = {.minibatches = 0.05, .computing_us = 19e6};
  const std::vector<Proposal> proposals = Act(200);
  ASSERT_EQ(proposals.size(), 1u);
  EXPECT_EQ(proposals[0].target, "worker-1");
  EXPECT_GT(proposals[0].evidence[0].window.count(), 20);
}

TEST_F(WorkerStragglerTest, AYoungJobIsNotJudgedByAFewSlowMinibatches) {
  Workers(3);
  for (auto& [name, load] : job_.loads) load = {.minibatches = 0.25, .computing_us = 3.8e6};
  job_.loads["worker-1"] = {.minibatches = 0.125, .computing_us = 7.8e6};
  EXPECT_THAT(Run(45), IsEmpty());
  EXPECT_THAT(Actions(Act(60)), ElementsAre(Action::kRestart)) << "five of them say so";
}

TEST_F(WorkerStragglerTest, OneThatHardlyMovesIsJudgedByTheLittleItDoes) {
  Workers(3);
  job_.loads["worker-1"] = {.minibatches = 0.025, .computing_us = 39e6};
  const std::vector<Proposal> proposals = Act(300);
  ASSERT_EQ(proposals.size(), 1u);
  EXPECT_EQ(proposals[0].target, "worker-1");
}

}  // namespace
}  // namespace muster::scaler
