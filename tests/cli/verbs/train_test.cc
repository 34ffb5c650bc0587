#include <gmock/gmock.h>

#include <fstream>

#include "job/file/job_file.h"
#include "tests/cli/verbs/parsed.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class TrainVerbTest : public ::testing::Test {
 protected:
  TrainVerbTest() { std::ofstream(trainer_) << "\n"; }

  /// The options of the run for this line, after `train` and the trainer.
  std::optional<RunOptions> Run(const std::string& line) {
    return Parsed<RunOptions>(AddTrain, "train " + trainer_ + " " + line);
  }
  JobSpec JobOf(const std::string& line) {
    const std::optional<RunOptions> run = Run(line);
    EXPECT_TRUE(run.has_value()) << line;
    if (!run.has_value()) return {};
    absl::StatusOr<JobSpec> job = ParseJobFile(run->job_text, run->job_file, "/jobs");
    EXPECT_THAT(job, testing::IsOk());
    return job.value_or(JobSpec());
  }

  testing::TempDir dir_;
  const std::string trainer_ = dir_.File("learn.py");
};

TEST_F(TrainVerbTest, TheOptionsMakeAJob) {
  const JobSpec job = JobOf(
      "--data a b --test-records 7 --epochs 3 --workers 2 --servers 4 --minibatch-size 64 "
      "--shuffle false --name my-job --state-dir s --python py -- --rate 0.1");
  EXPECT_EQ(job.name, "my-job");
  EXPECT_EQ(job.state_directory, "/jobs/s");
  EXPECT_THAT(std::get<LinesSpec>(job.datasets[0].source).files, ElementsAre("/jobs/a", "/jobs/b"));
  EXPECT_EQ(job.datasets[0].epochs, 3u);
  EXPECT_EQ(job.datasets[0].minibatch_size, 64u);
  EXPECT_EQ(job.datasets[0].shuffle, Shuffle::kNone);
  EXPECT_EQ(std::get<RangeSpec>(job.datasets[1].source).records, 7u);
  EXPECT_EQ(job.worker.replicas, 2u);
  EXPECT_EQ(job.ps.replicas, 4u);
  EXPECT_THAT(job.worker.command, ElementsAre("py", trainer_, "--rate", "0.1"));
}

TEST_F(TrainVerbTest, ARunHasTheOptionsOfRun) {
  const std::optional<RunOptions> run =
      Run("--data-records 9 --retry-failed --dry-run --no-progress -o json --end-with 12");
  ASSERT_TRUE(run.has_value());
  EXPECT_TRUE(run->retry_failed);
  EXPECT_TRUE(run->dry_run);
  EXPECT_FALSE(run->progress);
  EXPECT_EQ(run->output, OutputFormat::kJson);
  EXPECT_EQ(run->end_with, 12);
  EXPECT_EQ(run->job_file, "the job of muster train");
}

TEST_F(TrainVerbTest, TheJobIsPrintedAndNotRun) {
  CLI::App app;
  Chosen chosen;
  AddTrain(&app, &chosen, [](const RunOptions&) { return 17; });
  app.parse("train " + trainer_ + " --data x --print-job");
  ::testing::internal::CaptureStdout();
  EXPECT_EQ(chosen(), 0);
  const std::string text = ::testing::internal::GetCapturedStdout();
  EXPECT_THAT(ParseJobFile(text, "printed", "/jobs"), testing::IsOk()) << text;
  EXPECT_THAT(text, HasSubstr("metadata: {name: \"learn\"}"));
}

TEST_F(TrainVerbTest, WhatCannotBeAJobIsRefused) {
  const std::pair<std::string, std::string> cases[] = {
      {trainer_, "nothing to train on"},
      {trainer_ + " --data x --epochs 0", "spec.datasets[0].epochs: 0 is out of bounds"},
      {trainer_ + " --data x --name A", "metadata.name: the text \"A\" is not a name"},
      {trainer_ + "2 --data x", "cannot read the trainer " + trainer_ + "2"},
      {"learn.py --data /x --on kubernetes --image i", "name its absolute path there"},
  };
  for (const auto& [line, what] : cases) {
    CLI::App app;
    Chosen chosen;
    AddTrain(&app, &chosen, [](const RunOptions&) { return 17; });
    app.parse("train " + line);
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(chosen(), 2) << line;
    EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr(what)) << line;
  }
  EXPECT_FALSE(Parsed<RunOptions>(AddTrain, "train").has_value());
  EXPECT_FALSE(Run("--data x --shuffle maybe").has_value());
  EXPECT_FALSE(Run("--data x --on kubernetes --end-with 1").has_value());
}

}  // namespace
}  // namespace muster
