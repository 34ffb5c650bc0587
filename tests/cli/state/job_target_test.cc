#include "cli/state/job_target.h"
#include "job/file/load_job.h"

#include <gmock/gmock.h>

#include "base/file.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::IsOk;
using testing::StatusIs;
using testing::TempDir;

class JobLoaderTest : public ::testing::Test {
 protected:
  void Write(const std::string& name, const std::string& job, int seed) {
    ASSERT_THAT(MakeDirectories(folder_.File("state/journal")), IsOk());
    ASSERT_THAT(WriteFileAtomically(folder_.File(name), fmt::format(R"(apiVersion: muster/v1
kind: TrainingJob
metadata: {{name: {}}}
spec:
  seed: {}
  stateDirectory: state
  datasets: [{{name: train, files: [a.csv]}}]
  replicaSpecs: {{ps: {{replicas: 1}}, worker: {{replicas: 1, command: [./t]}}}}
)",
                                                                    job, seed)),
                IsOk());
  }
  TempDir folder_;
};

TEST_F(JobLoaderTest, PathsBeginAtTheJobFile) {
  Write("job.yaml", "a", 1);
  MUSTER_ASSERT_OK_AND_ASSIGN(const LoadedJob job, LoadJob(folder_.File("job.yaml"), ""));
  EXPECT_EQ(job.base_directory, folder_.path());
  EXPECT_EQ(job.spec.state_directory, folder_.File("state"));
  MUSTER_ASSERT_OK_AND_ASSIGN(
      const StateDirectory state,
      FindStateDirectory({.job_file = folder_.File("job.yaml"), .state_directory = ""}));
  EXPECT_EQ(state.path(), folder_.File("state"));
  MUSTER_ASSERT_OK_AND_ASSIGN(const StateDirectory other,
                              FindStateDirectory({.job_file = "", .state_directory = "/other"}));
  EXPECT_EQ(other.path(), "/other");
}

TEST_F(JobLoaderTest, AnErrorSaysWhereAVerbLookedAndWhatRuns) {
  const absl::Status none = absl::NotFoundError("no job runs there");
  EXPECT_THAT(SayWhereLooked(none, {}),
              StatusIs(absl::StatusCode::kNotFound,
                       AllOf(HasSubstr("no job runs there. The job file is ./job.yaml, because"),
                             ::testing::ContainsRegex("[Oo]n this machine"))));
  EXPECT_THAT(SayWhereLooked(none, {.job_file = "b.yaml"}).message(),
              HasSubstr("The job file is b.yaml. "));
  EXPECT_THAT(SayWhereLooked(none, {.state_directory = "/state"}).message(),
              ::testing::Not(HasSubstr("job file")));
  EXPECT_EQ(SayWhereLooked(none, {.state_directory = "/state", .linked_job = "the job ads"}),
            absl::NotFoundError("the job ads does not run any more"));
  Write("job.yaml", "a", 1);
  const JobTarget here{.job_file = folder_.File("job.yaml")};
  EXPECT_THAT(SayWhereLooked(none, here).message(), ::testing::Not(HasSubstr("--on kubernetes")));
  MUSTER_ASSERT_OK_AND_ASSIGN(const std::string text, ReadFile(folder_.File("job.yaml"), 1 << 20));
  EXPECT_THAT(WriteFileAtomically(folder_.File("job.yaml"), text + "  kubernetes: {image: i}\n"),
              IsOk());
  EXPECT_THAT(SayWhereLooked(none, here).message(), HasSubstr("--on kubernetes"));
  const absl::Status damaged = absl::DataLossError("damaged");
  EXPECT_EQ(SayWhereLooked(damaged, {}), damaged);
}

TEST_F(JobLoaderTest, AnotherJobsStateIsRefused) {
  Write("job.yaml", "a", 1);
  const StateDirectory state(folder_.File("state"));
  MUSTER_ASSERT_OK_AND_ASSIGN(const LoadedJob job, LoadJob(folder_.File("job.yaml"), ""));
  EXPECT_THAT(CheckSameJob(job, state), IsOk()) << "nothing is known of a former job";
  Write("state/job.yaml", "a", 1);
  EXPECT_THAT(CheckSameJob(job, state), IsOk());
  Write("state/job.yaml", "b", 1);
  EXPECT_THAT(CheckSameJob(job, state),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("'b'"), HasSubstr("'a'"), HasSubstr("stateDirectory"))));
  Write("state/job.yaml", "a", 2);
  EXPECT_THAT(CheckSameJob(job, state), StatusIs(absl::StatusCode::kFailedPrecondition,
                                                 HasSubstr("spec.seed: was 2, is now 1")));
}

}  // namespace
}  // namespace muster
