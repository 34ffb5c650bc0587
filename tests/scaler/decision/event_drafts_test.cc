#include "scaler/decision/event_drafts.h"

#include <gmock/gmock.h>

#include <cmath>

#include "tests/scaler/model/fake_job.h"

namespace muster::scaler {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

TEST(EventDraftsTest, AChangeShowsWhatIsLimitedOnEitherSide) {
  const Change memory = ChangeOf(Resources{.memory_bytes = 100}, Resources{.memory_bytes = 150});
  EXPECT_THAT(memory.before, UnorderedElementsAre(Pair("memory_bytes", 100)));
  EXPECT_THAT(memory.after, UnorderedElementsAre(Pair("memory_bytes", 150)));
  const Change first = ChangeOf(Resources{}, Resources{.cpus = 1.5, .memory_bytes = 150});
  EXPECT_THAT(first.before, UnorderedElementsAre(Pair("memory_bytes", 0), Pair("cpus", 0)));
  const Change workers = ChangeOf(uint32_t{2}, uint32_t{3});
  EXPECT_THAT(workers.before, UnorderedElementsAre(Pair("workers", 2)));
  EXPECT_THAT(workers.after, UnorderedElementsAre(Pair("workers", 3)));
  EXPECT_THAT(ChangeOf({}, {}).before, IsEmpty());

  EXPECT_EQ(LimitsOf(first.after), (Resources{.cpus = 1.5, .memory_bytes = 150}));
  EXPECT_EQ(LimitsOf(first.before), Resources{});
  EXPECT_EQ(LimitsOf({{"memory_bytes", std::nan("")}}), Resources{});
}

TEST(EventDraftsTest, FiguresAreFoundByNameAndAddedOnce) {
  rest::Event event;
  EXPECT_EQ(FigureOf(event, "start"), std::nullopt);
  AddFigure({"start", 3, "of the node", 0}, &event);
  AddFigure({"start", 4, "of the node", 0}, &event);
  EXPECT_EQ(FigureOf(event, "start"), 3);
  EXPECT_EQ(event.evidence.size(), 1u);
  event.evidence[0].value = std::nan("");
  EXPECT_EQ(FigureOf(event, "start"), std::nullopt) << "null in the file";
}

struct EndText {
  EndCause cause;
  uint64_t limit = 0;
  std::string text;
};

TEST(EventDraftsTest, AnExitSaysWhoseDoingItWas) {
  const EndText cases[] = {
      {EndCause::kKernelOutOfMemory, 256 * kMiB,
       "by the kernel for its memory, at its memory limit of 256 MiB (peak 300 MiB)"},
      {EndCause::kKernelOutOfMemory, 0,
       "although it has no limit: the machine ran out of memory (peak"},
      {EndCause::kOwnOutOfMemory, 256 * kMiB, "because the kernel enforces no limit here"},
      {EndCause::kProgram, 0, "by its own program (exit 1)"},
      {EndCause::kPlatform, 0, "from outside (exit 1), and not for its memory"},
      {EndCause::kAsked, 0, "after Muster had told it to (exit 1)"},
      {EndCause::kClean, 0, "with nothing left to do (exit 1)"},
  };
  for (const EndText& each : cases) {
    const rest::Event event = ExitEvent({.node = "ps-1",
                                         .role = NodeRole::kServer,
                                         .start = 4,
                                         .cause = each.cause,
                                         .exit = "exit 1",
                                         .memory_peak_bytes = 300 * kMiB,
                                         .memory_limit_bytes = each.limit,
                                         .pid = 4'711});
    EXPECT_EQ(event.kind, "exit");
    EXPECT_EQ(event.target, "ps-1");
    EXPECT_THAT(event.because, AllOf(StartsWith("ps-1 "), HasSubstr(each.text)));
    EXPECT_EQ(FigureOf(event, kStartFigure), 4);
    EXPECT_EQ(FigureOf(event, kPidFigure), 4'711);
    EXPECT_EQ(FigureOf(event, "memory peak"), static_cast<double>(300 * kMiB));
  }
}

TEST(EventDraftsTest, ADecisionKeepsItsFiguresAndARefusalIsANote) {
  Decision decision{.proposal = {.policy = "out-of-memory",
                                 .action = Action::kRestart,
                                 .target = "ps-0",
                                 .before = Resources{.memory_bytes = 100},
                                 .after = Resources{.memory_bytes = 150},
                                 .evidence = {{"peak", 100, "bytes", std::chrono::seconds(30)}},
                                 .because = "it was killed"},
                    .at = {},
                    .remark = ""};
  const rest::Event done = DecisionEvent(decision, 7);
  EXPECT_EQ(done.kind, "decision");
  EXPECT_EQ(done.policy, "out-of-memory");
  EXPECT_EQ(done.action, "restart");
  EXPECT_EQ(done.cause_id, 7u);
  EXPECT_EQ(done.because, "it was killed");
  EXPECT_EQ(done.evidence.at(0).window_s, 30);
  EXPECT_FALSE(done.dry_run);

  decision.remark = "cut to the budget";
  EXPECT_EQ(DecisionEvent(decision, 0).because, "it was killed; cut to the budget");
  decision.verdict = Decision::Verdict::kDryRun;
  EXPECT_TRUE(DecisionEvent(decision, 0).dry_run);
  decision.verdict = Decision::Verdict::kRefused;
  decision.remark = "it is paused";
  const rest::Event refused = DecisionEvent(decision, 7);
  EXPECT_EQ(refused.kind, "note");
  EXPECT_EQ(refused.because, "not done, because it is paused: it was killed");
}

TEST(EventDraftsTest, APlaceThatWasTakenAwaySaysByWhom) {
  const NodeEnd end{.node = "worker-0",
                    .cause = EndCause::kDisrupted,
                    .exit = "SIGTERM",
                    .disruption = Disruption::kPreempted,
                    .disruption_text = "by pod x"};
  EXPECT_EQ(ExitEvent(end).because,
            "worker-0 was taken away: something of a higher priority took its place: by pod x "
            "(SIGTERM)");
}

}  // namespace
}  // namespace muster::scaler
