#include "scaler/service/model_from_status.h"

#include <gmock/gmock.h>

namespace muster::scaler {
namespace {

using ::testing::ElementsAre;

v1::JobStatus Status() {
  v1::JobStatus status;
  status.set_job("flights");
  status.set_state(v1::JOB_STATE_RUNNING);
  v1::DatasetStatus* train = status.add_datasets();
  train->set_name("train");
  train->set_epochs_total(3);
  train->set_omitted_records_expected(100);
  train->set_omitted_records_done(100);
  v1::EpochStatus* epoch = train->add_epochs();
  epoch->set_epoch(1);
  epoch->set_records_expected(100);
  epoch->set_records_done(50);
  epoch->set_records_committed(30);
  epoch->set_shards(20);
  epoch->set_shards_done(8);
  epoch->set_shards_committed(5);
  epoch->set_shards_leased(3);
  epoch->set_shards_failed(1);
  v1::DatasetStatus* test = status.add_datasets();
  test->set_mode(1);
  test->add_epochs()->set_records_expected(7);
  return status;
}

TEST(ModelFromStatusTest, ProgressIsOfTrainingAlone) {
  const rest::Job job = JobFromStatus(Status());
  EXPECT_EQ(job.state, "running");
  EXPECT_EQ(job.progress.records_expected, 200u);
  EXPECT_EQ(job.progress.records_done, 150u);
  EXPECT_EQ(job.progress.records_committed, 130u);
  EXPECT_EQ(job.counters.size(), 11u);
}

TEST(ModelFromStatusTest, EveryShardIsInOneState) {
  const rest::DatasetList list = DatasetsFromStatus(Status());
  ASSERT_EQ(list.datasets.size(), 2u);
  EXPECT_EQ(list.datasets[1].mode, "evaluate");
  const rest::ShardCounts& shards = list.datasets[0].epochs[0].shards;
  EXPECT_EQ(shards.todo, 8u);
  EXPECT_EQ(shards.leased, 3u);
  EXPECT_EQ(shards.done, 3u);
  EXPECT_EQ(shards.committed, 5u);
  EXPECT_EQ(shards.failed, 1u);
  EXPECT_EQ(shards.total, 20u);
}

TEST(ModelFromStatusTest, NodesHaveTheFiguresOfTheirRole) {
  v1::NodeStatus status;
  status.set_name("worker-0");
  status.set_role("worker");
  status.set_restarts(2);
  status.set_start(3);
  status.mutable_times()->set_compute_us(1'500'000);
  const rest::Node worker = NodeFromStatus(status);
  ASSERT_TRUE(worker.worker.has_value());
  EXPECT_EQ(worker.worker->computing_seconds_total, 1.5);
  EXPECT_FALSE(worker.server.has_value());
  EXPECT_EQ(worker.start, 3u);
  EXPECT_EQ(worker.drain, "none");
  status.set_role("ps");
  status.set_drain("drained");
  status.mutable_counters()->set_rows(9);
  const rest::Node server = NodeFromStatus(status);
  EXPECT_EQ(server.server->rows, 9u);
  EXPECT_EQ(server.drain, "drained");
}

TEST(ModelFromStatusTest, AnAgeThatIsNotKnownIsAbsent) {
  v1::PartitionStatus status;
  EXPECT_FALSE(PartitionFromStatus(status).snapshot_age_ms.has_value());
  status.set_snapshot_age_ms(5);
  status.mutable_traffic()->set_service_us(2'000'000);
  EXPECT_EQ(PartitionFromStatus(status).snapshot_age_ms, 5u);
  EXPECT_EQ(PartitionFromStatus(status).service_seconds_total, 2);
}

TEST(ModelFromStatusTest, ADatasetThatIsATopicSaysHowFarItIs) {
  v1::JobStatus status;
  status.add_datasets()->set_name("files");
  v1::StreamStatus* from = status.add_datasets()->mutable_stream();
  from->set_topic("clicks");
  from->set_open(true);
  from->set_lag(9);
  from->set_lag_ms(1'500);
  v1::TopicPartitionStatus* partition = from->add_partitions();
  partition->set_partition(3);
  partition->set_committed(4);
  partition->set_stable_end(13);
  partition->set_held_back(0);
  const rest::DatasetList list = DatasetsFromStatus(status);
  EXPECT_FALSE(list.datasets[0].stream.has_value());
  ASSERT_TRUE(list.datasets[1].stream.has_value());
  const rest::Stream& stream = *list.datasets[1].stream;
  EXPECT_EQ(stream.topic, "clicks");
  EXPECT_TRUE(stream.open);
  EXPECT_EQ(stream.lag_seconds, 1.5);
  ASSERT_EQ(stream.partitions.size(), 1u);
  EXPECT_EQ(stream.partitions[0].stable_end, 13u);
  EXPECT_EQ(stream.partitions[0].end, std::nullopt);
  EXPECT_EQ(stream.held_back, std::nullopt) << "not known";
  EXPECT_EQ(stream.partitions[0].held_back, 0u);
  EXPECT_EQ(stream.partitions[0].lag, std::nullopt);
}

TEST(ModelFromStatusTest, ShardsSayWhatTheyCover) {
  v1::ShardStatus status;
  status.mutable_id()->set_epoch(2);
  status.mutable_id()->set_index(17);
  status.add_reasons("exit 1");
  const rest::Shard shard = ShardFromStatus(status);
  EXPECT_EQ(shard.id, "0/2/17");
  EXPECT_THAT(shard.reasons, ElementsAre("exit 1"));
}

TEST(ModelFromStatusTest, PagesOfAMapJoin) {
  rest::ShardMap map;
  v1::GetShardMapResponse page;
  page.set_shards(10);
  const auto add = [&page](uint64_t end, const char* state) {
    v1::ShardRunStatus* run = page.add_runs();
    run->set_end(end);
    run->set_state(state);
  };
  add(3, "committed");
  add(5, "leased");
  AppendShardRuns(page, &map);
  page.clear_runs();
  add(6, "leased");
  add(10, "todo");
  AppendShardRuns(page, &map);
  std::vector<std::string> runs;
  for (const rest::ShardRun& run : map.runs) {
    runs.push_back(run.state + std::to_string(run.begin) + "-" + std::to_string(run.end));
  }
  EXPECT_THAT(runs, ElementsAre("committed0-3", "leased3-6", "todo6-10"));
}

}  // namespace
}  // namespace muster::scaler
