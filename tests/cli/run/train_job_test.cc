#include "cli/run/train_job.h"

#include <gmock/gmock.h>

#include "job/file/job_file.h"
#include "tests/support/status_matchers.h"

namespace muster {
namespace {

using ::muster::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(TrainJobTest, TheSmallestJobLeavesEverythingToTheDefaults) {
  MUSTER_ASSERT_OK_AND_ASSIGN(
      const std::string text,
      JobFileOf({.trainer = "./trainer", .train = {.files = {"train-*.csv"}, .records = {}}}));
  EXPECT_EQ(text, R"(apiVersion: muster/v1
kind: TrainingJob
metadata: {name: "trainer"}
spec:
  datasets:
    - {name: train, files: ["train-*.csv"], shuffle: true}
  replicaSpecs:
    worker: {command: ["./trainer"]}
)");
}

TEST(TrainJobTest, EveryOptionIsInTheJob) {
  MUSTER_ASSERT_OK_AND_ASSIGN(const std::string text,
                              JobFileOf({.name = "flights",
                                         .trainer = "./my trainer.py",
                                         .arguments = {"--rate", "0.1", "say \"no\": \\ #\n"},
                                         .python = "/venv/bin/python",
                                         .train = {.files = {"a*", "b"}, .records = {}},
                                         .test = {.files = {}, .records = 500},
                                         .header = true,
                                         .shuffle = "shards",
                                         .epochs = 3,
                                         .minibatch_size = 64,
                                         .workers = 2,
                                         .servers = 4,
                                         .state_directory = "the state"}));
  MUSTER_ASSERT_OK_AND_ASSIGN(const JobSpec job, ParseJobFile(text, "made", "/jobs"));
  EXPECT_EQ(job.name, "flights");
  EXPECT_EQ(job.state_directory, "/jobs/the state");
  ASSERT_EQ(job.datasets.size(), 2u);
  const auto& lines = std::get<LinesSpec>(job.datasets[0].source);
  EXPECT_THAT(lines.files, ElementsAre("/jobs/a*", "/jobs/b"));
  EXPECT_TRUE(lines.header);
  EXPECT_EQ(job.datasets[0].epochs, 3u);
  EXPECT_EQ(job.datasets[0].minibatch_size, 64u);
  EXPECT_EQ(job.datasets[0].shuffle, Shuffle::kShards);
  EXPECT_EQ(std::get<RangeSpec>(job.datasets[1].source).records, 500u);
  EXPECT_EQ(job.datasets[1].mode, DatasetMode::kEvaluate);
  EXPECT_EQ(job.datasets[1].minibatch_size, 64u);
  EXPECT_EQ(job.ps.replicas, 4u);
  EXPECT_EQ(job.worker.replicas, 2u);
  EXPECT_THAT(job.worker.command, ElementsAre("/venv/bin/python", "./my trainer.py", "--rate",
                                              "0.1", "say \"no\": \\ #\n"));
  EXPECT_EQ(job.worker.env.at("PYTHONUNBUFFERED"), "1");
}

TEST(TrainJobTest, OptionsThatContradictEachOtherAreRefused) {
  const TrainData files{.files = {"a"}, .records = {}}, numbers{.files = {}, .records = 9};
  const TrainData both{.files = {"a"}, .records = 9};
  const std::pair<TrainJob, const char*> cases[] = {
      {{.trainer = "t"}, "nothing to train on"},
      {{.trainer = "t", .train = both}, "--data and --data-records are both given"},
      {{.trainer = "t", .train = files, .test = both}, "--test and --test-records are both given"},
      {{.trainer = "t", .train = numbers, .header = true}, "--header is for files"},
  };
  for (const auto& [job, what] : cases) {
    EXPECT_THAT(JobFileOf(job), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(what)));
  }
}

TEST(TrainJobTest, TheNameOfATrainerIsTheJobs) {
  const std::pair<std::string, std::string> cases[] = {
      {"trainer.py", "trainer"},
      {"/opt/My_Trainer.py", "my-trainer"},
      {"./a.b.c", "a-b"},
      {"__main__.py", "main"},
      {"\xc3\xa9.py", "train"},
      {"./train_flights", "train-flights"},
      {std::string(99, 'x'), std::string(63, 'x')},
  };
  for (const auto& [trainer, name] : cases) EXPECT_EQ(NameOfTrainer(trainer), name);
}

}  // namespace
}  // namespace muster
