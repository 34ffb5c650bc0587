#include "job/job_spec.h"

#include <gtest/gtest.h>

#include <functional>

namespace muster {
namespace {

JobSpec Job() {
  JobSpec job;
  job.name = "flights";
  job.seed = 7;
  job.datasets.push_back({.name = "train", .files = {"/data/train.csv"}});
  return job;
}

TEST(JobSpecTest, FixedFieldsChangeWithWhatMayNotChange) {
  const auto base = FixedFields(Job());
  const std::vector<std::function<void(JobSpec*)>> fixed = {
      [](JobSpec* job) { job->seed = 8; },
      [](JobSpec* job) { job->partitions = 128; },
      [](JobSpec* job) { job->datasets[0].name = "other"; },
      [](JobSpec* job) { job->datasets[0].mode = DatasetMode::kEvaluate; },
      [](JobSpec* job) { job->datasets[0].header = true; },
      [](JobSpec* job) { job->datasets[0].minibatch_size = 1; },
      [](JobSpec* job) { job->datasets[0].minibatches_per_shard = 1; },
      [](JobSpec* job) { job->datasets[0].shuffle = true; },
      [](JobSpec* job) { job->datasets.push_back(job->datasets[0]); },
      [](JobSpec* job) { job->datasets[0].kafka.topic = "t"; },
  };
  for (size_t i = 0; i < fixed.size(); ++i) {
    JobSpec job = Job();
    fixed[i](&job);
    EXPECT_NE(FixedFields(job), base) << "change " << i;
  }
}

TEST(JobSpecTest, WhereATopicBeginsAndEndsIsFixedItsBrokersAreNot) {
  JobSpec base = Job();
  base.datasets[0].kafka.topic = "t";
  JobSpec job = base;
  job.datasets[0].kafka.brokers = {"b:1"};
  job.datasets[0].kafka.secrets["x"] = "env:X";
  EXPECT_EQ(FixedFields(job), FixedFields(base));
  job.datasets[0].kafka.start.kind = StreamBound::Kind::kLatest;
  EXPECT_NE(FixedFields(job), FixedFields(base));
  job = base;
  job.datasets[0].kafka.end = {
      .kind = StreamBound::Kind::kOffsets, .time = {}, .offsets = {{0, 5}}};
  EXPECT_NE(FixedFields(job), FixedFields(base));
  EXPECT_EQ(ToString(job.datasets[0].kafka.end), "{0: 5}");
}

TEST(JobSpecTest, ABoundIsWrittenAsAJobFileSaysIt) {
  using Kind = StreamBound::Kind;
  const std::pair<StreamBound, std::string> cases[] = {
      {{.kind = Kind::kEarliest, .time = {}, .offsets = {}}, "earliest"},
      {{.kind = Kind::kLatest, .time = {}, .offsets = {}}, "latest"},
      {{.kind = Kind::kNever, .time = {}, .offsets = {}}, "never"},
      {{.kind = Kind::kNow, .time = {}, .offsets = {}}, "now"},
      {{.kind = Kind::kTime, .time = std::chrono::milliseconds(86'400'005), .offsets = {}},
       "1970-01-02T00:00:00.005Z"},
      {{.kind = Kind::kOffsets, .time = {}, .offsets = {{0, 5}, {3, 7}}}, "{0: 5, 3: 7}"},
      {{.kind = Kind::kOffsets, .time = {}, .offsets = {}}, "{}"},
  };
  for (const auto& [bound, text] : cases) EXPECT_EQ(ToString(bound), text);
}

// A refusal to resume names the field and both values.
TEST(JobSpecTest, FixedFieldsHaveTheNamesAndValuesOfTheJobFile) {
  JobSpec job = Job();
  job.datasets.push_back({.name = "clicks", .mode = DatasetMode::kEvaluate});
  job.datasets[1].kafka.topic = "t";
  const std::vector<std::pair<std::string, std::string>> expected = {
      {"spec.seed", "7"},
      {"spec.partitions", "256"},
      {"spec.datasets", "train, clicks"},
      {"spec.datasets[train].mode", "train"},
      {"spec.datasets[train].header", "false"},
      {"spec.datasets[train].minibatchSize", "256"},
      {"spec.datasets[train].minibatchesPerShard", "16"},
      {"spec.datasets[train].shuffle", "false"},
      {"spec.datasets[clicks].mode", "evaluate"},
      {"spec.datasets[clicks].header", "false"},
      {"spec.datasets[clicks].minibatchSize", "256"},
      {"spec.datasets[clicks].minibatchesPerShard", "16"},
      {"spec.datasets[clicks].shuffle", "false"},
      {"spec.datasets[clicks].kafka.topic", "t"},
      {"spec.datasets[clicks].kafka.start", "earliest"},
      {"spec.datasets[clicks].kafka.end", "never"},
  };
  EXPECT_EQ(FixedFields(job), expected);
  EXPECT_EQ(GroupOf(job), "muster.flights");
}

TEST(JobSpecTest, FixedFieldsLeaveOutWhatMayChange) {
  JobSpec job = Job();
  job.datasets[0].epochs = 9;
  job.ps.replicas = 4;
  job.worker.replicas = 4;
  job.worker.command = {"other"};
  job.state_directory = "/elsewhere";
  job.leases.failures_max = 9;
  job.training.shards_ahead = 9;
  EXPECT_EQ(FixedFields(job), FixedFields(Job()));
}

}  // namespace
}  // namespace muster
