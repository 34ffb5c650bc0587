#include "cli/run/node_commands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "cli/show/output.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster {
namespace {

using ::testing::HasSubstr;
using testing::IsOk;
using testing::StatusIs;
using testing::TempDir;

/// Wrong input must end with the code that keeps the supervisor from trying again.
TEST(NodeCommandsTest, MasterRefusesBadInput) {
  TempDir folder;
  MasterCommandOptions options;
  options.job_file = folder.File("job.yaml");
  options.listen_address = "127.0.0.1:1";
  options.run_id = "r";
  EXPECT_EQ(MasterCommand(options), kExitUsage) << "no job file";
  ASSERT_THAT(WriteFileAtomically(options.job_file, R"(apiVersion: muster/v1
kind: TrainingJob
metadata: {name: demo}
spec:
  stateDirectory: state
  datasets: [{name: train, files: [missing-*.csv]}]
  replicaSpecs: {ps: {replicas: 1}, worker: {replicas: 1, command: [./t]}}
)"),
              IsOk());
  options.planted_bug = "bogus";
  EXPECT_EQ(MasterCommand(options), kExitUsage) << "no such bug";
  options.planted_bug = "";
  EXPECT_EQ(MasterCommand(options), kExitUsage) << "no data";
  options.listen_address = "0.0.0.0:20001";
  EXPECT_EQ(MasterCommand(options), kExitUsage) << "not loopback";
  options.listen_address = "127.0.0.1:1";
  ASSERT_THAT(WriteFileAtomically(folder.File("missing-no-more.csv"), "1\n"), IsOk());
  ASSERT_THAT(MakeDirectories(folder.File("state/journal")), IsOk());
  ASSERT_THAT(WriteFileAtomically(folder.File("state/journal/000004.log"), "x"), IsOk());
  EXPECT_EQ(MasterCommand(options), kExitUsage) << "a journal without its first file";
}

TEST(NodeCommandsTest, PlantedBugsAreInNoRelease) {
  EXPECT_THAT(ParsePlantedBug(""), IsOk());
  EXPECT_THAT(ParsePlantedBug("bogus"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("only no-reverify")));
#if MUSTER_WITH_FAILPOINTS
  MUSTER_ASSERT_OK_AND_ASSIGN(const PlantedBugs bugs, ParsePlantedBug("no-reverify"));
  EXPECT_TRUE(bugs.no_reverify);
#else
  EXPECT_THAT(ParsePlantedBug("no-reverify"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("this build has none")));
#endif
}

TEST(NodeCommandsTest, ServerRefusesBadInput) {
  ServerCommandOptions options;
  options.name = "ps-0";
  options.master_address = "127.0.0.1:1";
  options.threads = 0;
  EXPECT_EQ(ServerCommand(options), kExitUsage) << "no lanes";
}

}  // namespace
}  // namespace muster
