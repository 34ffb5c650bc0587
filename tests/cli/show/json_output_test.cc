#include "cli/show/json_output.h"

#include <gmock/gmock.h>

#include <limits>

#include "proto/fields/json.h"
#include "proto/status/partition_status.h"
#include "proto/status/shard_status.h"

namespace muster {
namespace {

TEST(JsonOutputTest, AMetricThatIsNotDefinedIsNull) {
  EpochStatus epoch;
  epoch.metrics = {{"logloss", 0.75}, {"auc", std::numeric_limits<double>::quiet_NaN()}};
  const nlohmann::json json = ToJson(epoch)["metrics"];
  EXPECT_DOUBLE_EQ(json["logloss"].get<double>(), 0.75);
  EXPECT_TRUE(json["auc"].is_null()) << "0 / 0 is no number";
}

TEST(JsonOutputTest, StatusHasTheDocumentedShape) {
  JobStatus status;
  status.name = "demo";
  status.state = JobState::kDraining;
  DatasetStatus& dataset = status.datasets.emplace_back();
  dataset.name = "test";
  dataset.mode = "evaluate";
  EpochStatus& epoch = dataset.epochs.emplace_back();
  epoch.records_expected = 10;
  epoch.shards.failed = 2;
  NodeStatus& worker = status.nodes.emplace_back();
  worker.name = "worker-0";
  worker.role = "worker";
  worker.pid = 77;
  worker.worker.emplace().times.compute_us = 12;
  worker.worker->times.minibatches_begun = 13;
  worker.drain = DrainState::kDraining;
  NodeStatus& server = status.nodes.emplace_back();
  server.role = "ps";
  server.server.emplace().counters.rows = 5;
  server.server->seen_by_workers.pull_us = 14;
  status.counters.parts_skipped = 9;
  const nlohmann::json json = ToJson(status);
  EXPECT_EQ(json["name"], "demo");
  EXPECT_EQ(json["state"], "draining");
  EXPECT_EQ(json["datasets"][0]["mode"], "evaluate");
  EXPECT_TRUE(json["datasets"][0].at("stream").is_null());
  EXPECT_EQ(json["datasets"][0]["epochs"][0]["records_expected"], 10);
  EXPECT_EQ(json["datasets"][0]["epochs"][0]["shards"]["failed"], 2);
  EXPECT_EQ(json["nodes"][0]["pid"], 77);
  EXPECT_EQ(json["nodes"][0]["worker"]["times"]["compute_us"], 12);
  EXPECT_EQ(json["nodes"][0]["worker"]["times"]["minibatches_begun"], 13);
  EXPECT_EQ(json["nodes"][0]["drain"], "draining");
  EXPECT_EQ(json["nodes"][1]["drain"], "none");
  EXPECT_EQ(json["nodes"][1]["server"]["seen_by_workers"]["pull_us"], 14);
  EXPECT_EQ(json["nodes"][1]["server"]["counters"]["rows"], 5);
  EXPECT_EQ(json["counters"]["parts_skipped"], 9);
  EXPECT_EQ(NodesToJson(status), (nlohmann::json{{"nodes", json["nodes"]}}));
}

TEST(JsonOutputTest, PartitionsHaveTheDocumentedShape) {
  PartitionStatus partition;
  partition.partition = 3;
  partition.owner = "ps-1";
  partition.traffic.moved_rows = 5;
  const nlohmann::json json = ToJson(partition);
  EXPECT_EQ(json["partition"], 3);
  EXPECT_EQ(json["owner"], "ps-1");
  EXPECT_EQ(json["traffic"]["moved_rows"], 5);
  EXPECT_EQ(json.size(), 11u);
}

TEST(JsonOutputTest, ShardsHaveTheDocumentedShape) {
  const ShardPage page{.total = 7, .shards = {{.id = "1/2/3", .reasons = {"SIGSEGV"}}}};
  const nlohmann::json json = ToJson(page);
  EXPECT_EQ(json["total"], 7);
  EXPECT_EQ(json["shards"][0]["id"], "1/2/3");
  EXPECT_EQ(json["shards"][0]["reasons"][0], "SIGSEGV");
}

TEST(JsonOutputTest, TimesForPeople) {
  EXPECT_EQ(WallToText(1'700'000'000'123'456), "2023-11-14T22:13:20.123Z");
}

}  // namespace
}  // namespace muster
