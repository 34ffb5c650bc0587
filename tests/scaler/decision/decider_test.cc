#include "scaler/decision/decider.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "scaler/decision/event_drafts.h"
#include "tests/scaler/decision/decider_fixture.h"

/// The whole way from views to events and orders, over a job that does what it is told.
namespace muster::scaler {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST_F(DeciderTest, AnUndisturbedJobHasNoEvents) {
  Begin();
  EXPECT_THAT(Seconds(300), IsEmpty());
  EXPECT_THAT(Told(), IsEmpty());
}

TEST_F(DeciderTest, AKillForMemoryIsToldAnsweredAndMeasured) {
  Begin();
  Seconds(20);
  job_.loads["ps-0"].memory_mib = 600;
  const std::vector<Ordered> orders = Seconds(30);
  EXPECT_THAT(Told(), ElementsAre("exit ps-0", "decision out-of-memory ps-0 restart <- 1",
                                  "outcome out-of-memory ps-0 restart <- 2 helped"));
  ASSERT_THAT(orders, SizeIs(1));
  EXPECT_EQ(orders[0].event_id, 2u);
  const auto& restart = std::get<RestartNode>(orders[0].order);
  EXPECT_EQ(restart.limits.value_or(Resources{}).memory_bytes, 768 * kMiB);
  EXPECT_EQ(restart.only_start, 1u);
  EXPECT_FALSE(restart.charged);
  EXPECT_EQ(restart.why, events_[1].because);
  EXPECT_EQ(orders[0].taken->policy, "out-of-memory");
  EXPECT_EQ(events_[1].before.at("memory_bytes"), static_cast<double>(512 * kMiB));
  EXPECT_EQ(events_[1].after.at("memory_bytes"), static_cast<double>(768 * kMiB));
  EXPECT_EQ(FigureOf(events_[1], kStartFigure), 1);
  EXPECT_GT(FigureOf(events_[1], kRateFigure).value_or(0), 0);
  EXPECT_EQ(PolicyNamed("out-of-memory").decisions, 1u);
  EXPECT_EQ(PolicyNamed("out-of-memory").last_event_id, 2u);
}

TEST_F(DeciderTest, AtTheBoundTheJobFailsWithTheRootCause) {
  Begin();
  job_.Node("ps-0").max.memory_bytes = 512 * kMiB;
  job_.loads["ps-0"].memory_mib = 600;
  restart_ = false;
  const std::vector<Ordered> orders = Seconds(1);
  ASSERT_THAT(orders, SizeIs(1));
  const std::string reason = std::get<FailJob>(orders[0].order).reason;
  EXPECT_THAT(reason,
              AllOf(HasSubstr("ps-0 was killed by the kernel at its memory limit of 512 MiB"),
                    HasSubstr("the job file's maximum"), HasSubstr("raise spec.")));
  job_.view.activity = Activity::kOver;
  Seconds(5);
  EXPECT_THAT(Told(), ElementsAre("exit ps-0", "decision out-of-memory job stop-job <- 1",
                                  "outcome out-of-memory job stop-job <- 2 helped"));
}

TEST_F(DeciderTest, AProgramThatOnlyCrashesEndsTheJob) {
  Begin();
  std::vector<Ordered> orders;
  for (int i = 0; i < 5; ++i) {
    job_.End("worker-1", EndCause::kProgram);
    for (Ordered& ordered : Seconds(1)) orders.push_back(std::move(ordered));
  }
  ASSERT_THAT(orders, SizeIs(5));
  EXPECT_TRUE(std::get<RestartNode>(orders[0].order).charged);
  EXPECT_THAT(std::get<FailJob>(orders[4].order).reason, HasSubstr("`muster logs worker-1`"));
  EXPECT_THAT(events_.back().because, HasSubstr("5 times in a row"));
  EXPECT_EQ(events_.back().cause_id, events_.size() - 2) << Told().back();
}

TEST_F(DeciderTest, AnEndThatWasAskedForNamesWhatAskedForIt) {
  Begin();
  Seconds(60);
  job_.loads["worker-1"] = {.minibatches = 10, .computing_us = 40'000};
  for (int i = 0; i < 120; ++i) {
    if (job_.Node("worker-1").start > 1) job_.loads["worker-1"] = {};
    Second();
  }
  EXPECT_THAT(Told(),
              ElementsAre("decision worker-straggler worker-1 restart", "exit worker-1 <- 1",
                          "outcome worker-straggler worker-1 restart <- 1 helped"));
}

TEST_F(DeciderTest, APlatformKillIsChargedToNobody) {
  Begin();
  job_.End("worker-0", EndCause::kPlatform);
  const std::vector<Ordered> orders = Seconds(20);
  ASSERT_THAT(orders, SizeIs(1));
  EXPECT_FALSE(std::get<RestartNode>(orders[0].order).charged);
  EXPECT_EQ(std::get<RestartNode>(orders[0].order).limits, std::nullopt);
  EXPECT_THAT(Told(), ElementsAre("exit worker-0", "decision platform-kill worker-0 restart <- 1",
                                  "outcome platform-kill worker-0 restart <- 2 helped"));
}

TEST_F(DeciderTest, AnEndThatIsToldTwiceIsOneEvent) {
  Begin();
  restart_ = false;
  const NodeEnd end = job_.End("worker-0", EndCause::kClean);
  Second();
  job_.view.ends.push_back(end);
  Second();
  EXPECT_THAT(Told(), ElementsAre("exit worker-0"));
}

TEST_F(DeciderTest, ARefusalIsANoteAndCounted) {
  Decider::Options options;
  options.paused = {"out-of-memory"};
  Begin(options);
  EXPECT_TRUE(PolicyNamed("out-of-memory").paused);
  job_.loads["ps-0"].memory_mib = 600;
  EXPECT_THAT(Seconds(1), IsEmpty());
  EXPECT_THAT(Told(), ElementsAre("exit ps-0", "note out-of-memory ps-0 restart <- 1"));
  EXPECT_THAT(events_[1].because,
              HasSubstr("not done, because the policy out-of-memory is paused"));
  EXPECT_EQ(PolicyNamed("out-of-memory").refused, 1u);
}

TEST_F(DeciderTest, ADryRunIsToldAndNothingIsDone) {
  Begin({.arbiter = {.dry_run = true}});
  EXPECT_TRUE(PolicyNamed("hang").dry_run);
  job_.loads["ps-0"].memory_mib = 600;
  EXPECT_THAT(Seconds(1), IsEmpty());
  ASSERT_THAT(Told(), ElementsAre("exit ps-0", "decision out-of-memory ps-0 restart <- 1"));
  EXPECT_TRUE(events_[1].dry_run);
}

TEST_F(DeciderTest, AJobThatDrainsIsNotStoppedAndStartsNoWorkerAgain) {
  Begin();
  job_.view.activity = Activity::kDraining;
  job_.End("worker-0", EndCause::kPlatform);
  job_.End("ps-1", EndCause::kPlatform);
  EXPECT_THAT(Seconds(1), SizeIs(1));
  EXPECT_THAT(Told(), ElementsAre("exit worker-0", "exit ps-1",
                                  "decision platform-kill ps-1 restart <- 2"));
  job_.Node("ps-1").max.memory_bytes = 512 * kMiB;
  job_.End("ps-1", EndCause::kKernelOutOfMemory);
  EXPECT_THAT(Seconds(1), IsEmpty()) << "no more may be had";
  job_.view.activity = Activity::kOver;
  job_.End("ps-0", EndCause::kPlatform);
  EXPECT_THAT(Seconds(1), IsEmpty());
}

TEST_F(DeciderTest, APersonsOrderIsToldCarriedOutAndMeasured) {
  Begin();
  Seconds(20);
  const Decider::Taken taken = Take(RestartNode{.node = "worker-2"}, {.workers = 3}, "looks stuck");
  EXPECT_EQ(taken.event.id, 1u);
  ASSERT_THAT(taken.orders, SizeIs(1));
  EXPECT_EQ(std::get<RestartNode>(taken.orders[0].order).node, "worker-2");
  CarryOut(taken.orders[0]);
  Seconds(20);
  EXPECT_THAT(Told(), ElementsAre("action worker-2 restart", "exit worker-2 <- 1",
                                  "outcome worker-2 restart <- 1 helped"));
}

TEST_F(DeciderTest, WhatTheKeeperDoesByItselfIsToldOncePerLife) {
  Begin();
  Seconds(1);
  const auto tell_lost = [this] {
    decider_->Tell(Action::kRestart, "worker-0",
                   "worker-0 has not been heard for 60 s: it is killed", job_.view);
  };
  tell_lost();
  tell_lost();
  job_.End("worker-0", EndCause::kAsked);
  Seconds(20);
  EXPECT_THAT(Told(), ElementsAre("decision supervision worker-0 restart", "exit worker-0 <- 1",
                                  "outcome supervision worker-0 restart <- 1 helped"));
  tell_lost();
  EXPECT_THAT(events_, SizeIs(4)) << "another life of it";
}

TEST_F(DeciderTest, AJobThatIsGivenUpIsGivenUpOnce) {
  Begin();
  job_.Node("ps-0").max.memory_bytes = 512 * kMiB;
  job_.loads["ps-0"].memory_mib = 600;
  restart_ = false;
  Seconds(1);
  decider_->Tell(Action::kStopJob, "job", "as it was told", job_.view);
  EXPECT_THAT(Told(), ElementsAre("exit ps-0", "decision out-of-memory job stop-job <- 1"));
}

TEST_F(DeciderTest, AnOrderThatCouldNotBeCarriedOutSaysSo) {
  Begin();
  job_.loads["ps-0"].memory_mib = 600;
  const std::vector<Ordered> orders = Second();
  decider_->Fail(orders.at(0).event_id, "no such group");
  EXPECT_THAT(Told().back(), "outcome out-of-memory ps-0 restart <- 2 unknown");
}

class AdoptTest : public DeciderTest {
 protected:
  /// A decision about worker-1 was told; its scaler dies.
  void DecideAndDie() {
    Begin();
    Seconds(20);
    job_.End("worker-1", EndCause::kPlatform);
    restart_ = false;
    Seconds(1);
    ASSERT_THAT(Told(),
                ElementsAre("exit worker-1", "decision platform-kill worker-1 restart <- 1"));
    Begin();
  }
};

TEST_F(AdoptTest, AnOpenOutcomeIsMeasuredByTheSuccessor) {
  const WallTime began = Wall();
  DecideAndDie();
  job_.view.now += std::chrono::seconds(5);
  decider_->Adopt(events_, began, Wall(), job_.view.now);
  EXPECT_EQ(PolicyNamed("platform-kill").decisions, 1u);
  EXPECT_EQ(PolicyNamed("platform-kill").last_event_id, 2u);
  job_.Start("worker-1");
  Seconds(20);
  ASSERT_THAT(Told().back(), "outcome platform-kill worker-1 restart <- 2 helped");
  EXPECT_THAT(events_.back().because, HasSubstr("after 6.0 s"));
  Begin();
  const size_t before = events_.size();
  decider_->Adopt(events_, began, Wall(), job_.view.now);
  Seconds(200);
  EXPECT_THAT(events_, SizeIs(before)) << "it has its outcome";
}

TEST_F(AdoptTest, LimitsThatAnEarlierRunGaveAreGivenAgainWithoutAnEvent) {
  // A later run of the same job: no node has started yet.
  const auto next_run = [this](uint64_t machine_memory) {
    job_.view.machine = {.cpus = 4, .memory_bytes = machine_memory};
    for (NodeView& node : job_.view.nodes) {
      node.state = NodeState::kPlanned;
      node.start = 0;
      node.requested = node.limits = node.max = {};
    }
    const std::vector<rest::Event> earlier = events_;
    Begin();
    decider_->Adopt(earlier, Wall() + std::chrono::seconds(1), Wall(), job_.view.now);
    const size_t closed = events_.size();  // outcomes of the last run are closed
    const std::vector<Ordered> orders = Second();
    EXPECT_THAT(orders, SizeIs(job_.view.nodes.size()));
    for (const Ordered& ordered : orders) {
      EXPECT_EQ(events_.at(ordered.event_id - 1).action, "resize");
    }
    return events_.size() - closed;
  };
  const size_t nodes = job_.view.nodes.size();
  EXPECT_EQ(next_run(1'000 * kMiB), nodes);
  EXPECT_EQ(next_run(1'000 * kMiB), 0u);
  EXPECT_EQ(PolicyNamed("initial-resources").decisions, nodes);
  EXPECT_EQ(next_run(2'000 * kMiB), nodes) << "other limits are another decision";
}

TEST_F(AdoptTest, WhatWasNotDoneIsClosedSoon) {
  Begin();
  Seconds(20);
  const WallTime began = Wall();
  const std::vector<rest::Event> left = {{.id = 1,
                                          .wall_us = static_cast<uint64_t>(Wall().count()),
                                          .kind = "decision",
                                          .policy = "hang",
                                          .target = "worker-1",
                                          .action = "restart",
                                          .evidence = {{kStartFigure, 1, "", 0}}},
                                         {.id = 2,
                                          .wall_us = static_cast<uint64_t>(Wall().count()),
                                          .kind = "decision",
                                          .policy = "predicted-out-of-memory",
                                          .target = "worker-0",
                                          .action = "resize",
                                          .before = {{"memory_bytes", 1e9}},
                                          .after = {{"memory_bytes", 2e9}}}};
  events_ = left;
  Begin();
  decider_->Adopt(left, began, Wall(), job_.view.now);
  job_.view.master_heard = false;
  Seconds(30);
  EXPECT_THAT(events_, SizeIs(2)) << "nothing is seen of the nodes";
  job_.view.master_heard = true;
  Seconds(1);
  EXPECT_THAT(Told(), ElementsAre("decision hang worker-1 restart",
                                  "decision predicted-out-of-memory worker-0 resize",
                                  "outcome hang worker-1 restart <- 1 unknown",
                                  "outcome predicted-out-of-memory worker-0 resize <- 2 unknown"));
  EXPECT_EQ(events_.back().because, "the scaler died before it was done");
}

TEST_F(AdoptTest, CooldownsAndTheBudgetGoOn) {
  // Frozen, as the hang policy will find; it was restarted just before the scaler died.
  const auto restart_of = [this](uint64_t id, WallTime ago) {
    return rest::Event{.id = id,
                       .wall_us = static_cast<uint64_t>((Wall() - ago).count()),
                       .kind = "decision",
                       .policy = "hang",
                       .target = "worker-1",
                       .action = "dump-stacks"};
  };
  const auto first_told = [&](const std::vector<rest::Event>& left, uint32_t per_hour) {
    job_.loads["worker-1"] = {};
    events_.clear();
    Decider::Options options;
    options.arbiter.interventions_per_hour = per_hour;
    options.arbiter.cooldown = std::chrono::minutes(3);
    Begin(options);
    Seconds(10);
    events_.clear();
    decider_->Adopt(left, WallTime(0), Wall(), job_.view.now);
    job_.loads["worker-1"].minibatches = 0;
    Seconds(70);
    return events_.empty() ? std::string() : events_.front().because;
  };
  EXPECT_THAT(first_told({}, 2), HasSubstr("has finished no minibatch"));
  EXPECT_THAT(first_told({restart_of(1, std::chrono::seconds(0))}, 2),
              HasSubstr("did the same to worker-1 less than 180 s ago"));
  EXPECT_THAT(
      first_told({restart_of(1, std::chrono::minutes(50)), restart_of(2, std::chrono::minutes(40))},
                 2),
      HasSubstr("2 interventions in the last hour"));
}

TEST_F(AdoptTest, APolicyThatMadeThingsWorseStaysHeldBack) {
  const auto first_told = [&](const rest::Event& outcome) {
    job_.loads["worker-1"] = {};
    Begin();
    Seconds(60);
    events_.clear();
    decider_->Adopt({outcome}, WallTime(0), Wall(), job_.view.now);
    job_.loads["worker-1"] = {.minibatches = 10, .computing_us = 40'000};
    Seconds(40);
    return events_.empty() ? rest::Event() : events_.front();
  };
  rest::Event outcome{.id = 1,
                      .wall_us = static_cast<uint64_t>(Wall().count()),
                      .kind = "outcome",
                      .policy = "worker-straggler",
                      .target = "worker-2",
                      .action = "restart",
                      .verdict = "worse"};
  EXPECT_EQ(first_told(outcome).kind, "note");
  EXPECT_THAT(events_.front().because, HasSubstr("made things worse"));
  outcome.verdict = "no-change";
  EXPECT_EQ(first_told(outcome).kind, "decision");
  outcome.verdict = "worse";
  outcome.policy = "server-straggler";
  EXPECT_EQ(first_told(outcome).kind, "decision");
}

TEST_F(DeciderTest, ARestartThatMadeThingsWorseIsTheLastOfItsPolicy) {
  Begin();
  Seconds(60);
  job_.loads["worker-1"] = {.minibatches = 10, .computing_us = 40'000};
  Seconds(30);
  ASSERT_THAT(Told(), ::testing::Contains("decision worker-straggler worker-1 restart"));
  for (auto& [name, load] : job_.loads) load.minibatches = 3;  // whatever the reason
  Seconds(60);
  ASSERT_THAT(Told(), ::testing::Contains(HasSubstr("restart <- 1 worse")));
  job_.loads["worker-2"] = {.minibatches = 2, .computing_us = 400'000};
  Seconds(120);
  EXPECT_EQ(PolicyNamed("worker-straggler").decisions, 1u);
  EXPECT_GE(PolicyNamed("worker-straggler").refused, 1u);
}

TEST_F(AdoptTest, TheSameEndIsNoSecondEvent) {
  const WallTime began = Wall();
  DecideAndDie();
  decider_->Adopt(events_, began, Wall(), job_.view.now);
  job_.End("worker-1", EndCause::kPlatform);
  Seconds(1);
  EXPECT_THAT(Told(), ElementsAre("exit worker-1", "decision platform-kill worker-1 restart <- 1",
                                  "decision platform-kill worker-1 restart <- 1"));
}

TEST_F(AdoptTest, WhatIsOldOrOfAnotherRunStaysUnknown) {
  const WallTime began = Wall();
  DecideAndDie();
  const std::vector<rest::Event> left = events_;
  decider_->Adopt(left, Wall() + WallTime(1), Wall(), job_.view.now);
  EXPECT_THAT(Told().back(), "outcome platform-kill worker-1 restart <- 2 unknown");
  EXPECT_EQ(PolicyNamed("platform-kill").decisions, 0u);
  Begin();
  job_.view.now += std::chrono::hours(1);
  decider_->Adopt(left, began, Wall(), job_.view.now);
  EXPECT_THAT(events_, SizeIs(4));
  EXPECT_THAT(events_.back().because, HasSubstr("the scaler ended before"));
}

}  // namespace
}  // namespace muster::scaler
