#include "job/job_spec.h"

#include <gtest/gtest.h>

#include <functional>

namespace muster {
namespace {

JobSpec Job() {
  JobSpec job;
  job.name = "flights";
  job.seed = 7;
  job.datasets.push_back({.name = "train", .source = LinesSpec{.files = {"/data/train.csv"}}});
  return job;
}

TopicSpec Topic() {
  TopicSpec topic;
  topic.topic = "t";
  return topic;
}
TopicSpec& TopicOf(JobSpec* job) {
  return std::get<TopicSpec>(job->datasets[0].source);
}

TEST(JobSpecTest, FixedFieldsChangeWithWhatMayNotChange) {
  const auto base = FixedFields(Job());
  const std::vector<std::function<void(JobSpec*)>> fixed = {
      [](JobSpec* job) { job->seed = 8; },
      [](JobSpec* job) { job->partitions = 128; },
      [](JobSpec* job) { job->datasets[0].name = "other"; },
      [](JobSpec* job) { job->datasets[0].mode = DatasetMode::kEvaluate; },
      [](JobSpec* job) { std::get<LinesSpec>(job->datasets[0].source).header = true; },
      [](JobSpec* job) { job->datasets[0].minibatch_size = 1; },
      [](JobSpec* job) { job->datasets[0].minibatches_per_shard = 1; },
      [](JobSpec* job) { job->datasets[0].shuffle = Shuffle::kShards; },
      [](JobSpec* job) { job->datasets.push_back(job->datasets[0]); },
      [](JobSpec* job) { job->datasets[0].source = Topic(); },
  };
  for (size_t i = 0; i < fixed.size(); ++i) {
    JobSpec job = Job();
    fixed[i](&job);
    EXPECT_NE(FixedFields(job), base) << "change " << i;
  }
}

TEST(JobSpecTest, WhereATopicBeginsAndEndsIsFixedItsBrokersAreNot) {
  JobSpec base = Job();
  base.datasets[0].source = Topic();
  JobSpec job = base;
  TopicOf(&job).brokers = {"b:1"};
  TopicOf(&job).secrets["x"] = "env:X";
  EXPECT_EQ(FixedFields(job), FixedFields(base));
  TopicOf(&job).start.kind = StreamBound::Kind::kLatest;
  EXPECT_NE(FixedFields(job), FixedFields(base));
  job = base;
  TopicOf(&job).end = {.kind = StreamBound::Kind::kOffsets, .time = {}, .offsets = {{0, 5}}};
  EXPECT_NE(FixedFields(job), FixedFields(base));
  EXPECT_EQ(ToString(TopicOf(&job).end), "{0: 5}");
}

// A refusal to resume names the field and both values.
TEST(JobSpecTest, FixedFieldsHaveTheNamesAndValuesOfTheJobFile) {
  JobSpec job = Job();
  job.datasets.push_back({.name = "clicks", .mode = DatasetMode::kEvaluate});
  job.datasets[1].source = Topic();
  const std::vector<std::pair<std::string, std::string>> expected = {
      {"spec.seed", "7"},
      {"spec.partitions", "64"},
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
