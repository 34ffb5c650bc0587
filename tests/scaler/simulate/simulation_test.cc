#include "scaler/simulate/simulation.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "scaler/history/history_writer.h"
#include "scaler/simulate/described_job.h"
#include "tests/support/temp_dir.h"

namespace muster::scaler {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr uint64_t kSimulatedMiB = uint64_t{1} << 20;

/// "policy action target" of every decision.
std::vector<std::string> Decisions(const Simulation& simulation) {
  std::vector<std::string> decisions;
  for (const rest::Event& event : simulation.events) {
    if (event.kind != "decision") continue;
    decisions.push_back(event.policy + " " + event.action + " " + event.target);
  }
  return decisions;
}

/// The first of that kind.
rest::Event First(const Simulation& simulation, const std::string& kind) {
  const auto found = std::ranges::find(simulation.events, kind, &rest::Event::kind);
  EXPECT_NE(found, simulation.events.end()) << kind;
  return found == simulation.events.end() ? rest::Event() : *found;
}

DescribedSpec GrowingServer() {
  DescribedSpec spec;
  spec.duration = minutes(15);
  spec.server.memory_start = 300 * kSimulatedMiB;
  spec.server.memory_growth_per_minute = 60 * kSimulatedMiB;
  spec.server.limits.memory_bytes = 512 * kSimulatedMiB;
  return spec;
}

DescribedSpec SlowWorker() {
  DescribedSpec spec;
  spec.duration = minutes(6);
  spec.happenings = {{.at = seconds(120), .node = "worker-1", .what = Happening::Slow{5}}};
  return spec;
}

SimulationOptions Without(const std::string& policy) {
  SimulationOptions options;
  options.paused = {policy};
  return options;
}

Simulation Play(const DescribedSpec& spec, const SimulationOptions& options = {}) {
  absl::StatusOr<Simulation> simulation = Simulate(spec, options);
  EXPECT_TRUE(simulation.ok()) << simulation.status();
  return *std::move(simulation);
}

/// Everything that policies look at is there, and nothing of it is amiss: memory grows and levels
/// off below its limit, processors and servers are as busy as they may be.
DescribedSpec Undisturbed() {
  DescribedSpec spec;
  spec.duration = minutes(30);
  spec.server.limits = {.cpus = 1, .memory_bytes = 512 * kSimulatedMiB};
  spec.server.memory_start = 200 * kSimulatedMiB;
  spec.server.memory_growth_per_minute = 5 * kSimulatedMiB;
  spec.server.memory_most = 300 * kSimulatedMiB;
  spec.worker.replicas = 4;
  spec.worker.limits = {.cpus = 1, .memory_bytes = 256 * kSimulatedMiB};
  spec.worker.memory_growth_per_minute = 5 * kSimulatedMiB;
  spec.worker.memory_most = 150 * kSimulatedMiB;
  return spec;
}

TEST(SimulateTest, AnUndisturbedJobIsLeftAlone) {
  const DescribedSpec spec = Undisturbed();
  const Simulation simulation = Play(spec);
  EXPECT_THAT(Decisions(simulation), IsEmpty());
  EXPECT_EQ(simulation.steps, 1'800u);
  ASSERT_THAT(simulation.policies, Not(IsEmpty()));
  SimulationOptions idle;
  for (const rest::Policy& policy : simulation.policies) {
    EXPECT_FALSE(policy.paused) << policy.name;
    EXPECT_EQ(policy.decisions + policy.refused, 0u) << policy.name;
    idle.paused.insert(policy.name);
  }
  EXPECT_GT(simulation.records_trained, 0u);
  EXPECT_EQ(simulation.records_trained, Play(spec, idle).records_trained);
}

TEST(SimulateTest, TheSameJobIsNotLeftAloneWhenAnythingIsAmiss) {
  const auto decisions = [](const auto& change) {
    DescribedSpec spec = Undisturbed();
    change(&spec);
    return Decisions(Play(spec));
  };
  EXPECT_THAT(decisions([](DescribedSpec* spec) {
                spec->server.memory_growth_per_minute = 60 * kSimulatedMiB;
                spec->server.memory_most = 0;
              }),
              Contains("predicted-out-of-memory resize ps-0"))
      << "it does not level off";
  EXPECT_THAT(
      decisions([](DescribedSpec* spec) {
        spec->happenings = {{.at = minutes(5), .node = "worker-1", .what = Happening::Slow{5}}};
      }),
      Contains("worker-straggler restart worker-1"));
}

TEST(SimulateTest, GrowthIsMetBeforeAnyKill) {
  const Simulation simulation = Play(GrowingServer());
  EXPECT_EQ(simulation.kills_for_memory, 0u);
  EXPECT_THAT(Decisions(simulation), Contains("predicted-out-of-memory resize ps-0"));
}

TEST(SimulateTest, APausedPolicyDecidesNothing) {
  const Simulation simulation = Play(GrowingServer(), Without("predicted-out-of-memory"));
  EXPECT_GE(simulation.kills_for_memory, 1u);
  EXPECT_THAT(Decisions(simulation), Contains("out-of-memory restart ps-0"));
  EXPECT_THAT(Decisions(simulation), Not(Contains(HasSubstr("predicted"))));
  const rest::Event end = First(simulation, "exit");
  const auto answer = std::ranges::find(simulation.events, "out-of-memory", [](const auto& event) {
    return event.kind == "decision" ? event.policy : "";
  });
  ASSERT_NE(answer, simulation.events.end());
  EXPECT_EQ(answer->cause_id, end.id);
  EXPECT_THAT(answer->evidence, Not(IsEmpty()));
}

TEST(SimulateTest, AtTheBoundTheJobStops) {
  DescribedSpec spec = GrowingServer();
  spec.server.max.memory_bytes = 512 * kSimulatedMiB;
  const Simulation simulation = Play(spec);
  EXPECT_THAT(simulation.failure, HasSubstr("ps-0"));
  EXPECT_THAT(Decisions(simulation), Contains("out-of-memory stop-job job"));
}

TEST(SimulateTest, AStragglerIsHealedAndThatPays) {
  const Simulation simulation = Play(SlowWorker());
  EXPECT_THAT(Decisions(simulation), Contains("worker-straggler restart worker-1").Times(1));
  EXPECT_THAT(simulation.events, Contains(Field(&rest::Event::kind, "outcome")));
  const Simulation without = Play(SlowWorker(), Without("worker-straggler"));
  EXPECT_GT(static_cast<double>(simulation.records_trained),
            1.2 * static_cast<double>(without.records_trained));
}

TEST(SimulateTest, AHangIsDumpedThenRestarted) {
  DescribedSpec spec;
  spec.duration = minutes(6);
  spec.happenings = {{.at = seconds(60), .node = "worker-1", .what = Happening::Hangs{}}};
  std::vector<std::string> decisions = Decisions(Play(spec));
  std::erase_if(decisions, [](const std::string& text) { return !text.starts_with("hang"); });
  EXPECT_THAT(decisions, ElementsAre("hang dump-stacks worker-1", "hang restart worker-1"));
}

TEST(SimulateTest, WorkersWithoutAPlaceAreGivenUpAndTriedAgain) {
  DescribedSpec spec;
  spec.duration = minutes(25);
  spec.worker.replicas = 3;
  spec.workers_min = 2;
  spec.workers_max = 4;
  spec.happenings = {
      {.at = seconds(60), .node = "worker-2", .what = Happening::Preempted{.no_room = minutes(9)}}};
  std::vector<std::string> decisions = Decisions(Play(spec, Without("worker-count")));
  EXPECT_THAT(decisions, ElementsAre("platform-kill restart worker-2", "no-room scale workers",
                                     "no-room scale workers"));
}

TEST(SimulateTest, ThresholdsCount) {
  SimulationOptions options;
  options.policies.worker_straggler.slow_ratio = 10;
  EXPECT_THAT(Decisions(Play(SlowWorker(), options)), Not(Contains(HasSubstr("straggler"))));
}

TEST(SimulateTest, ADryRunDoesNothing) {
  SimulationOptions options;
  options.arbiter.dry_run = true;
  const Simulation simulation = Play(SlowWorker(), options);
  EXPECT_TRUE(First(simulation, "decision").dry_run);
  EXPECT_EQ(simulation.records_trained,
            Play(SlowWorker(), Without("worker-straggler")).records_trained);
}

TEST(SimulateTest, ABadDescriptionIsRefused) {
  DescribedSpec spec;
  spec.duration = seconds(0);
  EXPECT_EQ(Simulate(spec, {}).status().code(), absl::StatusCode::kInvalidArgument);
}

class ReplayTest : public ::testing::Test {
 protected:
  /// What a scaler without any policy would have recorded.
  void Record(const DescribedSpec& spec, const std::string& run) {
    HistoryWriter writer(folder_, {.run_id = run, .job = "j", .shape = {}});
    DescribedJob job(spec);
    while (!job.over()) {
      job.Tick();
      writer.Append(job.view(), wall_ + job.elapsed());
    }
    wall_ += job.elapsed() + minutes(1);
  }
  Simulation Replayed(const ReplaySpan& span = {}, const SimulationOptions& options = {}) {
    absl::StatusOr<HistoryReader> reader = HistoryReader::Open(folder_);
    EXPECT_TRUE(reader.ok());
    return Replay(&*reader, span, options);
  }

  testing::TempDir dir_;
  std::string folder_ = dir_.path() + "/history";
  WallTime wall_ = std::chrono::hours(450'000);
};

TEST_F(ReplayTest, DecidesAsItWouldHave) {
  const WallTime begin = wall_;
  Record(SlowWorker(), "r1");
  const Simulation simulation = Replayed();
  EXPECT_THAT(Decisions(simulation),
              AllOf(Not(IsEmpty()), Each("worker-straggler restart worker-1")));
  const rest::Event decision = First(simulation, "decision");
  const Simulation lived = Play(SlowWorker());
  const auto in_truth = std::ranges::find(lived.events, "worker-straggler", &rest::Event::policy);
  ASSERT_NE(in_truth, lived.events.end());
  EXPECT_EQ(decision.wall_us, static_cast<uint64_t>(begin.count()) + in_truth->wall_us);
  EXPECT_EQ(decision.because, in_truth->because);
  // Decisions that were not carried out have no outcome.
  EXPECT_THAT(simulation.events, Not(Contains(Field(&rest::Event::kind, "outcome"))));
  EXPECT_EQ(simulation.steps, 360u);
  EXPECT_EQ(simulation.begin_wall_us, static_cast<uint64_t>(begin.count()) + 1'000'000);
}

TEST_F(ReplayTest, EndsAreAnsweredAndRunsAreApart) {
  DescribedSpec spec = GrowingServer();
  spec.duration = minutes(5);
  Record(spec, "r1");
  Record(spec, "r2");
  const Simulation simulation = Replayed({}, Without("predicted-out-of-memory"));
  EXPECT_EQ(simulation.runs, 2u);
  First(simulation, "exit");
  const auto policy = std::ranges::find(simulation.policies, "out-of-memory", &rest::Policy::name);
  ASSERT_NE(policy, simulation.policies.end());
  EXPECT_EQ(policy->decisions, static_cast<uint64_t>(std::ranges::count(
                                   Decisions(simulation), "out-of-memory restart ps-0")));
  EXPECT_GE(policy->decisions, 2u);
}

TEST_F(ReplayTest, APieceOfIt) {
  const WallTime begin = wall_;
  Record(SlowWorker(), "r1");
  ReplaySpan span;
  span.to = begin + seconds(100);
  EXPECT_THAT(Decisions(Replayed(span)), IsEmpty());
  EXPECT_EQ(Replayed(span).steps, 100u);
  span = {.from = begin + minutes(2)};
  EXPECT_EQ(Replayed(span).steps, 241u);
  span = {.from = begin + minutes(60)};
  EXPECT_EQ(Replayed(span).steps, 0u);
}

}  // namespace
}  // namespace muster::scaler
