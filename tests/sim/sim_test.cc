#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "base/log.h"
#include "tests/sim/faults.h"
#include "tests/sim/late_news.h"
#include "tests/sim/machine/scheduler.h"
#include "tests/sim/runner.h"
#include "tests/support/sanitizers.h"

namespace muster::sim {
namespace {

constexpr uint64_t kSeeds = testing::kSanitized ? 100 : 2'000;

class SimTest : public ::testing::Test {
 protected:
  SimTest() { InitLogging("sim", LogLevel::kOff); }
};

TEST_F(SimTest, EverythingHolds) {
  const Summary summary = Sweep({.seeds = kSeeds, .jobs = 2});
  EXPECT_EQ(summary.seeds, kSeeds);
  for (const Violation& violation : summary.violations) {
    ADD_FAILURE() << "seed " << violation.seed << ": " << violation.kind << ": " << violation.text;
  }
  // A seed is worth its name.
  EXPECT_GE(summary.crashes, 5 * summary.seeds);
  EXPECT_GE(summary.deliveries, 1000 * summary.seeds);
}

TEST_F(SimTest, OneSeedIsOneTrace) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    EXPECT_EQ(Simulate({.seed = seed}).hash, Simulate({.seed = seed}).hash) << seed;
  }
  EXPECT_NE(Simulate({.seed = 1}).hash, Simulate({.seed = 2}).hash);
  EXPECT_EQ(Sweep({.seeds = 20, .jobs = 1}).hash, Sweep({.seeds = 20, .jobs = 3}).hash);
}

TEST_F(SimTest, AFailingSeedIsMinimised) {
  const Plant kBug{.bug = PlantedBug::kNoReverify};
  const Summary summary = Sweep({.seeds = 500, .jobs = 2, .plant = kBug, .stop_at_first = true});
  ASSERT_FALSE(summary.violations.empty()) << "the simulation is blind";
  const Violation& violation = summary.violations.front();
  const Minimised least = Minimise(violation, kBug, 60);
  const FaultPlan plan = DrawFaults(violation.seed, DrawKnobs(violation.seed));
  EXPECT_LT(least.faults.size(), plan.faults.size());
  const std::optional<Violation> again = RunAlone(least.options, kBug);
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(again->kind, violation.kind);
}

TEST_F(SimTest, ABugOfGroupsIsSeen) {
  const Plant kBug{.bug = PlantedBug::kGroupTakesAnySum};
  const FoundBug found = Find(kBug, TextOf(kBug.bug).within, 2);
  EXPECT_NE(found.seed, 0u) << "the simulation is blind";
  EXPECT_EQ(found.seed % kGroupEvery, 0u);
  EXPECT_EQ(found.kind, "sum");
}

TEST_F(SimTest, ABugOfTablesInGroupsIsSeen) {
  const Plant kBug{.bug = PlantedBug::kGroupVotesUnacknowledged};
  const FoundBug found = Find(kBug, TextOf(kBug.bug).within, 2);
  EXPECT_NE(found.seed, 0u) << "the simulation is blind";
  EXPECT_EQ(found.seed % kGroupEvery, 0u);
  EXPECT_EQ(found.kind, "done-not-in");
}

TEST_F(SimTest, HalfOfTheGroupsHaveTables) {
  uint64_t with_tables = 0;
  for (uint64_t seed = kGroupEvery; seed <= 200 * kGroupEvery; seed += kGroupEvery) {
    const Knobs knobs = DrawKnobs(seed);
    ASSERT_TRUE(knobs.group.has_value());
    with_tables += knobs.servers > 0 ? 1 : 0;
  }
  EXPECT_GT(with_tables, 60u);
  EXPECT_LT(with_tables, 140u);
}

TEST_F(SimTest, ASeedThatHangsOrAbortsIsNamedAndTheOthersRun) {
  const auto simulate = [](const RunOptions& options) {
    // As if the clock had run out, if it has been wound up.
    if (options.seed == 5 && ::alarm(0) > 0) ::raise(SIGALRM);
    if (options.seed == 6) std::abort();
    return RunResult{.hash = options.seed};
  };
  const Summary summary = Sweep({.seeds = 8, .jobs = 2, .simulate = simulate});
  EXPECT_EQ(summary.seeds, 8u);
  ASSERT_EQ(summary.violations.size(), 2u);
  EXPECT_EQ(summary.violations[0].seed, 5u);
  EXPECT_EQ(summary.violations[0].kind, "hang");
  EXPECT_EQ(summary.violations[1].seed, 6u);
  EXPECT_EQ(summary.violations[1].kind, "abort");
  EXPECT_EQ(OneOfEachKind({{1, "a"}, {2, "b"}, {3, "a"}}).size(), 2u);
}

