#include "cli/run_plan.h"

#include <gmock/gmock.h>

#include <charconv>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::IsOk;
using ::testing::StartsWith;
using testing::StatusIs;
using testing::TempDir;

class RunPlanTest : public ::testing::Test {
 protected:
  void WriteProgram(const std::string& name, std::filesystem::perms permissions) {
    ASSERT_THAT(WriteFileAtomically(folder_.File(name), "#!/bin/sh\n"), IsOk());
    std::filesystem::permissions(folder_.File(name), permissions);
  }
  TempDir folder_;
};

TEST_F(RunPlanTest, FindsProgramsBesideTheJobFileAndInPath) {
  WriteProgram("trainer", std::filesystem::perms::owner_all);
  MUSTER_ASSERT_OK_AND_ASSIGN(
      std::string beside, FindProgram("./trainer", {.base_directory = folder_.path(), .path = ""}));
  EXPECT_EQ(beside, folder_.File("trainer"));
  MUSTER_ASSERT_OK_AND_ASSIGN(
      std::string found,
      FindProgram("trainer", {.base_directory = "/", .path = "/none::" + folder_.path()}));
  EXPECT_EQ(found, folder_.File("trainer"));
}

TEST_F(RunPlanTest, SaysWhereItLookedForAProgram) {
  EXPECT_THAT(FindProgram("./trainer", {.base_directory = folder_.path(), .path = ""}),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr(folder_.File("trainer"))));
  EXPECT_THAT(
      FindProgram("trainer", {.base_directory = folder_.path(), .path = "/a:/b"}),
      StatusIs(absl::StatusCode::kNotFound, AllOf(HasSubstr("/a:/b"), HasSubstr("./trainer"))));
  WriteProgram("data", std::filesystem::perms::owner_read);
  EXPECT_THAT(FindProgram("./data", {.base_directory = folder_.path(), .path = ""}),
              StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("chmod +x")));
  EXPECT_THAT(FindProgram("./", {.base_directory = folder_.path(), .path = ""}),
              StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("not a file")));
}

TEST_F(RunPlanTest, MasterPortIsBelowTheEphemeralRange) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    MUSTER_ASSERT_OK_AND_ASSIGN(std::string address, ChooseMasterAddress("127.0.0.1:0", seed));
    ASSERT_THAT(address, StartsWith("127.0.0.1:"));
    const int port = std::stoi(address.substr(10));
    EXPECT_GE(port, 20'000);
    EXPECT_LT(port, 32'000);
  }
}

TEST_F(RunPlanTest, DatasetIsExpandedAndEstimated) {
  std::string lines = "header\n";
  for (int i = 0; i < 100'000; ++i) lines += "12345678\n";
  ASSERT_THAT(WriteFileAtomically(folder_.File("b.csv"), lines), IsOk());
  ASSERT_THAT(WriteFileAtomically(folder_.File("a.csv"), "header\n1\n2\n3"), IsOk());
  DatasetSpec spec{.name = "train", .files = {"*.csv"}, .header = true};
  spec.minibatch_size = 10;
  spec.minibatches_per_shard = 10;
  MUSTER_ASSERT_OK_AND_ASSIGN(const PlannedDataset plan, PlanDataset(spec, folder_.path()));
  EXPECT_THAT(plan.files, ElementsAre(folder_.File("a.csv"), folder_.File("b.csv")));
  EXPECT_NEAR(static_cast<double>(plan.records_estimate), 100'003, 100);
  EXPECT_NEAR(static_cast<double>(plan.shards_estimate), 1'001, 2);
  spec.files = {"c-*.csv"};
  EXPECT_THAT(PlanDataset(spec, folder_.path()),
              StatusIs(absl::StatusCode::kNotFound,
                       AllOf(HasSubstr("train"), HasSubstr("c-*.csv"), HasSubstr(folder_.path()))));
}

TEST_F(RunPlanTest, CommandsAndDescriptions) {
  RunPlan plan;
  plan.job.name = "demo";
  plan.job.state_directory = "/s";
  plan.job.ps.replicas = 1;
  plan.job.worker.replicas = 2;
  plan.job.worker.command = {"./trainer", "--fast"};
  plan.job.worker.env = {{"A", "1"}, {"MUSTER_NODE", "mine"}};
  plan.base_directory = "/base";
  plan.program = "/bin/muster";
  plan.master_address = "127.0.0.1:20001";
  plan.run_id = "r1";
  plan.trainer = "/base/trainer";
  plan.master_flags = {"--retry-failed"};
  const NodeCommand worker = CommandOf(plan, "worker-1", NodeRole::kWorker);
  EXPECT_THAT(worker.command, ElementsAre("/base/trainer", "--fast"));
  EXPECT_EQ(worker.environment.at("A"), "1");
  EXPECT_EQ(worker.environment.at("MUSTER_NODE"), "worker-1");
  EXPECT_EQ(worker.environment.at("MUSTER_MASTER"), "127.0.0.1:20001");
  EXPECT_EQ(worker.environment.at("MUSTER_SLOT_FILE"), "/s/run/worker-1.slot");
  EXPECT_EQ(worker.working_directory, "/base");
  EXPECT_THAT(
      CommandOf(plan, "master", NodeRole::kMaster).command,
      ElementsAre("/bin/muster", "master", "--job", "/s/job.yaml", "--base-directory", "/base",
                  "--listen", "127.0.0.1:20001", "--run-id", "r1", "--retry-failed"));
  EXPECT_THAT(DescribePlan(plan), AllOf(HasSubstr("worker-1"), HasSubstr("/base/trainer --fast")));
  const nlohmann::json json = nlohmann::json::parse(PlanToJson(plan));
  EXPECT_EQ(json["nodes"].size(), 4u);
  EXPECT_EQ(json["nodes"][3]["name"], "worker-1");
}

}  // namespace
}  // namespace muster
