#include "cli/show/json_output.h"

#include <gmock/gmock.h>

#include <limits>

namespace muster {
namespace {

TEST(JsonOutputTest, AMetricThatIsNotDefinedIsNull) {
  v1::EpochStatus epoch;
  v1::MetricValue* loss = epoch.add_metrics();
  loss->set_name("logloss");
  loss->set_value(0.75);
  v1::MetricValue* auc = epoch.add_metrics();
  auc->set_name("auc");
  auc->set_value(std::numeric_limits<double>::quiet_NaN());
  const nlohmann::json json = MetricsToJson(epoch);
  EXPECT_DOUBLE_EQ(json["logloss"].get<double>(), 0.75);
  EXPECT_TRUE(json["auc"].is_null()) << "0 / 0 is no number";
}

TEST(JsonOutputTest, StatusHasTheDocumentedShape) {
  v1::JobStatus status;
  status.set_job("demo");
  status.set_state(v1::JOB_STATE_DRAINING);
  v1::DatasetStatus* dataset = status.add_datasets();
  dataset->set_name("test");
  dataset->set_mode(1);
  v1::EpochStatus* epoch = dataset->add_epochs();
  epoch->set_records_expected(10);
  epoch->set_shards_failed(2);
  v1::NodeStatus* worker = status.add_nodes();
  worker->set_name("worker-0");
  worker->set_role("worker");
  worker->set_pid(77);
  worker->mutable_times()->set_compute_us(12);
  worker->mutable_times()->set_minibatches_begun(13);
  worker->set_drain("draining");
  v1::NodeStatus* server = status.add_nodes();
  server->set_role("ps");
  server->mutable_counters()->set_rows(5);
  server->set_peer_pull_us(14);
  status.mutable_counters()->set_parts_skipped(9);
  const nlohmann::json json = StatusToJson(status);
  EXPECT_EQ(json["state"], "draining");
  EXPECT_EQ(json["datasets"][0]["mode"], "evaluate");
  EXPECT_EQ(json["datasets"][0]["epochs"][0]["expected"], 10);
  EXPECT_EQ(json["datasets"][0]["epochs"][0]["shards"]["failed"], 2);
  EXPECT_EQ(json["nodes"][0]["pid"], 77);
  EXPECT_EQ(json["nodes"][0]["times_us"]["compute"], 12);
  EXPECT_EQ(json["nodes"][0]["minibatches"]["begun"], 13);
  EXPECT_EQ(json["nodes"][0]["drain"], "draining");
  EXPECT_EQ(json["nodes"][1]["seen_by_workers"]["pull_us"], 14);
  EXPECT_EQ(json["nodes"][1]["rows"], 5);
  EXPECT_EQ(json["counters"]["parts_skipped"], 9);
}

TEST(JsonOutputTest, PartitionsHaveTheDocumentedShape) {
  v1::PartitionStatus partition;
  partition.set_partition(3);
  partition.set_owner("ps-1");
  partition.mutable_traffic()->set_moved_rows(5);
  const nlohmann::json json = PartitionToJson(partition);
  EXPECT_EQ(json["partition"], 3);
  EXPECT_EQ(json["owner"], "ps-1");
  EXPECT_EQ(json["moved_rows"], 5);
  EXPECT_EQ(json.size(), 17u);
}

TEST(JsonOutputTest, NamesAndTimes) {
  EXPECT_EQ(WallToText(1'700'000'000'123'456), "2023-11-14T22:13:20.123Z");
  v1::ShardId id;
  id.set_dataset(1);
  id.set_epoch(2);
  id.set_index(3);
  v1::ShardStatus shard;
  *shard.mutable_id() = id;
  shard.add_reasons("SIGSEGV");
  EXPECT_EQ(ShardToJson(shard)["id"], "1/2/3");
  EXPECT_EQ(ShardToJson(shard)["reasons"][0], "SIGSEGV");
}

}  // namespace
}  // namespace muster