TEST(LateNews, EveryPieceComesInTheEndAndTheSameAtEveryCall) {
  LateNews on_time(1, false), late(1, true), again(1, true);
  const auto answer = [](uint64_t token) {
    return WorkerExchangeReply{.lost = {LeaseToken(MasterIncarnation(1), token)}};
  };
  uint64_t withheld = 0;
  for (uint64_t token = 1; token <= 100; ++token) {
    WorkerExchangeReply one = answer(token), other = answer(token), third = answer(token);
    EXPECT_EQ(on_time.Withhold(&one, TimePoint()), 0u);
    EXPECT_EQ(late.Withhold(&other, TimePoint()), again.Withhold(&third, TimePoint()));
    EXPECT_EQ(one.lost.size(), 1u);
    withheld += 1 - other.lost.size();
    WorkerExchangeReply later = answer(token);
    EXPECT_EQ(late.Withhold(&later, TimePoint(std::chrono::seconds(10))), 0u);
  }
  EXPECT_GT(withheld, 20u);
  EXPECT_LT(withheld, 80u);
}

TEST(LateNews, ChangesOfTheMapAreOvertakenByTheNextOnes) {
  LateNews late(1, true);
  uint64_t version = 2;
  const auto changes = [](uint64_t to) {
    WorkerExchangeReply reply;
    reply.map_changes = {MapVersion(to - 1), MapVersion(to), {}, {}, {}};
    return reply;
  };
  WorkerExchangeReply reply = changes(version);
  while (late.Withhold(&reply, TimePoint()) == 0) reply = changes(++version);
  EXPECT_FALSE(reply.map_changes.has_value());
  WorkerExchangeRequest request;
  request.map_version = request.map_base = MapVersion(1);
  late.CountWithheld(&request);
  EXPECT_EQ(request.map_base, MapVersion(version)) << "it has heard of them";
  request.map_base = MapVersion();
  late.CountWithheld(&request);
  EXPECT_EQ(request.map_base, MapVersion()) << "the whole map is wanted";
  WorkerExchangeReply later;
  EXPECT_EQ(late.Withhold(&later, TimePoint(std::chrono::seconds(10))), 0u);
  EXPECT_EQ(later.map_changes, changes(version).map_changes);
  WorkerExchangeReply last;
  late.Withhold(&last, TimePoint(std::chrono::seconds(20)));
  EXPECT_FALSE(last.map_changes.has_value()) << "once";
}

TEST(Scheduler, WhatIsForAPausedProcessWaitsAndForADeadOneIsDropped) {
  Scheduler scheduler;
  auto process = std::make_shared<Process>("p", 1, nanoseconds(0), 0);
  std::string story;
  scheduler.After(milliseconds(2), process, [&] { story += "b"; });
  scheduler.After(milliseconds(1), process, [&] { story += "a"; });
  scheduler.After(milliseconds(3), nullptr, [&] { story += "w"; });
  scheduler.After(milliseconds(20), process, [&] { story += "z"; });
  process->paused_until = scheduler.now() + milliseconds(10);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(scheduler.Step());
  EXPECT_EQ(story, "wab");
  process->alive = false;
  EXPECT_FALSE(scheduler.Step());
  EXPECT_EQ(story, "wab");
}

TEST(Process, ItsClockAndTheTrueTimeAgree) {
  for (const int64_t drift : {-20'000, -1, 0, 7, 20'000}) {
    const Process process("p", 1, nanoseconds(123'456'789), drift);
    for (int64_t i = 1; i < 100; ++i) {
      const TimePoint local = process.Local(TimePoint(nanoseconds(i * 987'654'321)));
      EXPECT_GE(process.Local(process.True(local)), local) << drift << " " << i;
      EXPECT_LE(process.Local(process.True(local)), local + nanoseconds(10)) << drift << " " << i;
    }
  }
}

}  // namespace
}  // namespace muster::sim
