#include "sharding/job_spec.h"

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
