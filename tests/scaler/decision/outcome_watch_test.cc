#include "scaler/decision/outcome_watch.h"

#include <gmock/gmock.h>

#include "scaler/decision/event_drafts.h"
#include "tests/scaler/model/fake_job.h"

namespace muster::scaler {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

auto Is(const std::string& verdict, const ::testing::Matcher<std::string>& because) {
  return AllOf(Field("kind", &rest::Event::kind, "outcome"),
               Field("verdict", &rest::Event::verdict, verdict),
               Field("because", &rest::Event::because, because));
}

class OutcomeWatchTest : public ::testing::Test {
 protected:
  /// Goes by the second; returns all outcomes.
  std::vector<rest::Event> Run(int seconds) {
    std::vector<rest::Event> all;
    for (int i = 0; i < seconds; ++i) {
      job_.Tick();
      for (rest::Event& outcome : watch_.Step(job_.view)) all.push_back(std::move(outcome));
      job_.view.ends.clear();
    }
    return all;
  }
  /// The same until there is one; none within 10 minutes.
  std::vector<rest::Event> Await() {
    for (int i = 0; i < 600; ++i) {
      std::vector<rest::Event> outcomes = Run(1);
      if (!outcomes.empty()) return outcomes;
    }
    return {};
  }
  /// Something is decided now.
  void Decide(const std::string& policy, const std::string& action, const std::string& target,
              Change change = {}) {
    rest::Event event{.id = ++last_id_,
                      .kind = policy.empty() ? "action" : "decision",
                      .policy = policy,
                      .target = target,
                      .action = action,
                      .before = change.before,
                      .after = change.after};
    if (const NodeView* node = FindNode(job_.view, target)) {
      AddFigure({kStartFigure, static_cast<double>(node->start), "", 0}, &event);
    }
    if (const auto rate = watch_.Rate()) AddFigure({kRateFigure, *rate, "", 10}, &event);
    watch_.Open(event, job_.view.now);
  }
  void Slow(const std::string& worker, double minibatches) {
    job_.loads[worker].minibatches = minibatches;
  }
  void SetMemory(const std::string& node, uint64_t mib) {
    job_.Node(node).limits.memory_bytes = mib * kMiB;
  }
  static Change Memory(uint64_t before_mib, uint64_t after_mib) {
    return ChangeOf(Resources{.memory_bytes = before_mib * kMiB},
                    Resources{.memory_bytes = after_mib * kMiB});
  }

