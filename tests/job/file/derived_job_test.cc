#include "job/file/derived_job.h"

#include <gmock/gmock.h>

#include "job/file/job_file.h"
#include "tests/support/status_matchers.h"

namespace muster {
namespace {

using ::muster::testing::StatusIs;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kTraining[] = R"(# a comment
apiVersion: muster/v1
kind: TrainingJob
metadata: {name: flights}
spec:
  stateDirectory: runs/one
  seed: 7
  snapshots: {directory: weights, interval: 5s}
  datasets:
    - {name: train, files: [train.csv], epochs: 3, shuffle: true}
    - {name: test, files: [test.csv], mode: evaluate}
    - {name: new, files: [new.csv], mode: predict, output: out}
  training: {keep: {best: auc}, stopEarly: {metric: auc}, prefetchMinibatches: 4}
  replicaSpecs: {worker: {command: [./trainer, "--rate=0.1"], env: {A: "1", B: "a \"b\" \\"}}}
)";

JobSpec Derived(const DerivedJob& derived) {
  absl::StatusOr<std::string> text = DeriveJob(kTraining, "job.yaml", derived);
  EXPECT_THAT(text.status(), testing::IsOk());
  absl::StatusOr<JobSpec> job = ParseJobFile(text.value_or(""), "derived", "/jobs");
  EXPECT_THAT(job.status(), testing::IsOk()) << text.value_or("");
  return job.value_or(JobSpec());
}

TEST(DerivedJobTest, OnlyTheDatasetsOfTheModeStay) {
  const JobSpec job = Derived({DatasetMode::kPredict, "/exports/best", ""});
  ASSERT_EQ(job.datasets.size(), 1u);
  EXPECT_EQ(job.datasets[0].name, "new");
  EXPECT_EQ(job.datasets[0].output, "/jobs/out");
  EXPECT_EQ(job.training.warm_start, "/exports/best");
  EXPECT_EQ(job.state_directory, "/jobs/runs/one-predict");
  EXPECT_EQ(job.snapshot_directory, "/jobs/runs/one-predict/snapshots") << "not the training's";
  EXPECT_THAT(job.training.keep_best, IsEmpty());
  EXPECT_THAT(job.training.stop_early_metric, IsEmpty());
  EXPECT_EQ(job.training.prefetch_minibatches, 4u);
  EXPECT_EQ(job.seed, 7u);
  EXPECT_EQ(job.worker.command.back(), "--rate=0.1");
  EXPECT_EQ(job.worker.env.at("A"), "1");
  EXPECT_EQ(job.worker.env.at("B"), "a \"b\" \\");
}

TEST(DerivedJobTest, AnEvaluationHasAStateOfItsOwn) {
  const JobSpec job = Derived({DatasetMode::kEvaluate, "/w", "elsewhere"});
  ASSERT_EQ(job.datasets.size(), 1u);
  EXPECT_EQ(job.datasets[0].name, "test");
  EXPECT_EQ(job.state_directory, "/jobs/elsewhere");
}

TEST(DerivedJobTest, WhatHasNothingToDoIsRefused) {
  const DerivedJob derived{DatasetMode::kPredict, "/w", ""};
  const std::pair<std::string, std::string> cases[] = {
      {"spec: {datasets: [{name: a, files: [x]}]}", "no dataset of mode predict: add one"},
      {"spec: {datasets: 3}", "no dataset of mode predict"},
      {"spec: 3", "no dataset of mode predict"},
      {"[1, 2]", "no dataset of mode predict"},
      {"spec: &a 3", "job.yaml:1:"},
  };
  for (const auto& [text, what] : cases) {
    EXPECT_THAT(DeriveJob(text, "job.yaml", derived),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(what)))
        << text;
  }
}

}  // namespace
}  // namespace muster
