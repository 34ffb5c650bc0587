#include "cli/ask/export_command.h"

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

TEST(ManifestRequestTest, EpochsCountFromOneForPeople) {
  MUSTER_ASSERT_OK_AND_ASSIGN(const v1::GetManifestRequest newest, ManifestRequestFor(""));
  EXPECT_FALSE(newest.best() || newest.has_epoch());
  MUSTER_ASSERT_OK_AND_ASSIGN(const v1::GetManifestRequest best, ManifestRequestFor("best"));
  EXPECT_TRUE(best.best());
  EXPECT_FALSE(best.has_epoch());
  MUSTER_ASSERT_OK_AND_ASSIGN(const v1::GetManifestRequest first, ManifestRequestFor("1"));
  EXPECT_TRUE(first.has_epoch());
  EXPECT_EQ(first.epoch(), 0u);
  EXPECT_FALSE(first.best());
  for (const char* wrong : {"0", "-1", "1x", " 1", "Best", "4294967296"}) {
    EXPECT_THAT(ManifestRequestFor(wrong).status(),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(wrong)));
  }
}

TEST(KeptBestNoteTest, IsSaidUnlessTheNewestWeightsAreTheBest) {
  JobStatus status;
  status.state = JobState::kSucceeded;
  EXPECT_EQ(KeptBestNote(status), "");
  status.datasets = {
      {.name = "train",
       .epochs = {{.epoch = 0, .records_committed = 1}, {.epoch = 1, .records_committed = 1}}}};
  status.kept_epochs = {{.epoch = 0}, {.epoch = 1, .best = true}};
  EXPECT_EQ(KeptBestNote(status), "");
  status.state = JobState::kRunning;
  EXPECT_THAT(KeptBestNote(status), HasSubstr("of epoch 2, the best one, are kept"));
  status.state = JobState::kSucceeded;
  status.kept_epochs = {{.epoch = 0, .best = true}};
  EXPECT_THAT(KeptBestNote(status), HasSubstr("of epoch 1, the best one, are kept"));
}

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

TEST_F(ExportCommandTest, WithoutATableNothingIsWritten) {
  EXPECT_THAT(
      WriteExportOf(manifest_, state_, folder_.File("out")),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("there is nothing to export")));
  EXPECT_FALSE(std::filesystem::exists(folder_.File("out")));
}

TEST_F(ExportCommandTest, TheStateOfAGroup) {
  v1::GroupManifest* const group = manifest_.mutable_group();
  v1::GroupTensor* const tensor = group->add_tensors();
  tensor->set_name("weights");
  tensor->set_elements(1);
  EXPECT_THAT(WriteExportOf(manifest_, state_, folder_.File("out")),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("stored no state yet")));
  v1::StateStripe* const stripe = group->add_stripes();
  stripe->set_bytes(4);
  stripe->set_crc(0x48674BC7);  // of four zeros
  stripe->set_object("group/r1-s1-a1-c0-0");
  std::filesystem::create_directories(folder_.File("group"));
  ASSERT_THAT(WriteFileAtomically(folder_.File("group/r1-s1-a1-c0-0"), std::string(4, 0)), IsOk());
  ASSERT_THAT(WriteExportOf(manifest_, state_, folder_.File("out")), IsOk());
  EXPECT_TRUE(std::filesystem::exists(folder_.File("out/weights.npy")));
  EXPECT_EQ(ExportedTables(manifest_), 1u);
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

TEST_F(ExportCommandTest, AFileThatTheJobReplacedMeanwhileIsAskedForAnew) {
  v1::Table* table = manifest_.add_tables();
  table->set_id(1);
  table->set_name("embedding");
  table->set_dim(4);
  v1::GetManifestResponse old = manifest_;
  old.add_partitions()->mutable_manifest()->set_number(1);
  v1::SnapshotFile* gone = old.mutable_partitions(0)->mutable_manifest()->add_files();
  gone->set_name("p0/replaced.sst");
  gone->set_bytes(100);
  int fetched = 0;
  const auto write = [this](const v1::GetManifestResponse& newest) {
    return WriteExportOf(newest, state_, folder_.File("out"));
  };
  MUSTER_ASSERT_OK_AND_ASSIGN(
      const v1::GetManifestResponse written,
      ExportWhileItRuns({.fetch = [&]() -> absl::StatusOr<v1::GetManifestResponse> {
                           return ++fetched == 1 ? old : manifest_;
                         },
                         .write = write}));
  EXPECT_EQ(fetched, 2);
  EXPECT_EQ(written.partitions_size(), 0);
  EXPECT_TRUE(std::filesystem::exists(folder_.File("out/embedding.keys.npy")));
}

TEST_F(ExportCommandTest, AFileThatIsGoneFromTheNewestManifestIsAnErrorAtOnce) {
  int written = 0;
  const ExportSteps steps{
      .fetch = [this]() -> absl::StatusOr<v1::GetManifestResponse> { return manifest_; },
      .write =
          [&](const v1::GetManifestResponse&) {
            ++written;
            return absl::DataLossError("p0/1.sst is gone");
          }};
  EXPECT_THAT(ExportWhileItRuns(steps),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("p0/1.sst is gone")));
  EXPECT_EQ(written, 1);
}

TEST_F(ExportCommandTest, GivesUpWhenTheJobIsAlwaysFaster) {
  uint32_t fetched = 0;
  const ExportSteps steps{
      .fetch = [&]() -> absl::StatusOr<v1::GetManifestResponse> {
        v1::GetManifestResponse manifest;
        manifest.add_partitions()->set_partition(++fetched);
        return manifest;
      },
      .write =
          [](const v1::GetManifestResponse&) { return absl::DataLossError("p0/1.sst is gone"); }};
  EXPECT_THAT(ExportWhileItRuns(steps),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("muster drain")));
}

}  // namespace
}  // namespace muster