  FakeJob job_ = FakeJob()
                     .Add(NodeRole::kServer, 1, {.memory_mib = 300}, {.memory_bytes = 512 * kMiB})
                     .Add(NodeRole::kWorker, 2, {}, {.cpus = 1});
  OutcomeWatch watch_;
  uint64_t last_id_ = 0;
};

TEST_F(OutcomeWatchTest, RateIsOfUndisturbedTrainingOnly) {
  EXPECT_EQ(watch_.Rate(), std::nullopt);
  Run(9);
  EXPECT_EQ(watch_.Rate(), std::nullopt) << "too short";
  Run(2);
  EXPECT_NEAR(watch_.Rate().value_or(0), 2 * 50 * 64, 1);
  job_.view.activity = Activity::kReplaying;
  Run(1);
  EXPECT_EQ(watch_.Rate(), std::nullopt);
  job_.view.activity = Activity::kTraining;
  Run(11);
  EXPECT_NEAR(watch_.Rate().value_or(0), 2 * 50 * 64, 1);
  job_.view.records_trained = 0;
  Run(1);
  EXPECT_EQ(watch_.Rate(), std::nullopt) << "another master counts";
}

TEST_F(OutcomeWatchTest, ARestartHasHelpedWhenTheWorkerTrainsAgainAndGoesOn) {
  Run(20);
  Decide("out-of-memory", "restart", "worker-1");
  job_.End("worker-1", EndCause::kKernelOutOfMemory);
  EXPECT_THAT(Run(3), IsEmpty());
  job_.Start("worker-1");
  EXPECT_THAT(Run(10), IsEmpty()) << "it must go on for a while";
  const std::vector<rest::Event> outcomes = Await();
  ASSERT_THAT(outcomes, ElementsAre(Is("helped", "worker-1 trains again, after 4.0 s")));
  EXPECT_EQ(outcomes[0].cause_id, 1u);
  EXPECT_EQ(outcomes[0].policy, "out-of-memory");
  EXPECT_EQ(FigureOf(outcomes[0], "time to it"), 4);
  EXPECT_NEAR(FigureOf(outcomes[0], "rate after").value_or(0), 6400, 1);
  EXPECT_THAT(Run(600), IsEmpty()) << "one outcome each";
}

TEST_F(OutcomeWatchTest, AServerServesAgain) {
  Decide("", "restart", "ps-0");
  job_.Start("ps-0");
  job_.Node("ps-0").state = NodeState::kStarting;  // it restores
  EXPECT_THAT(Run(20), IsEmpty());
  job_.Node("ps-0").state = NodeState::kRunning;
  EXPECT_THAT(Await(), ElementsAre(Is("helped", "ps-0 serves again, after 21.0 s")));
}

TEST_F(OutcomeWatchTest, AWorkerWithoutWorkIsBackAsWell) {
  Decide("", "restart", "worker-0");
  job_.Start("worker-0");
  job_.loads["worker-0"] = {.minibatches = 0, .shards_held = 0};
  EXPECT_THAT(Await(), ElementsAre(Is("helped", StartsWith("worker-0 trains again"))));
}

TEST_F(OutcomeWatchTest, ARestartThatThenEndsWellHasHelped) {
  Decide("out-of-memory", "restart", "worker-0");
  Decide("", "restart", "worker-1");
  Decide("", "restart", "ps-0");
  job_.Start("worker-0");
  job_.Start("worker-1");
  job_.Start("ps-0");
  job_.Node("ps-0").state = NodeState::kStarting;
  EXPECT_THAT(Run(3), IsEmpty());
  job_.End("worker-0", EndCause::kClean);
  job_.End("worker-1", EndCause::kAsked);
  job_.End("ps-0", EndCause::kAsked);
  EXPECT_THAT(Run(1), ElementsAre(Is("helped", StartsWith("worker-0 trains again, after ")),
                                  Is("helped", StartsWith("worker-1 trains again, after ")),
                                  Is("unknown",
                                     "ps-0 ended as it was asked to before more could be seen")));
}

TEST_F(OutcomeWatchTest, ARestartThatEndsAgainHasChangedNothing) {
  Decide("crash-loop", "restart", "worker-1");
  job_.End("worker-1", EndCause::kProgram);
  EXPECT_THAT(Run(1), IsEmpty()) << "the end that it answers";
  job_.Start("worker-1");
  Run(2);
  job_.End("worker-1", EndCause::kProgram);
  EXPECT_THAT(Run(1), ElementsAre(Is("no-change", HasSubstr("ended again (program, exit 1)"))));
}

TEST_F(OutcomeWatchTest, WhatNeverComesIsUnknown) {
  Decide("hang", "restart", "worker-1");
  Run(119);
  EXPECT_THAT(Run(2),
              ElementsAre(Is("unknown", HasSubstr("within 120 s, it was not seen that worker-1 "
                                                  "trains again"))));
}

TEST_F(OutcomeWatchTest, AStragglersRestartIsJudgedByTheRate) {
  Slow("worker-1", 10);
  Run(30);
  Decide("worker-straggler", "restart", "worker-1");
  job_.Start("worker-1");
  Slow("worker-1", 50);
  EXPECT_THAT(Run(19), IsEmpty()) << "settled, and a window after that";
  const std::vector<rest::Event> outcomes = Await();
  ASSERT_THAT(outcomes,
              ElementsAre(Is("helped", HasSubstr("was 3,840 records/s and is 6,400, +67 %"))));
  EXPECT_NEAR(FigureOf(outcomes[0], "rate before").value_or(0), 3840, 1);
  EXPECT_NEAR(FigureOf(outcomes[0], "rate after").value_or(0), 6400, 1);
}

TEST_F(OutcomeWatchTest, TheSameRateIsNoChangeAndALowerOneWorse) {
  Run(30);
  Decide("server-straggler", "restart", "ps-0");
  job_.Start("ps-0");
  EXPECT_THAT(Await(), ElementsAre(Is("no-change", HasSubstr("+0 %"))));
  Decide("worker-straggler", "resize", "worker-0",
         ChangeOf(Resources{.cpus = 1}, Resources{.cpus = 2}));
  job_.Node("worker-0").limits.cpus = 2;
  Slow("worker-0", 20);
  EXPECT_THAT(Await(), ElementsAre(Is("worse", AllOf(HasSubstr("worker-0 has its new limits"),
                                                     HasSubstr("-30 %")))));
}

TEST_F(OutcomeWatchTest, WhatFallsIntoTheSameTimeIsNamed) {
  Run(30);
  Decide("worker-straggler", "restart", "worker-0");
  job_.Start("worker-0");
  Run(5);
  Decide("", "dump-stacks", "worker-1");
  Decide("", "restart", "worker-1");
  job_.Start("worker-1");
  std::vector<rest::Event> outcomes = Run(60);
  EXPECT_THAT(outcomes, ::testing::Contains(
                            Is("no-change", HasSubstr("(event 3 falls into the same time)"))));
}

TEST_F(OutcomeWatchTest, ARateThatCannotBeComparedIsUnknown) {
  Run(3);
  Decide("worker-count", "scale", "workers", ChangeOf(uint32_t{1}, uint32_t{2}));
  EXPECT_THAT(Await(), ElementsAre(Is("unknown", HasSubstr("2 workers run, but the rate before "
                                                           "the change is not known"))));
  Run(30);
  Decide("worker-count", "scale", "workers", ChangeOf(uint32_t{2}, uint32_t{3}));
  job_.Add(NodeRole::kWorker, 1);
  job_.view.activity = Activity::kEvaluating;
  EXPECT_THAT(Await(), ElementsAre(Is("unknown", HasSubstr("has not trained undisturbed"))));
  job_.view.activity = Activity::kTraining;
  Run(30);
  Decide("worker-straggler", "restart", "worker-0");
  job_.Start("worker-0");
  Run(12);
  job_.End("worker-0", EndCause::kPlatform);
  EXPECT_THAT(Run(1), ElementsAre(Is("unknown", HasSubstr("ended again (platform, SIGKILL)"))));
}

TEST_F(OutcomeWatchTest, MoreWorkersHaveHelpedWhenMoreIsTrained) {
  Run(30);
  Decide("worker-count", "scale", "workers", ChangeOf(uint32_t{2}, uint32_t{3}));
  job_.Add(NodeRole::kWorker, 1);
  job_.Node("worker-2").state = NodeState::kStarting;
  EXPECT_THAT(Run(30), IsEmpty());
  job_.Node("worker-2").state = NodeState::kRunning;
  EXPECT_THAT(Await(), ElementsAre(Is("helped", HasSubstr("3 workers run; the job's rate was "
                                                          "6,400 records/s and is 9,600"))));
}

TEST_F(OutcomeWatchTest, MoreMemoryHasHelpedWhenItIsUsed) {
  Decide("predicted-out-of-memory", "resize", "ps-0", Memory(512, 768));
  SetMemory("ps-0", 768);
  job_.loads["ps-0"].memory_mib = 500;
  EXPECT_THAT(Run(20), IsEmpty());
  job_.loads["ps-0"].memory_mib = 600;
  EXPECT_THAT(Run(1), ElementsAre(Is("helped",
                                     "ps-0 used up to 600 MiB of its limit of 768 MiB: "
                                     "the former one of 512 MiB would have killed it")));
}

TEST_F(OutcomeWatchTest, MoreMemoryThatNobodyNeededHasChangedNothing) {
  Decide("predicted-out-of-memory", "resize", "ps-0", Memory(512, 768));
  SetMemory("ps-0", 768);
  EXPECT_THAT(Await(), ElementsAre(Is("no-change", HasSubstr("would have been enough so far"))));
}

TEST_F(OutcomeWatchTest, AFirstOrASmallerLimitHasHelpedWhenTheNodeGetsAlong) {
  SetMemory("ps-0", 400);
  Decide("", "resize", "ps-0", Memory(512, 400));
  EXPECT_THAT(Await(), ElementsAre(Is("helped",
                                      "ps-0 used up to 300 MiB of its limit of 400 MiB, "
                                      "60 s long")));
  SetMemory("ps-0", 450);
  Decide("initial-resources", "resize", "ps-0", Memory(0, 450));
  Run(5);
  job_.view.activity = Activity::kOver;
  EXPECT_THAT(Run(1), ElementsAre(Is("helped", HasSubstr("until the job's end"))));
}

TEST_F(OutcomeWatchTest, AKillForMemoryAllTheSame) {
  Decide("predicted-out-of-memory", "resize", "ps-0", Memory(512, 768));
  SetMemory("ps-0", 768);
  Run(2);
  job_.End("ps-0", EndCause::kKernelOutOfMemory);
  EXPECT_THAT(Run(1), ElementsAre(Is("no-change", HasSubstr("killed for its memory even so"))));
}

TEST_F(OutcomeWatchTest, ALimitThatTheKernelDoesNotEnforceIsNotThere) {
  Decide("predicted-out-of-memory", "resize", "ps-0", Memory(512, 768));
  SetMemory("ps-0", 768);
  for (int second = 0; second < 130; ++second) {
    job_.Tick();
    job_.Node("ps-0").samples.back().memory_limit_bytes = 512 * kMiB;
    const std::vector<rest::Event> outcomes = watch_.Step(job_.view);
    if (outcomes.empty()) continue;
    EXPECT_THAT(outcomes, ElementsAre(Is("unknown", HasSubstr("that ps-0 has its new limits"))));
    return;
  }
  FAIL() << "no outcome";
}

TEST_F(OutcomeWatchTest, ADrainOfANodeOfAnotherMachineHasNoOutcomeHere) {
  rest::Event event{.id = 7, .kind = "action", .target = "far", .action = "drain"};
  event.evidence = {{kJoinedFigure, 1, "", 0}};
  watch_.Open(event, job_.view.now);
  EXPECT_THAT(Run(5), IsEmpty()) << "it is not in the view";
}

TEST_F(OutcomeWatchTest, ADrainHasHelpedWhenTheNodeHasLeft) {
  Decide("", "drain", "worker-1");
  job_.Node("worker-1").state = NodeState::kDraining;
  EXPECT_THAT(Run(5), IsEmpty());
  job_.view.nodes.pop_back();
  EXPECT_THAT(Run(1), ElementsAre(Is("helped", "worker-1 has left, after 6.0 s")));
  Decide("", "drain", "ps-0");
  Run(3);
  job_.Node("ps-0").drained = true;
  EXPECT_THAT(Run(1), ElementsAre(Is("helped", "ps-0 has its snapshots, after 4.0 s")));
}

TEST_F(OutcomeWatchTest, OfTheWholeJob) {
  Decide("", "drain", "job");
  EXPECT_THAT(Run(1), IsEmpty());
  job_.view.activity = Activity::kDraining;
  EXPECT_THAT(Run(1), ElementsAre(Is("helped", "the job drains, after 2.0 s")));
  Decide("out-of-memory", "stop-job", "job");
  Decide("", "restart", "worker-0");
  Decide("worker-straggler", "restart", "worker-0");
  EXPECT_THAT(Run(1), IsEmpty());
  job_.view.activity = Activity::kOver;
  EXPECT_THAT(Run(1), ElementsAre(Is("helped", "the job has ended, after 2.0 s"),
                                  Is("unknown", HasSubstr("the job ended before it was seen that")),
                                  Is("unknown", HasSubstr("before its rate could be compared"))));
}

TEST_F(OutcomeWatchTest, ARestartJustBeforeTheJobsEnd) {
  Decide("platform-kill", "restart", "worker-0");
  job_.Start("worker-0");
  Run(2);
  job_.view.activity = Activity::kOver;
  EXPECT_THAT(Run(1), ElementsAre(Is("helped", "worker-0 trains again, after 1.0 s")));
}

TEST_F(OutcomeWatchTest, WhatShowsInNoFigureHasNoOutcomeUnlessItFails) {
  Decide("hang", "dump-stacks", "worker-0");
  Decide("", "pause-policy", "hang");
  Decide("", "resume-policy", "hang");
  ASSERT_EQ(watch_.open(), 3u);
  EXPECT_THAT(watch_.Fail(1, "it is gone").value(),
              Is("unknown", "it could not be done: it is gone"));
  EXPECT_THAT(Run(1), IsEmpty());
  EXPECT_EQ(watch_.open(), 0u);
}

TEST_F(OutcomeWatchTest, WhatTheMasterIsAskedForMayFailLater) {
  Decide("", "retry-shards", "job");
  Decide("", "retry-shards", "job");
  EXPECT_THAT(Run(5), IsEmpty());
  EXPECT_THAT(watch_.Fail(1, "it is not FAILED").value(),
              Is("unknown", "it could not be done: it is not FAILED"));
  EXPECT_EQ(watch_.open(), 1u);
  EXPECT_THAT(Run(30), IsEmpty()) << "nothing is measured of the other";
  EXPECT_EQ(watch_.open(), 0u);
}

TEST_F(OutcomeWatchTest, WhatCouldNotBeDoneIsUnknownAndSaysWhy) {
  Decide("", "resize", "ps-0", Memory(512, 768));
  const auto outcome = watch_.Fail(1, "no such group");
  ASSERT_TRUE(outcome.has_value());
  EXPECT_THAT(*outcome, Is("unknown", "it could not be done: no such group"));
  EXPECT_EQ(watch_.Fail(1, "again"), std::nullopt);
  EXPECT_EQ(watch_.open(), 0u);
}

}  // namespace
}  // namespace muster::scaler
