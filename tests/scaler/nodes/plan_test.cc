#include "scaler/nodes/plan.h"

#include <gmock/gmock.h>

namespace muster::scaler {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using State = NodePlan::State;

Plan PlanOf(const NodePlan& node) {
  Plan plan{.run_id = "r", .workers = 1, .nodes = {}};
  plan.nodes["worker-0"] = node;
  return plan;
}

TEST(PlanTest, NewPlanNamesEveryNode) {
  const Plan plan = NewPlan("r", 1, 2);
  EXPECT_EQ(plan.run_id, "r");
  EXPECT_EQ(plan.workers, 2u);
  ASSERT_EQ(plan.nodes.size(), 3u);
  EXPECT_EQ(plan.nodes.at("ps-0").role, NodeRole::kServer);
  EXPECT_EQ(plan.nodes.at("worker-1").role, NodeRole::kWorker);
  EXPECT_EQ(plan.nodes.at("worker-1").starts, 0u);
}

struct Case {
  const char* what;
  NodePlan before;
  std::vector<FoundNode> found;
  State state;
  uint32_t starts;
  uint64_t pid;
  bool died;
  std::vector<FoundNode> stale;
};

TEST(PlanTest, Adoption) {
  const FoundNode alive_1{"worker-0", 1, true}, alive_2{"worker-0", 2, true};
  const FoundNode alive_3{"worker-0", 3, true};
  const FoundNode dead_2{"worker-0", 2, false};
  const NodePlan running{.state = State::kRunning, .starts = 2, .exits = 1, .pid = 42};
  const NodePlan unheard{.state = State::kRunning, .starts = 2, .pid = 0};
  const NodePlan idle{.state = State::kIdle, .starts = 2, .exits = 1, .pid = 42};
  const NodePlan finished{.state = State::kFinished, .starts = 2, .pid = 42};
  const Case cases[] = {
      {"never started", {}, {}, State::kIdle, 0, 0, false, {}},
      {"runs", running, {alive_2}, State::kRunning, 2, 42, false, {}},
      {"runs, and has not been heard of", unheard, {alive_2}, State::kRunning, 2, 0, false, {}},
      {"killed with its supervising process", running, {dead_2}, State::kRunning, 2, 42, true, {}},
      {"its socket is gone, too", running, {}, State::kRunning, 2, 42, true, {}},
      {"ordered, and not begun: the number is free", unheard, {}, State::kIdle, 1, 0, false, {}},
      {"perhaps begun: the number is used", unheard, {dead_2}, State::kIdle, 2, 0, false, {}},
      {"its exit was told, but not released",
       idle,
       {alive_2},
       State::kIdle,
       2,
       42,
       false,
       {alive_2}},
      {"told and released", idle, {}, State::kIdle, 2, 42, false, {}},
      {"finished, but not released",
       finished,
       {alive_2},
       State::kFinished,
       2,
       42,
       false,
       {alive_2}},
      {"started beyond a plan that could not be written",
       idle,
       {alive_3},
       State::kRunning,
       3,
       0,
       false,
       {}},
      {"a former life", running, {alive_1, alive_2}, State::kRunning, 2, 42, false, {alive_1}},
      {"two beyond the plan", idle, {alive_3, alive_2}, State::kRunning, 3, 0, false, {alive_2}},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.what);
    const Adoption adoption = Adopt(PlanOf(c.before), c.found);
    const NodePlan& node = adoption.plan.nodes.at("worker-0");
    EXPECT_EQ(node.state, c.state);
    EXPECT_EQ(node.starts, c.starts);
    EXPECT_EQ(node.pid, c.pid);
    EXPECT_EQ(node.exits, c.before.exits);
    EXPECT_EQ(adoption.died.size(), c.died ? 1u : 0u);
    EXPECT_EQ(adoption.stale, c.stale);
  }
}

TEST(PlanTest, NodeThatNobodyPlannedGoes) {
  const FoundNode stranger{"worker-7", 1, true};
  const Adoption adoption = Adopt(PlanOf({}), {stranger, {"worker-8", 1, false}});
  EXPECT_THAT(adoption.stale, ElementsAre(stranger));
  EXPECT_EQ(adoption.plan, PlanOf({}));
  EXPECT_THAT(adoption.died, IsEmpty());
}

TEST(PlanTest, ARestartOfAnOlderLifeIsOver) {
  Plan plan = PlanOf({.state = State::kRunning, .starts = 2, .ending = NodePlan::Ending::kRestart});
  EXPECT_EQ(Adopt(plan, {{"worker-0", 2, true}}).plan.nodes.at("worker-0").ending,
            NodePlan::Ending::kRestart);
  EXPECT_EQ(Adopt(plan, {{"worker-0", 3, true}}).plan.nodes.at("worker-0").ending,
            NodePlan::Ending::kNone);
}

TEST(PlanTest, LimitsThatMayBeRefusedAreOfOneLife) {
  const Plan plan = PlanOf(
      {.state = State::kRunning, .starts = 2, .pid = 42, .former_limits = Resources{.cpus = 1}});
  const NodePlan same = Adopt(plan, {{"worker-0", 2, true}}).plan.nodes.at("worker-0");
  EXPECT_EQ(same.former_limits, Resources{.cpus = 1});
  const NodePlan later = Adopt(plan, {{"worker-0", 3, true}}).plan.nodes.at("worker-0");
  EXPECT_EQ(later.former_limits, std::nullopt);
}

