#include "scaler/service/plan_file.h"

#include <gmock/gmock.h>

#include "base/file.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster::scaler {
namespace {

using ::muster::testing::IsOk;
using ::muster::testing::StatusIs;
using ::muster::testing::TempDir;
using ::testing::HasSubstr;
using State = NodePlan::State;

Plan SomePlan() {
  Plan plan = NewPlan("run-1", 1, 2);
  plan.nodes["ps-0"] = {.role = NodeRole::kServer,
                        .state = State::kRunning,
                        .starts = 3,
                        .exits = 2,
                        .leaves = 1,
                        .pid = 4711};
  plan.nodes["ps-0"].limits = {.cpus = 1.5, .memory_bytes = uint64_t{768} << 20};
  plan.nodes["ps-0"].placed_limits = Resources{.cpus = 1.25, .memory_bytes = 77};
  plan.nodes["ps-0"].former_limits = Resources{.cpus = 2.5, .memory_bytes = uint64_t{512} << 20};
  plan.nodes["worker-0"].state = State::kFinished;
  plan.nodes["worker-1"].ending = NodePlan::Ending::kDrain;
  plan.paused = {"hang", "worker-count"};
  plan.failure = "ps-0 ended 5 times in a row";
  return plan;
}

TEST(PlanFileTest, RoundTrip) {
  TempDir folder;
  const std::string path = folder.File("plan.json");
  EXPECT_THAT(ReadPlan(path), StatusIs(absl::StatusCode::kNotFound, HasSubstr(path)));
  ASSERT_THAT(WritePlan(path, SomePlan()), IsOk());
  MUSTER_ASSERT_OK_AND_ASSIGN(const Plan plan, ReadPlan(path));
  EXPECT_EQ(plan, SomePlan());
}

TEST(PlanFileTest, ThePlanOfAnOlderScalerIsRead) {
  const std::string_view text =
      R"({"run_id": "run-1", "workers": 1, "nodes": {"worker-0":
         {"role": "worker", "state": "running", "starts": 3, "exits": 2, "pid": 4711},
         "worker-1": {"role": "worker", "state": "running", "starts": 1, "exits": 0, "pid": 4712,
          "ending": "relaunch"}}})";
  MUSTER_ASSERT_OK_AND_ASSIGN(const Plan plan, PlanFromJson(text));
  EXPECT_EQ(plan.nodes.at("worker-0"),
            (NodePlan{.state = State::kRunning, .starts = 3, .exits = 2, .pid = 4711}));
  EXPECT_EQ(plan.nodes.at("worker-1").ending, NodePlan::Ending::kRestart);
}

TEST(PlanFileTest, AFailureThatQuotesWhatIsNoUtf8IsWritten) {
  Plan plan = SomePlan();
  plan.failure = "its last words: \xff\xfe";
  MUSTER_ASSERT_OK_AND_ASSIGN(const Plan read, PlanFromJson(PlanToJson(plan)));
  ASSERT_TRUE(read.failure.has_value());
  EXPECT_THAT(*read.failure, HasSubstr("its last words: "));
}

TEST(PlanFileTest, WhatIsNoPlanIsNamed) {
  const std::string right = PlanToJson(SomePlan());
  const auto with = [&](std::string_view from, std::string_view to) {
    std::string text = right;
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
  };
  EXPECT_THAT(PlanFromJson(right), IsOk());
  for (const std::string& text :
       {std::string(), std::string("[]"), right.substr(0, right.size() / 2),
        with("\"run_id\"", "\"run\""), with("\"starts\": 3", "\"starts\": \"three\""),
        with("\"running\"", "\"flying\""), with("\"ps\"", "\"master\""),
        with("\"drain\"", "\"swim\""), with("1.5", "-1.5"), with("2.5", "-2.5"),
        with("1.5", "\"much\""), with("\"hang\"", "7"),
        with("\"ps-0 ended 5 times in a row\"", "true")}) {
    EXPECT_THAT(PlanFromJson(text), StatusIs(absl::StatusCode::kDataLoss, HasSubstr(""))) << text;
  }
  TempDir folder;
  const std::string path = folder.File("plan.json");
  ASSERT_THAT(WriteFileAtomically(path, with("\"running\"", "\"flying\"")), IsOk());
  EXPECT_THAT(ReadPlan(path), StatusIs(absl::StatusCode::kDataLoss,
                                       ::testing::AllOf(HasSubstr(path), HasSubstr("ps-0"),
                                                        HasSubstr("'flying'"))));
}

}  // namespace
}  // namespace muster::scaler
