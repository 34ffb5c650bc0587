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
  plan.nodes["ps-0"] = {
      .role = NodeRole::kServer, .state = State::kRunning, .starts = 3, .exits = 2, .pid = 4711};
  plan.nodes["worker-0"].state = State::kFinished;
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
        with("\"running\"", "\"flying\""), with("\"ps\"", "\"master\"")}) {
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
