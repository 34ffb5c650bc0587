#include "scaler/policy/hang.h"

#include <gmock/gmock.h>

#include "tests/scaler/model/fake_job.h"

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
  /// The same, but a process that is told to end is down for three seconds: what was done is known
  /// before its next life begins.
  int ActSlowly(int seconds, std::vector<Proposal>* proposals) {
    for (int second = 1; second <= seconds; ++second) {
      *proposals = job_.Run(&policy_, 1);
      if (proposals->empty()) continue;
      for (const Proposal& proposal : *proposals) job_.NoteTaken(proposal);
      for (const Proposal& proposal : *proposals) {
        if (proposal.action != Action::kRestart) continue;
        const NodeState before = job_.Node(proposal.target).state;
        job_.Node(proposal.target).state = NodeState::kExited;
        job_.Run(&policy_, 3);
        job_.Start(proposal.target);
        job_.Node(proposal.target).state = before;
      }
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

TEST_F(HangTest, FirstTheStacksThenARestart) {
  EXPECT_THAT(job_.Run(&policy_, 60), IsEmpty());
  Freeze("worker-1", 0);
  EXPECT_EQ(Act(100, &proposals_), 60);
  ASSERT_THAT(Actions(proposals_), ElementsAre(Action::kDumpStacks));
  EXPECT_EQ(proposals_[0].target, "worker-1");
  EXPECT_NEAR(Figure(proposals_[0], "time without a minibatch"), 60, 1);
  EXPECT_EQ(Act(100, &proposals_), 5);
  ASSERT_THAT(Actions(proposals_), ElementsAre(Action::kRestart));
  EXPECT_THAT(proposals_[0].because, HasSubstr("its stacks were requested before"));
  job_.loads["worker-1"] = {};
  EXPECT_EQ(Act(300, &proposals_), 0);
}

TEST_F(HangTest, ProgressAfterTheStacksEndsIt) {
  job_.Run(&policy_, 10);
  Freeze("worker-1", 0);
  EXPECT_GT(Act(100, &proposals_), 0);
  job_.loads["worker-1"] = {};
  EXPECT_EQ(Act(100, &proposals_), 0);
  // The next hang is another: its stacks are wanted, too, after three times as long as it took.
  Freeze("worker-1", 0);
  EXPECT_NEAR(Act(300, &proposals_), 3 * 61, 3);
  EXPECT_THAT(Actions(proposals_), ElementsAre(Action::kDumpStacks));
}

TEST_F(HangTest, AnotherThatGetsOnNowAndThenIsProgress) {
  const auto slow = [this](int second) { job_.loads["worker-0"].minibatches = second % 25 == 0; };
  EXPECT_THAT(job_.Run(&policy_, 100, slow), IsEmpty());
  Freeze("worker-1", 0);
  EXPECT_THAT(job_.Run(&policy_, 59, slow), IsEmpty());
  EXPECT_THAT(Actions(job_.Run(&policy_, 30, slow)), ::testing::Contains(Action::kDumpStacks))
      << "three times as long is for those who all stand still";
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
  job_.Node("ps-0").state = NodeState::kExited;
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

/// A process that is there, and of which nothing more is seen.
class HangingStartTest : public HangTest {
 protected:
  void Hold(const std::string& name) {
    job_.Node(name).state = NodeState::kStarting;
    job_.loads[name] = {.minibatches = 0, .requests = 0, .partitions_serving = 0, .cpus = 0};
  }
};

TEST_F(HangingStartTest, AWorkerThatNeverRegisters) {
  job_.Run(&policy_, 10);
  Hold("worker-1");
  EXPECT_NEAR(Act(400, &proposals_), 301, 1);
  ASSERT_THAT(Actions(proposals_), ElementsAre(Action::kDumpStacks));
  EXPECT_EQ(proposals_[0].target, "worker-1");
  EXPECT_EQ(Act(100, &proposals_), 5);
  ASSERT_THAT(Actions(proposals_), ElementsAre(Action::kRestart));
  EXPECT_THAT(proposals_[0].because, HasSubstr("the master has heard nothing of it for 305 s"));
  // The next start may take twice as long, and one that runs is forgiven.
  Hold("worker-1");
  EXPECT_NEAR(Act(1000, &proposals_), 601, 1);
  EXPECT_EQ(Act(100, &proposals_), 5);
  job_.loads["worker-1"] = {};
  EXPECT_EQ(Act(10, &proposals_), 0);
  Hold("worker-1");
  EXPECT_NEAR(Act(1000, &proposals_), 301, 1);
}

TEST_F(HangingStartTest, EachSlowStartDoublesWhatTheNextMayTake) {
  job_.Run(&policy_, 10);
  Hold("worker-1");
  for (const int allowed : {300, 600, 1200, 2400}) {
    EXPECT_NEAR(ActSlowly(3000, &proposals_), allowed, 2);
    ASSERT_THAT(Actions(proposals_), ElementsAre(Action::kDumpStacks));
    EXPECT_EQ(ActSlowly(100, &proposals_), 5);
    ASSERT_THAT(Actions(proposals_), ElementsAre(Action::kRestart));
  }
}

TEST_F(HangingStartTest, AWorkerWaitsForServersAndForTheMaster) {
  job_.Run(&policy_, 10);
  Hold("worker-1");
  job_.Node("ps-0").state = NodeState::kExited;
  EXPECT_EQ(Act(1000, &proposals_), 0);
  job_.Node("ps-0").state = NodeState::kRunning;
  job_.view.master_heard = false;
  EXPECT_EQ(Act(1000, &proposals_), 0);
  job_.view.master_heard = true;
  EXPECT_GT(Act(1000, &proposals_), 0);
}

TEST_F(HangingStartTest, AWorkerWaitsForATopicThatCannotBeReached) {
  job_.Run(&policy_, 10);
  Hold("worker-1");
  job_.view.sources_away = true;
  EXPECT_EQ(Act(1000, &proposals_), 0);
  job_.view.sources_away = false;
  EXPECT_GT(Act(1000, &proposals_), 0);
}

TEST_F(HangingStartTest, AServerThatDoesNotGetOnWithItsRestore) {
  job_.Run(&policy_, 10);
  job_.view.activity = Activity::kReplaying;
  Hold("ps-0");
  Freeze("worker-0", 0);
  Freeze("worker-1", 0);
  EXPECT_EQ(job_.Run(&policy_, 250).size(), 0u);
  job_.loads["ps-0"].partitions_serving = 1;
  EXPECT_NEAR(Act(1000, &proposals_), 301, 1);
  ASSERT_EQ(proposals_.size(), 1u);
  EXPECT_EQ(proposals_[0].target, "ps-0");
  EXPECT_EQ(Figure(proposals_[0], "partitions that serve"), 1);
  EXPECT_EQ(Act(1000, &proposals_), 5);
  ASSERT_THAT(Actions(proposals_), ElementsAre(Action::kRestart));
  EXPECT_THAT(proposals_[0].because, HasSubstr("has not got on with its restore"));
}

TEST_F(HangingStartTest, WhateverGrowsIsOnItsWay) {
  // A worker does not start while a server restores, so that one after the other.
  Hold("ps-0");
  EXPECT_THAT(job_.Run(&policy_, 2000,
                       [this](int second) {
                         if (second % 250 == 0) ++job_.loads["ps-0"].partitions_serving;
                       }),
              IsEmpty());
  job_.Node("ps-0").state = NodeState::kRunning;
  Hold("worker-0");
  EXPECT_THAT(job_.Run(&policy_, 2000,
                       [this](int second) {
                         if (second % 250 == 0) job_.loads["worker-0"].memory_mib += 2;
                       }),
              IsEmpty());
  EXPECT_GT(Act(400, &proposals_), 0);
}

TEST_F(HangingStartTest, MemoryThatComesAndGoesIsNoGrowth) {
  job_.Run(&policy_, 10);
  Hold("worker-0");
  int first = 0;
  for (int second = 1; second <= 400 && first == 0; ++second) {
    job_.loads["worker-0"].memory_mib = second % 20 < 10 ? 100 : 50;
    if (!job_.Run(&policy_, 1).empty()) first = second;
  }
  EXPECT_NEAR(first, 301, 1);
}

TEST_F(HangingStartTest, OneOfWhichNoReadingComesIsNotForgotten) {
  job_.Run(&policy_, 10);
  Hold("worker-0");
  std::vector<Proposal> proposals;
  for (int second = 1; second <= 310 && proposals.empty(); ++second) {
    job_.Tick();
    job_.Node("worker-0").samples.clear();
    proposals = job_.Step(&policy_);
  }
  ASSERT_THAT(Actions(proposals), ElementsAre(Action::kDumpStacks));
  EXPECT_EQ(Figure(proposals[0], "CPU"), 0);
}

/// Servers that answer nothing, though they are heard.
class HangingServerTest : public HangTest {
 protected:
  HangingServerTest() { job_.Add(NodeRole::kServer, 2); }
  /// Workers wait for a while, and then no worker sends any request.
  void StandStill(const std::string& first) {
    job_.loads[first].requests = 0;
    job_.Run(&policy_, 2);
    for (auto& [name, load] : job_.loads) {
      load.requests = load.minibatches = load.computing_us = load.cpus = 0;
      load.waiting_pulls = 0.9;
      load.waiting_pushes = 0.1;
    }
  }
  void GoOn() {
    for (auto& [name, load] : job_.loads) load = {};
  }
};

TEST_F(HangingServerTest, TheServerIsToBlameBeforeItsWorkers) {
  job_.Run(&policy_, 100);
  StandStill("ps-1");
  EXPECT_NEAR(Act(100, &proposals_), 60, 2);
  ASSERT_EQ(proposals_.size(), 1u);
  EXPECT_EQ(proposals_[0].action, Action::kDumpStacks);
  EXPECT_EQ(proposals_[0].target, "ps-1");
  EXPECT_EQ(Figure(proposals_[0], "workers that wait for servers"), 2);
  EXPECT_NEAR(Figure(proposals_[0], "worker-0 without a minibatch"), 60, 2);
  EXPECT_NEAR(Figure(proposals_[0], "worker-1 without a minibatch"), 60, 2);
  EXPECT_EQ(Act(100, &proposals_), 5);
  ASSERT_THAT(Actions(proposals_), ElementsAre(Action::kRestart));
  EXPECT_EQ(proposals_[0].target, "ps-1");
  EXPECT_THAT(proposals_[0].because, HasSubstr("worker-0 and 1 more wait for rows"));
  GoOn();
  EXPECT_EQ(Act(1000, &proposals_), 0);
}

TEST_F(HangingServerTest, OneThatHelpedOnceIsAccusedAgainLater) {
  job_.Run(&policy_, 100);
  for (int hang = 0; hang < 3; ++hang) {
    StandStill("ps-1");
    EXPECT_GT(Act(2000, &proposals_), 0);
    EXPECT_EQ(Act(100, &proposals_), 5);
    ASSERT_THAT(Actions(proposals_), ElementsAre(Action::kRestart));
    EXPECT_EQ(proposals_[0].target, "ps-1") << hang;
    GoOn();
    EXPECT_EQ(Act(100, &proposals_), 0);
  }
}

TEST_F(HangingServerTest, WhileAServerAnswersNoneIsToBlame) {
  job_.Run(&policy_, 100);
  StandStill("ps-1");
  job_.loads["ps-2"].requests = 10;  // of another worker
  for (const Proposal& proposal : job_.Run(&policy_, 500)) {
    EXPECT_THAT(proposal.target, HasSubstr("worker-"));
  }
}

TEST_F(HangingServerTest, WhoGetsOnNowAndThenKeepsServersFromBlame) {
  job_.Run(&policy_, 100);
  StandStill("ps-1");
  std::vector<Proposal> proposals = job_.Run(
      &policy_, 300, [this](int second) { job_.loads["worker-0"].minibatches = second % 25 == 0; });
  EXPECT_FALSE(proposals.empty());
  for (const Proposal& proposal : proposals) EXPECT_EQ(proposal.target, "worker-1");
}

TEST_F(HangingServerTest, WhichBurnsCpuIsTheLikeliest) {
  job_.Run(&policy_, 100);
  StandStill("ps-1");
  job_.loads["ps-2"].cpus = 1;
  EXPECT_NEAR(Act(100, &proposals_), 60, 2);
  ASSERT_EQ(proposals_.size(), 1u);
  EXPECT_EQ(proposals_[0].target, "ps-2");
}

TEST_F(HangingServerTest, OneAfterTheOtherAndThenTheWorkers) {
  job_.Run(&policy_, 100);
  StandStill("ps-1");
  std::vector<std::string> restarted;
  for (int i = 0; i < 20; ++i) {
    if (Act(400, &proposals_) == 0) break;
    for (const Proposal& proposal : proposals_) {
      if (proposal.action == Action::kRestart) restarted.push_back(proposal.target);
    }
    if (restarted.size() >= 5) break;
  }
  EXPECT_THAT(restarted, ElementsAre("ps-1", "ps-0", "ps-2", "worker-0", "worker-1"));
}

TEST_F(HangingServerTest, ARestartIsRememberedInTheNextLife) {
  job_.Run(&policy_, 100);
  StandStill("ps-1");
  std::vector<std::string> restarted;
  for (int i = 0; i < 20 && restarted.size() < 5; ++i) {
    if (ActSlowly(400, &proposals_) == 0) break;
    for (const Proposal& proposal : proposals_) {
      if (proposal.action == Action::kRestart) restarted.push_back(proposal.target);
    }
  }
  EXPECT_THAT(restarted, ElementsAre("ps-1", "ps-0", "ps-2", "worker-0", "worker-1"))
      << "no server is started again and again";
}

TEST_F(HangingServerTest, WhoIsAskedForNothingIsQuiet) {
  job_.Run(&policy_, 100);
  // A minibatch takes two minutes of computing.
  const auto compute = [this](int second) {
    for (auto& [name, load] : job_.loads) {
      const bool now = second % 120 == 0;
      load = {.minibatches = now ? 1.0 : 0.0,
              .computing_us = 120e6,
              .waiting_pulls = now ? 0.1 : 0.0,
              .waiting_pushes = 0,
              .requests = now ? 10.0 : 0.0};
    }
  };
  std::vector<Proposal> proposals = job_.Run(&policy_, 1200, compute);
  std::erase_if(proposals, [](const Proposal& p) { return p.target.starts_with("worker"); });
  EXPECT_THAT(proposals, IsEmpty());
}

TEST_F(HangingServerTest, WhileOneWorkerGetsOnNoServerIsToBlame) {
  job_.Run(&policy_, 100);
  StandStill("ps-1");
  job_.loads["worker-0"] = {};
  EXPECT_NEAR(Act(100, &proposals_), 60, 3);
  ASSERT_EQ(proposals_.size(), 1u);
  EXPECT_EQ(proposals_[0].target, "worker-1");
}

/// Two members of a group: `worker` has not done its part of the step, and the other one waits.
void Await(FakeJob* job, const std::string& worker, const std::string& other, uint64_t step) {
  job->loads[worker] = {.minibatches = 0, .shards_held = 0, .awaited_step = step};
  job->loads[worker].peers_waiting = 1;
  job->loads[worker].cpus = 0;
  job->loads[other] = {.minibatches = 0, .shards_held = 0};
}

TEST_F(HangTest, TheMemberThatTheGroupAwaitsHangsAndNotThoseWhoWait) {
  job_.Run(&policy_, 60);
  Await(&job_, "worker-1", "worker-0", 12);
  EXPECT_EQ(Act(1'000, &proposals_), 60) << "although no other worker gets on";
  ASSERT_THAT(Actions(proposals_), ElementsAre(Action::kDumpStacks));
  EXPECT_EQ(proposals_[0].target, "worker-1");
  EXPECT_THAT(proposals_[0].because, HasSubstr("owes the group its part of step 12"));
  EXPECT_EQ(Figure(proposals_[0], "members that wait for it"), 1);
  EXPECT_EQ(Act(100, &proposals_), 5);
  ASSERT_THAT(Actions(proposals_), ElementsAre(Action::kRestart));
  EXPECT_EQ(proposals_[0].target, "worker-1");
}

TEST_F(HangTest, ALearnerThatGetsNothingHangs) {
  job_.Run(&policy_, 60);
  job_.loads["worker-1"] = {.minibatches = 0, .shards_held = 0, .awaited_step = 1};
  job_.loads["worker-1"].group_part = GroupPart::kLearn;
  job_.loads["worker-1"].group_moves = 3;
  EXPECT_EQ(Act(1'000, &proposals_), 0) << "a large state takes its time";
  job_.loads["worker-1"].group_moves = 0;
  EXPECT_EQ(Act(1'000, &proposals_), 60);
  EXPECT_EQ(proposals_[0].target, "worker-1");
  EXPECT_THAT(proposals_[0].because, HasSubstr("is to learn the state of the group, and has got "
                                               "nothing for 60 s"));
}

TEST_F(HangTest, AProcessThatDoesNotJoinItsGroupHangs) {
  job_.loads["worker-1"] = {.minibatches = 0, .shards_held = 0};
  job_.loads["worker-1"].group_part = GroupPart::kJoin;
  EXPECT_NEAR(Act(1'000, &proposals_), 300, 3) << "it may load its model first";
  ASSERT_THAT(Actions(proposals_), ElementsAre(Action::kDumpStacks));
  EXPECT_EQ(proposals_[0].target, "worker-1");
  EXPECT_THAT(proposals_[0].because, HasSubstr("has not joined the group"));
  EXPECT_EQ(Act(100, &proposals_), 5);
  ASSERT_THAT(Actions(proposals_), ElementsAre(Action::kRestart));
  EXPECT_NEAR(Act(2'000, &proposals_), 600, 3) << "the next start may take twice as long";
  job_.loads["worker-1"] = {};
  EXPECT_EQ(Act(1'000, &proposals_), 0);
}

TEST_F(HangTest, AMemberWithoutMinibatchesGetsOnByItsSteps) {
  job_.Run(&policy_, 60);
  Await(&job_, "worker-1", "worker-0", 1);
  for (uint64_t step = 1; step < 20; ++step) {
    job_.loads["worker-1"].awaited_step = step;
    EXPECT_EQ(Act(50, &proposals_), 0) << step;
  }
  EXPECT_GT(Act(1'000, &proposals_), 0);
}

TEST_F(HangTest, MembersThatAllStandStillHaveLonger) {
  job_.Run(&policy_, 60);
  for (const char* worker : {"worker-0", "worker-1"}) {
    job_.loads[worker] = {.minibatches = 0, .shards_held = 0, .awaited_step = 12, .cpus = 0};
  }
  EXPECT_NEAR(Act(1'000, &proposals_), 180, 5);
}

TEST_F(HangTest, ALostNodeIsTheKeepersBusiness) {
  job_.Run(&policy_, 10);
  Freeze("worker-1", 0);
  job_.Node("worker-1").state = NodeState::kLost;
  EXPECT_EQ(Act(500, &proposals_), 0);
}

TEST_F(HangTest, ANodeWithoutAPlaceIsNoHangAndWhoWaitsForItIsNoneEither) {
  job_.Run(&policy_, 60);
  const auto hold = [&](const std::string& name) {
    NodeView& node = job_.Node(name);
    ++node.start;
    node.state = NodeState::kWaiting;
    node.wait = NodeWait::kUnschedulable;
    node.samples.clear();
  };
  hold("worker-1");
  EXPECT_EQ(Act(3'000, &proposals_), 0);
  hold("ps-0");
  Freeze("worker-0", 0);
  EXPECT_EQ(Act(3'000, &proposals_), 0) << "it waits for the server";
}

}  // namespace
}  // namespace muster::scaler
