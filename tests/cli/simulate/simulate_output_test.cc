#include "cli/simulate/simulate_output.h"

#include <gmock/gmock.h>

namespace muster::simulate {
namespace {

using scaler::Simulation;
using ::testing::HasSubstr;
using ::testing::Not;

Simulation OneDecision() {
  Simulation simulation;
  scaler::rest::Event event{.id = 3,
                            .wall_us = 3'725'000'000,
                            .kind = "decision",
                            .policy = "out-of-memory",
                            .target = "ps-0",
                            .action = "restart",
                            .before = {{"memory_bytes", 536'870'912.0}},
                            .after = {{"memory_bytes", 805'306'368.0}},
                            .because = "the kernel killed it"};
  event.evidence = {
      {.name = "memory growth", .value = 1'048'576, .unit = "bytes/s", .window_s = 60}};
  simulation.events = {event};
  simulation.policies = {{.name = "out-of-memory", .decisions = 1, .refused = 2},
                         {.name = "hang", .paused = true}};
  simulation.end_wall_us = 4'000'000'000;
  simulation.steps = 4'000;
  simulation.runs = 1;
  simulation.records_trained = 8'000;
  return simulation;
}

TEST(SimulateOutputTest, OfADescribedJob) {
  Simulation simulation = OneDecision();
  simulation.kills_for_memory = 1;
  simulation.failure = "no more memory";
  const std::string text = SimulationText(simulation, TimeShown::kSinceBeginning);
  EXPECT_THAT(text, HasSubstr("+01:02:05  #3 decision ps-0  restart, memory 512 MiB -> 768 MiB "
                              "(out-of-memory): the kernel killed it\n"
                              "    memory growth 1 MiB/s over 60 s\n"));
  EXPECT_THAT(text, HasSubstr("POLICY"));
  EXPECT_THAT(text, HasSubstr("paused"));
  EXPECT_THAT(text, HasSubstr("8,000 records trained, 2 records/s, 1 kills for memory"));
  EXPECT_THAT(text, HasSubstr("The job was stopped: no more memory"));
}

TEST(SimulateOutputTest, OfAHistory) {
  Simulation simulation = OneDecision();
  simulation.events_left_out = 7;
  const std::string text = SimulationText(simulation, TimeShown::kWall);
  EXPECT_THAT(text, HasSubstr("1970-01-01T01:02:05"));
  EXPECT_THAT(text, HasSubstr("... and 7 more events"));
  EXPECT_THAT(text, HasSubstr("1 runs, 4000 views"));
  EXPECT_THAT(text, Not(HasSubstr("kills")));
}

TEST(SimulateOutputTest, Nothing) {
  EXPECT_THAT(SimulationText({}, TimeShown::kWall), HasSubstr("Nothing would have been decided"));
}

TEST(SimulateOutputTest, Json) {
  const nlohmann::json json = SimulationToJson(OneDecision(), TimeShown::kSinceBeginning);
  EXPECT_EQ(json.at("source"), "described");
  EXPECT_EQ(json.at("events").at(0).at("policy"), "out-of-memory");
  EXPECT_EQ(json.at("policies").at(0).at("refused"), 2);
  EXPECT_EQ(json.at("kills_for_memory"), 0);
  EXPECT_EQ(json.at("views"), 4'000);
  EXPECT_FALSE(json.contains("next_after"));
  EXPECT_FALSE(SimulationToJson(OneDecision(), TimeShown::kWall).contains("kills_for_memory"));
}

}  // namespace
}  // namespace muster::simulate
