#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "job/file/job_file.h"
#include "tests/cli/verbs/parsed.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

class PredictVerbTest : public ::testing::Test {
 protected:
  PredictVerbTest() {
    std::ofstream(job_) << "apiVersion: muster/v1\n"
                           "kind: TrainingJob\n"
                           "metadata: {name: a}\n"
                           "spec:\n"
                           "  datasets:\n"
                           "    - {name: train, records: 9}\n"
                           "    - {name: test, records: 9, mode: evaluate}\n"
                           "  replicaSpecs: {worker: {command: [/bin/true]}}\n";
  }
  std::string ErrorOf(const std::string& line) { return ErrorOf(AddPredict, line); }
  template <typename Add>
  std::string ErrorOf(Add add, const std::string& line, int code = 2) {
    CLI::App app;
    Chosen chosen;
    add(&app, &chosen, [](const RunOptions&) { return 17; });
    app.parse(line);
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(chosen(), code) << line;
    return ::testing::internal::GetCapturedStderr();
  }

  testing::TempDir dir_;
  const std::string job_ = dir_.File("job.yaml");
};

TEST_F(PredictVerbTest, AnEvaluationIsARunOfTheSameJobFile) {
  const std::optional<RunOptions> run =
      Parsed<RunOptions>(AddEvaluate, "evaluate " + job_ + " --weights /w --no-progress");
  ASSERT_TRUE(run.has_value());
  EXPECT_FALSE(run->progress);
  EXPECT_EQ(run->job_folder, dir_.path());
  EXPECT_EQ(run->job_file, job_ + ", as of muster evaluate");
  absl::StatusOr<JobSpec> job = ParseJobFile(run->job_text, "derived", run->job_folder);
  ASSERT_THAT(job.status(), testing::IsOk());
  EXPECT_EQ(job->datasets.size(), 1u);
  EXPECT_EQ(job->training.warm_start, "/w");
}

TEST_F(PredictVerbTest, TheWeightsOfAJobComeIntoTheStateDirectory) {
  const std::optional<RunOptions> run =
      Parsed<RunOptions>(AddEvaluate, "evaluate " + job_ + " --weights " + job_ + " --dry-run");
  ASSERT_TRUE(run.has_value());
  absl::StatusOr<JobSpec> job = ParseJobFile(run->job_text, "derived", run->job_folder);
  ASSERT_THAT(job.status(), testing::IsOk());
  EXPECT_EQ(job->training.warm_start, dir_.File("state-evaluate/weights"));
  EXPECT_FALSE(std::filesystem::exists(dir_.File("state-evaluate"))) << "--dry-run";
  // They cannot be had: no such job has run.
  EXPECT_THAT(ErrorOf(AddEvaluate, "evaluate " + job_ + " --weights " + job_, /*code=*/5),
              HasSubstr("--weights: "));
  EXPECT_THAT(ErrorOf(AddEvaluate, "evaluate " + job_ + " --on kubernetes --weights " + job_),
              HasSubstr("use `muster export` before"));
}

TEST_F(PredictVerbTest, WhatCannotBePredictedIsRefused) {
  EXPECT_THAT(ErrorOf("predict " + job_ + " --weights /w"),
              HasSubstr(job_ + ": it has no dataset of mode predict"));
  EXPECT_THAT(ErrorOf("predict " + job_ + "2 --weights /w"), HasSubstr(job_ + "2"));
  EXPECT_FALSE(Parsed<RunOptions>(AddPredict, "predict " + job_).has_value()) << "no weights";
}

}  // namespace
}  // namespace muster
