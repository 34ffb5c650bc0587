#include "scaler/model/kept_node.h"

#include <gtest/gtest.h>

#include <tuple>
#include <vector>

namespace muster::scaler {
namespace {

using Kept = KeptNode::State;
using enum NodeState;

constexpr MasterSays kHeard{.state = kRunning};
constexpr MasterSays kSilent{.state = kLost};

struct Case {
  const char* what;
  KeptNode kept;
  std::optional<MasterSays> master;
  NodeState people, policies;
};

KeptNode Worker(Kept state) {
  return {.name = "worker-0", .role = NodeRole::kWorker, .starts = 1, .state = state};
}
KeptNode Server(Kept state) {
  return {.name = "ps-0", .role = NodeRole::kServer, .starts = 1, .state = state};
}
KeptNode Unstarted(Kept state) {
  return {.name = "worker-0", .starts = 0, .state = state};
}
KeptNode ToldToEnd() {
  KeptNode kept = Worker(Kept::kRunning);
  kept.told_to_end = true;
  return kept;
}

void Check(const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    EXPECT_EQ(NodeStateOf(c.kept, c.master, StateReader::kPeople), c.people) << c.what;
    EXPECT_EQ(NodeStateOf(c.kept, c.master, StateReader::kPolicies), c.policies) << c.what;
  }
}

TEST(NodeStateOfTest, ItStartsUntilTheMasterHearsItAndIsWhatTheMasterSaysThen) {
  const KeptNode kept = Worker(Kept::kRunning);
  Check({{"not heard", kept, {}, kStarting, kStarting},
         {"told of", kept, MasterSays{.state = kStarting}, kStarting, kStarting},
         {"heard", kept, kHeard, kRunning, kRunning},
         {"silent", kept, kSilent, kLost, kLost},
         // The next life is not told yet.
         {"taken for dead", kept, MasterSays{.state = kExited}, kStarting, kStarting}});
}

TEST(NodeStateOfTest, WhatTheKeeperKnowsToBeGoneIsGoneWhateverTheMasterSays) {
  Check({{"being told", Worker(Kept::kReporting), kHeard, kExited, kExited},
         {"to be started again", Worker(Kept::kWaiting), kHeard, kExited, kExited}});
}

TEST(NodeStateOfTest, ForPeopleWhoWaitsForItsFirstStartIsStartingForPoliciesItHasNoLifeYet) {
  Check({{"never started", Unstarted(Kept::kWaiting), {}, kStarting, kPlanned}});
}

TEST(NodeStateOfTest, PoliciesSeeTheLastEndOfWhatIsFinishedAndKnowNoMoreOfIt) {
  Check({{"finished", Worker(Kept::kFinished), {}, kFinished, kExited},
         {"without a start", Unstarted(Kept::kFinished), {}, kFinished, kPlanned}});
}

TEST(NodeStateOfTest, PeopleSeeADrainBesideTheStatePoliciesAsTheState) {
  const MasterSays draining{.state = kRunning, .drain = DrainState::kDraining};
  const MasterSays drained{.state = kRunning, .drain = DrainState::kDrained};
  const MasterSays lost{.state = kLost, .drain = DrainState::kDraining};
  Check({{"asked for by us", Worker(Kept::kDraining), kHeard, kRunning, kDraining},
         {"and not heard", Worker(Kept::kDraining), {}, kStarting, kDraining},
         {"and silent", Worker(Kept::kDraining), kSilent, kLost, kDraining},
         {"a server", Server(Kept::kDraining), kHeard, kRunning, kDraining},
         {"told to end", ToldToEnd(), kHeard, kRunning, kDraining},
         {"asked for by others", Worker(Kept::kRunning), draining, kRunning, kDraining},
         {"it will end by itself", Worker(Kept::kRunning), drained, kRunning, kDraining},
         {"it serves on", Server(Kept::kRunning), drained, kRunning, kRunning},
         {"others asked, and it is silent", Worker(Kept::kRunning), lost, kLost, kLost}});
}

TEST(NodeStateOfTest, PeopleSeePartitionsBesideTheStateForPoliciesAServerThatRestoresStarts) {
  const MasterSays some{.state = kRunning, .serves_all = false};
  const MasterSays lost{.state = kLost, .serves_all = false};
  Check({{"restores", Server(Kept::kRunning), some, kRunning, kStarting},
         {"silent", Server(Kept::kRunning), lost, kLost, kLost},
         {"a worker has none", Worker(Kept::kRunning), some, kRunning, kRunning}});
}

TEST(NodeStateOfTest, WithoutAProcessItWaitsAndNoPolicyJudgesHowLong) {
  KeptNode on_its_way = Worker(Kept::kRunning);
  on_its_way.no_process = true;
  KeptNode held = on_its_way;
  held.wait = NodeWait::kUnschedulable;
  KeptNode leaves = held;
  leaves.told_to_end = true;
  Check({{"on its way", on_its_way, {}, kStarting, kWaiting},
         {"held", held, {}, kWaiting, kWaiting},
         {"and told to end", leaves, {}, kStarting, kDraining}});
}

TEST(KeptNodeTest, WhoRunsAndWhoHasALife) {
  for (const auto& [state, runs, has_life] : {std::tuple(Kept::kWaiting, false, false),
                                              {Kept::kRunning, true, true},
                                              {Kept::kReporting, false, true},
                                              {Kept::kFinished, false, false},
                                              {Kept::kDraining, true, true}}) {
    EXPECT_EQ(Worker(state).runs(), runs) << static_cast<int>(state);
    EXPECT_EQ(Worker(state).has_life(), has_life) << static_cast<int>(state);
  }
}

}  // namespace
}  // namespace muster::scaler