TEST(PlanTest, AWorkerThatIsToLeaveLeavesInALaterLifeToo) {
  const Plan plan =
      PlanOf({.state = State::kRunning, .starts = 2, .ending = NodePlan::Ending::kDrain});
  EXPECT_EQ(Adopt(plan, {{"worker-0", 3, true}}).plan.nodes.at("worker-0").ending,
            NodePlan::Ending::kDrain);
}

TEST(PlanTest, WhatWasWantedOfALifeThatNeverBeganIsOver) {
  struct Case {
    NodeRole role;
    NodePlan::Ending ending;
    State state;
  };
  for (const Case& c : {Case{NodeRole::kWorker, NodePlan::Ending::kDrain, State::kFinished},
                        Case{NodeRole::kWorker, NodePlan::Ending::kRestart, State::kIdle},
                        Case{NodeRole::kServer, NodePlan::Ending::kDrain, State::kIdle}}) {
    const Plan plan =
        PlanOf({.role = c.role, .state = State::kRunning, .starts = 2, .ending = c.ending});
    const NodePlan node = Adopt(plan, {}).plan.nodes.at("worker-0");
    EXPECT_EQ(node.state, c.state);
    EXPECT_EQ(node.starts, 1u);
    EXPECT_EQ(node.ending, NodePlan::Ending::kNone);
  }
}

TEST(PlanTest, WithoutAPlanThereIsABoundOnWorkers) {
  const Resources limits{.cpus = 2};
  const FoundNode last{WorkerName(kWorkersMax - 1), 1, true};
  const FoundNode beyond{WorkerName(kWorkersMax), 1, true};
  const Adoption adoption =
      AdoptWithoutPlan(NewPlan("r", 1, 1, {.worker = limits}), {last, beyond});
  EXPECT_THAT(adoption.stale, ElementsAre(beyond));
  EXPECT_EQ(adoption.plan.workers, 2u);
  EXPECT_EQ(adoption.plan.nodes.at(last.node).state, State::kRunning);
  EXPECT_EQ(adoption.plan.nodes.at(last.node).limits, limits) << "those of its peers";
}

TEST(PlanTest, WithoutAPlanTheJobsOwnNodesAreStartedAgainAndOthersAreNot) {
  const Adoption adoption = AdoptWithoutPlan(
      NewPlan("r", 1, 1), {{"worker-0", 3, false}, {"worker-1", 3, false}, {"ps-0", 3, false}});
  EXPECT_EQ(adoption.plan.nodes.at("worker-0").state, State::kIdle);
  EXPECT_EQ(adoption.plan.nodes.at("worker-1").state, State::kFinished) << "it was added later";
  EXPECT_EQ(adoption.plan.nodes.at("ps-0").state, State::kIdle);
  EXPECT_EQ(adoption.plan.workers, 1u);
}

TEST(PlanTest, WithoutAPlanWhatRunsStaysAndNoNumberIsUsedTwice) {
  const Resources limits{.cpus = 2};
  const std::vector<FoundNode> found = {
      {"ps-0", 3, true},                                // runs
      {"worker-0", 4, false},                           // died
      {"worker-1", 2, false}, {"worker-1", 5, true},    // started again
      {"worker-2", 7, true},  {"worker-2", 8, false},   // and died since
      {"worker-5", 1, true},                            // added while the job ran
      {"worker-6", 1, false},                           // added, and died
      {"worker-3", 9, false}, {"worker-3", 8, true},    // the same, seen in another order
      {"ps-4", 1, true},      {"worker-07", 1, true}};  // of no job like this one
  const Adoption adoption = AdoptWithoutPlan(NewPlan("r", 2, 4, {.worker = limits}), found);
  const auto& nodes = adoption.plan.nodes;
  ASSERT_EQ(nodes.size(), 8u);
  EXPECT_EQ(nodes.at("ps-0"),
            (NodePlan{.role = NodeRole::kServer, .state = State::kRunning, .starts = 3}));
  EXPECT_EQ(nodes.at("ps-1"), (NodePlan{.role = NodeRole::kServer}));
  EXPECT_EQ(nodes.at("worker-0"), (NodePlan{.starts = 4, .limits = limits}));
  EXPECT_EQ(nodes.at("worker-1"),
            (NodePlan{.state = State::kRunning, .starts = 5, .limits = limits}));
  EXPECT_EQ(nodes.at("worker-2"), (NodePlan{.starts = 8, .limits = limits}));
  EXPECT_EQ(nodes.at("worker-3"), (NodePlan{.starts = 9, .limits = limits}));
  EXPECT_EQ(nodes.at("worker-5"),
            (NodePlan{.state = State::kRunning, .starts = 1, .limits = limits}));
  EXPECT_EQ(nodes.at("worker-6"),
            (NodePlan{.state = State::kFinished, .starts = 1, .limits = limits}));
  EXPECT_EQ(adoption.plan.workers, 5u);
  EXPECT_THAT(adoption.stale,
              ElementsAre(FoundNode{"worker-2", 7, true}, FoundNode{"worker-3", 8, true},
                          FoundNode{"ps-4", 1, true}, FoundNode{"worker-07", 1, true}));
  EXPECT_THAT(adoption.died, IsEmpty());
}

}  // namespace
}  // namespace muster::scaler
