#include "cli/ask/weights_of_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster {
namespace {

using ::testing::HasSubstr;
using testing::IsOk;
using testing::StatusIs;

constexpr char kJob[] = R"(apiVersion: muster/v1
kind: TrainingJob
metadata: {name: demo}
spec:
  stateDirectory: state
  datasets: [{name: train, records: 9}]
  replicaSpecs: {ps: {replicas: 1}, worker: {replicas: 1, command: [./t]}}
)";

class WeightsOfJobTest : public ::testing::Test {
 protected:
  WeightsOfJobTest() {
    EXPECT_THAT(WriteFileAtomically(job_, kJob), IsOk());
    EXPECT_THAT(state_.Create(), IsOk());
    EXPECT_THAT(MakeDirectories(folder_.File("new")), IsOk());
  }

  testing::TempDir folder_;
  const std::string job_ = folder_.File("job.yaml"), weights_ = folder_.File("new/weights");
  const StateDirectory state_{folder_.File("state")};
};

TEST_F(WeightsOfJobTest, AJobIsNamedByItsFileOrItsStateDirectory) {
  const std::optional<JobTarget> by_file = JobOfWeights(job_);
  ASSERT_TRUE(by_file.has_value());
  EXPECT_EQ(by_file->job_file, job_);
  EXPECT_FALSE(JobOfWeights(state_.path()).has_value()) << "no job has run there";
  ASSERT_THAT(WriteFileAtomically(state_.job_copy(), kJob), IsOk());
  const std::optional<JobTarget> by_state = JobOfWeights(state_.path());
  ASSERT_TRUE(by_state.has_value());
  EXPECT_EQ(by_state->job_file, "");
  EXPECT_EQ(by_state->state_directory, state_.path());
  EXPECT_FALSE(JobOfWeights(folder_.File("new")).has_value()) << "an export";
  EXPECT_FALSE(JobOfWeights(folder_.File("none")).has_value());
}

TEST_F(WeightsOfJobTest, APositionIsThatOfTheTrainingOrOfTheStep) {
  JobStatus status;
  status.name = "demo";
  status.state = JobState::kRunning;
  status.progress.records_committed = 1'234;
  status.progress.records_expected = 5'000;
  v1::GetManifestResponse manifest;
  EXPECT_EQ(PositionText(status, manifest),
            "job 'demo' (running), in which 1,234 of 5,000 records of training are COMMITTED");
  manifest.mutable_group()->mutable_label()->set_step(12'000);
  EXPECT_EQ(PositionText(status, manifest), "job 'demo' (running), after step 12,000");
}

TEST_F(WeightsOfJobTest, AJobThatNeverRanHasNoWeights) {
  EXPECT_THAT(
      TakeWeights(*JobOfWeights(job_), weights_),
      StatusIs(absl::StatusCode::kNotFound,
               HasSubstr("no job runs, or has run, with the state directory " + state_.path())));
}

TEST_F(WeightsOfJobTest, WhatWasTakenBeforeIsTakenAgain) {
  ASSERT_THAT(MakeDirectories(weights_), IsOk());
  EXPECT_THAT(TakeWeights(*JobOfWeights(job_), weights_),
              StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr(weights_)));
  ASSERT_THAT(WriteFileAtomically(weights_ + ".position", "job 'demo', early"), IsOk());
  MUSTER_ASSERT_OK_AND_ASSIGN(const std::string position,
                              TakeWeights(*JobOfWeights(job_), weights_));
  EXPECT_EQ(position, "job 'demo', early");
}

}  // namespace
}  // namespace muster
