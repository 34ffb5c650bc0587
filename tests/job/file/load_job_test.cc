#include "job/file/load_job.h"

#include <gmock/gmock.h>

#include "base/file.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster {
namespace {

using ::testing::HasSubstr;
using testing::IsOk;
using testing::StatusIs;
using testing::TempDir;

constexpr char kFileOfJob[] = R"(apiVersion: muster/v1
kind: TrainingJob
metadata: {name: a}
spec:
  stateDirectory: state
  datasets: [{name: train, files: [a.csv]}]
  replicaSpecs: {ps: {replicas: 1}, worker: {replicas: 1, command: [./t]}}
)";

TEST(LoadJobTest, PathsBeginAtTheFileUnlessAFolderIsGiven) {
  const TempDir folder;
  ASSERT_THAT(WriteFileAtomically(folder.File("job.yaml"), kFileOfJob), IsOk());
  MUSTER_ASSERT_OK_AND_ASSIGN(const LoadedJob job, LoadJob(folder.File("job.yaml"), ""));
  EXPECT_EQ(job.text, kFileOfJob);
  EXPECT_EQ(job.path, folder.File("job.yaml"));
  EXPECT_EQ(job.base_directory, folder.path());
  EXPECT_EQ(job.spec.state_directory, folder.File("state"));
  MUSTER_ASSERT_OK_AND_ASSIGN(const LoadedJob other, LoadJob(folder.File("job.yaml"), "/other"));
  EXPECT_EQ(other.spec.state_directory, "/other/state");
}

TEST(LoadJobTest, MissingFile) {
  const TempDir folder;
  EXPECT_THAT(LoadJob(folder.File("none.yaml"), ""),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("none.yaml")));
}

TEST(LoadJobTest, AWrongFileIsNamed) {
  const TempDir folder;
  ASSERT_THAT(WriteFileAtomically(folder.File("job.yaml"), "kind: None\n"), IsOk());
  EXPECT_THAT(LoadJob(folder.File("job.yaml"), ""),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("job.yaml")));
}

}  // namespace
}  // namespace muster
