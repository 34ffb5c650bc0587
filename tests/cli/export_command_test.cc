#include "cli/export_command.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "base/file.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster {
namespace {

using ::testing::HasSubstr;
using testing::IsOk;
using testing::StatusIs;
using testing::TempDir;

class ExportCommandTest : public ::testing::Test {
 protected:
  ExportCommandTest() {
    EXPECT_THAT(state_.Create(), IsOk());
    EXPECT_THAT(WriteFileAtomically(state_.job_copy(), R"(apiVersion: muster/v1
kind: TrainingJob
metadata: {name: demo}
spec:
  partitions: 4
  stateDirectory: state
  datasets: [{name: train, files: [a.csv]}]
  replicaSpecs: {ps: {replicas: 1}, worker: {replicas: 1, command: [./t]}}
)"),
                IsOk());
    manifest_.set_snapshot_directory(folder_.path());
  }

  TempDir folder_;
  StateDirectory state_{folder_.File("state")};
  v1::GetManifestResponse manifest_;
};

TEST_F(ExportCommandTest, WritesATableThatWasNeverPushed) {
  v1::Table* table = manifest_.add_tables();
  table->set_id(1);
  table->set_name("embedding");
  table->set_dim(4);
  ASSERT_THAT(WriteExportOf(manifest_, state_, folder_.File("out")), IsOk());
  for (const char* file :
       {"embedding.keys.npy", "embedding.values.npy", "export.json", "SHA256SUMS"}) {
    EXPECT_TRUE(std::filesystem::exists(folder_.File("out/") + file)) << file;
  }
}

TEST_F(ExportCommandTest, ManifestOfAnotherNumberOfPartitions) {
  manifest_.add_partitions()->set_partition(4);
  EXPECT_THAT(WriteExportOf(manifest_, state_, folder_.File("out")),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("partition 4")));
}

TEST_F(ExportCommandTest, NoJobFile) {
  EXPECT_THAT(WriteExportOf(manifest_, StateDirectory(folder_.File("none")), folder_.File("out")),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("job.yaml")));
}

}  // namespace
}  // namespace muster
