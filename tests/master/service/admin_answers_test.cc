#include "master/service/admin_answers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "tests/support/status_matchers.h"

namespace muster {
namespace {

using ::testing::HasSubstr;
using testing::IsOk;
using testing::StatusIs;

class AdminAnswersTest : public ::testing::Test {
 protected:
  AdminAnswersTest() {
    CoreOptions options;
    options.leases.failures_max = 1;
    DatasetPlan plan{"train", DatasetMode::kTrain, 2, 4, 40, 5, nullptr};
    plan.records_of = [](EpochIndex, ShardIndex) { return 10u; };
    options.datasets = {plan};
    core_ = std::make_unique<MasterCore>(options, DurableState{}, at_);
    WorkerExchangeRequest request;
    request.worker = "worker-0";
    request.incarnation = 1;
    request.sequence = 1;
    request.want = 5;
    grants_ = core_->ExchangeWorker(request, at_).value().grants;
    request.sequence = 2;
    request.want = 0;
    for (const ShardGrant& grant : grants_) {
      request.held.push_back({grant.shard, grant.token, grant.restore_epoch, {}, {}, 1});
    }
    const ShardGrant& done = grants_[0];
    request.done.push_back({done.shard, done.token, done.restore_epoch, {}, {}});
    request.returned.push_back({grants_[1].shard, grants_[1].token, true, "bad luck", false});
    EXPECT_TRUE(core_->ExchangeWorker(request, at_).ok());
  }

  static ShardWork WorkOf(const ShardId& shard) {
    ShardWork work;
    work.path = "/data/\xff.csv";
    work.first_record = 10 * shard.index.value();
    work.record_count = 10;
    work.has_header = true;
    return work;
  }

  const StepTime at_{TimePoint(std::chrono::seconds(50)), WallTime(7)};
  const TimePoint later_ = at_.now + std::chrono::seconds(2);
  std::unique_ptr<MasterCore> core_;
  std::vector<ShardGrant> grants_;
};

TEST_F(AdminAnswersTest, StatusCountsEveryState) {
  v1::JobStatus status;
  FillStatus(*core_, "flights", {later_, WallTime(0)}, &status);
  EXPECT_EQ(status.job(), "flights");
  EXPECT_EQ(status.state(), v1::JOB_STATE_RUNNING);
  ASSERT_EQ(status.datasets(0).epochs_size(), 2);
  const v1::EpochStatus& epoch = status.datasets(0).epochs(0);
  EXPECT_EQ(epoch.records_expected(), 40u);
  EXPECT_EQ(epoch.records_done(), 10u);
  EXPECT_EQ(epoch.records_committed(), 0u);
  EXPECT_EQ(epoch.shards_done(), 1u);
  EXPECT_EQ(epoch.shards_failed(), 1u);
  EXPECT_EQ(epoch.shards_leased(), 2u);
  EXPECT_EQ(status.datasets(0).epochs(1).shards_leased(), 1u);
  ASSERT_EQ(status.nodes_size(), 1);
  EXPECT_EQ(status.nodes(0).heartbeat_age_ms(), 2000u);
  EXPECT_EQ(status.nodes(0).shards_held(), 3u);
  EXPECT_EQ(status.uptime_ms(), 2000u);
  EXPECT_THAT(status.last_event(), HasSubstr("shard-failed worker-0: shard 0/0/1"));
}

TEST_F(AdminAnswersTest, MetricsAreValuesHoweverManyBinsTheyWereComputedFrom) {
  DurableState state;
  ShardMetrics metrics;
  metrics.means["logloss"] = {3, 4};
  metrics.means["nothing"] = {0, 0};
  AddScore(&metrics.aucs["auc"], 0.2, false);
  AddScore(&metrics.aucs["auc"], 0.9, true);
  metrics.rejected_records = 2;
  metrics.reject_samples = {"a.csv:3: \xff"};
  EpochRecord epoch{DatasetId(0), EpochIndex(0), {}, 10, metrics};
  epoch.committed.Add(0, 1);
  state.meta = MetaRecord{};
  state.epochs[{DatasetId(0), EpochIndex(0)}] = epoch;
  const MasterCore core(core_->options(), state, MasterCore::AsFound{});
  v1::JobStatus status;
  FillStatus(core, "flights", {later_, WallTime(0)}, &status);
  const v1::EpochStatus& shown = status.datasets(0).epochs(0);
  std::map<std::string, double> values;
  for (const v1::MetricValue& metric : shown.metrics()) values[metric.name()] = metric.value();
  EXPECT_DOUBLE_EQ(values["logloss"], 0.75);
  EXPECT_TRUE(std::isnan(values["nothing"]));
  EXPECT_DOUBLE_EQ(values["auc"], 1);
  EXPECT_EQ(shown.rejected_records(), 2u);
  EXPECT_EQ(shown.reject_samples(0), "a.csv:3: ?");
  EXPECT_LT(status.ByteSizeLong(), 1'000u);
}

TEST_F(AdminAnswersTest, ShardsComePageByPage) {
  v1::ListShardsRequest request;
  v1::ListShardsResponse all;
  ASSERT_THAT(FillShards(*core_, later_, WorkOf, request, &all), IsOk());
  EXPECT_EQ(all.total(), 5u);
  ASSERT_EQ(all.shards_size(), 5);
  EXPECT_EQ(all.shards(0).state(), "failed");
  EXPECT_THAT(all.shards(0).reasons(0), HasSubstr("bad luck"));
  EXPECT_EQ(all.shards(0).id().index(), 1u);
  EXPECT_EQ(all.shards(0).source(), "/data/?.csv");
  EXPECT_EQ(all.shards(0).first_record(), 10u);
  EXPECT_EQ(all.shards(0).records(), 10u);
  EXPECT_EQ(all.shards(0).first_line(), 12u) << "the header is line 1";
  EXPECT_EQ(all.shards(1).worker(), "worker-0");
  EXPECT_EQ(all.shards(1).age_ms(), 2000u);
  EXPECT_EQ(all.shards(4).state(), "done");
  request.set_offset(1);
  request.set_limit(2);
  v1::ListShardsResponse page;
  ASSERT_THAT(FillShards(*core_, later_, WorkOf, request, &page), IsOk());
  EXPECT_EQ(page.total(), 5u);
  ASSERT_EQ(page.shards_size(), 2);
  EXPECT_EQ(page.shards(0).token(), all.shards(1).token());
  request.set_limit(10'001);
  EXPECT_THAT(FillShards(*core_, later_, WorkOf, request, &page),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("10001 is more than")));
}

TEST_F(AdminAnswersTest, EventsComeAfterASequence) {
  v1::ListEventsRequest request;
  v1::ListEventsResponse all;
  ASSERT_THAT(FillEvents(*core_, request, &all), IsOk());
  ASSERT_GE(all.events_size(), 2);
  EXPECT_EQ(all.events(0).wall_us(), 7u);
  request.set_after(all.events(0).sequence());
  v1::ListEventsResponse rest;
  ASSERT_THAT(FillEvents(*core_, request, &rest), IsOk());
  EXPECT_EQ(rest.events_size(), all.events_size() - 1);
}

TEST_F(AdminAnswersTest, OfVeryManyEpochsTheNewestAreListed) {
  DurableState state;
  state.meta = MetaRecord{};
  for (uint32_t e = 0; e <= 3'000; ++e) {
    EpochRecord epoch{DatasetId(0), EpochIndex(e), {}, 40, {}};
    epoch.committed.Add(0, 4);
    state.epochs[{DatasetId(0), EpochIndex(e)}] = epoch;
  }
  CoreOptions options = core_->options();
  options.datasets[0].epochs = 5'000;
  const MasterCore core(options, state, MasterCore::AsFound{});
  v1::JobStatus status;
  FillStatus(core, "flights", {later_, WallTime(0)}, &status);
  const v1::DatasetStatus& dataset = status.datasets(0);
  EXPECT_EQ(dataset.epochs_total(), 5'000u);
  ASSERT_EQ(dataset.epochs_size(), 1'000);
  EXPECT_EQ(dataset.epochs(0).epoch(), 2'002u);
  EXPECT_EQ(dataset.epochs(998).records_done(), 40u);
  EXPECT_EQ(dataset.epochs(999).epoch(), 3'001u) << "the one that comes next";
  EXPECT_EQ(dataset.omitted_records_done(), 2'002u * 40);
  EXPECT_EQ(dataset.omitted_records_expected(), 4'000u * 40);
}

TEST_F(AdminAnswersTest, PagesEndBeforeAMessageGrowsTooLarge) {
  constexpr size_t kMessageBytesMax = 4 << 20;
  DurableState state;
  state.meta = MetaRecord{};
  for (uint64_t i = 1; i <= 2'000; ++i) {
    state.events[i] = EventRecord{i, WallTime(1), "kind", "node", std::string(4'000, 'x')};
  }
  CoreOptions options = core_->options();
  options.datasets[0].shards = 1'000;
  for (uint64_t i = 0; i < 1'000; ++i) {
    const ShardId shard{DatasetId(0), EpochIndex(0), ShardIndex(i)};
    state.failures[shard] = {shard, 16, 0, std::vector<std::string>(16, std::string(1'000, 'x')),
                             true};
  }
  const MasterCore core(options, state, MasterCore::AsFound{});
  v1::ListEventsRequest events_request;
  events_request.set_limit(10'000);
  uint64_t seen = 0;
  for (bool more = true; more;) {
    v1::ListEventsResponse events;
    ASSERT_THAT(FillEvents(core, events_request, &events), IsOk());
    EXPECT_LT(events.ByteSizeLong(), kMessageBytesMax);
    for (const v1::Event& event : events.events()) {
      EXPECT_EQ(event.sequence(), ++seen);
      events_request.set_after(event.sequence());
    }
    more = events.events_size() > 0;
  }
  EXPECT_EQ(seen, 2'000u);
  v1::ListShardsRequest shards_request;
  uint64_t shards_seen = 0;
  for (bool more = true; more;) {
    v1::ListShardsResponse shards;
    shards_request.set_offset(shards_seen);
    ASSERT_THAT(FillShards(core, later_, WorkOf, shards_request, &shards), IsOk());
    EXPECT_LT(shards.ByteSizeLong(), kMessageBytesMax);
    EXPECT_EQ(shards.total(), 1'000u);
    shards_seen += static_cast<uint64_t>(shards.shards_size());
    more = shards.shards_size() > 0;
  }
  EXPECT_EQ(shards_seen, 1'000u);
}

TEST_F(AdminAnswersTest, PartitionsShowOwnerSnapshotAndTraffic) {
  CoreOptions options = core_->options();
  options.partitions = 3;
  options.servers = 2;
  DurableState state;
  state.partitions[PartitionId(0)] = {
      PartitionId(0),
      {},
      {SnapshotNumber(MasterIncarnation(1), 5), DoneSeq(0), {{"a", 4}, {"b", 6}}}};
  MasterCore core(options, state, at_);
  ASSERT_THAT(core.RegisterServer({"ps-0", 1, {{"unix:/x"}, {"unix:/y"}}}, at_).status(), IsOk());
  ServerExchangeRequest request{.id = ServerId(0), .incarnation = ServerIncarnation(1)};
  request.sequence = 1;
  request.owned.push_back({PartitionId(0), core.partitions().entry(PartitionId(0)).epoch, {}});
  request.traffic.push_back({PartitionId(0), 1, 2, 3, 4, 5, 6, 7});
  request.counters.service_us = 8;
  core.ExchangeServer(request, at_);
  v1::ListPartitionsResponse all;
  ASSERT_THAT(FillPartitions(core, later_, {}, &all), IsOk());
  EXPECT_EQ(all.total(), 3u);
  ASSERT_EQ(all.partitions_size(), 3);
  EXPECT_EQ(all.partitions(0).owner(), "ps-0");
  EXPECT_EQ(all.partitions(0).state(), "serving");
  EXPECT_EQ(all.partitions(0).snapshot_files(), 2u);
  EXPECT_EQ(all.partitions(0).snapshot_bytes(), 10u);
  EXPECT_EQ(all.partitions(0).snapshot_age_ms(), 0u) << "of an earlier master: not known";
  EXPECT_EQ(all.partitions(0).traffic().service_us(), 5u);
  std::map<std::string, std::string> states;
  for (const auto& partition : all.partitions()) states[partition.owner()] = partition.state();
  EXPECT_EQ(states["ps-1"], "unowned");
  v1::ListPartitionsRequest page;
  page.set_offset(1);
  page.set_limit(1);
  v1::ListPartitionsResponse one;
  ASSERT_THAT(FillPartitions(core, later_, page, &one), IsOk());
  ASSERT_EQ(one.partitions_size(), 1);
  EXPECT_EQ(one.partitions(0).partition(), 1u);
  page.set_offset(99);
  v1::ListPartitionsResponse none;
  ASSERT_THAT(FillPartitions(core, later_, page, &none), IsOk());
  EXPECT_EQ(none.partitions_size(), 0);
  page.set_limit(10'001);
  EXPECT_THAT(FillPartitions(core, later_, page, &none),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("10001 is more than")));
  v1::JobStatus status;
  FillStatus(core, "flights", {later_, WallTime(0)}, &status);
  EXPECT_EQ(status.nodes(0).lanes(), 2u);
  EXPECT_EQ(status.nodes(0).counters().service_us(), 8u);
  EXPECT_EQ(status.nodes(0).drain(), "");
  ASSERT_THAT(core.DrainNode("ps-0", {}, at_).status(), IsOk());
  v1::JobStatus drained;
  FillStatus(core, "flights", {later_, WallTime(0)}, &drained);
  EXPECT_EQ(drained.nodes(0).drain(), "drained");
}

TEST_F(AdminAnswersTest, SnapshotsThatCannotBeReadAreTheReasonBeforeAndAfterTheEnd) {
  StepTime at = at_;
  const auto registered = core_->RegisterServer({"ps-0", 5, {{"unix:/x"}}}, at);
  ASSERT_THAT(registered.status(), IsOk());
  ServerExchangeRequest request;
  request.incarnation = registered->incarnation;
  request.restore_error = "no file x";
  const auto look = [&](std::chrono::seconds until) {
    for (; at.now <= at_.now + until; at.now += std::chrono::seconds(1)) {
      ++request.sequence;
      core_->ExchangeServer(request, at);
    }
    v1::JobStatus status;
    FillStatus(*core_, "flights", at, &status);
    return status;
  };
  v1::JobStatus status = look(std::chrono::seconds(10));
  EXPECT_EQ(status.state(), v1::JOB_STATE_RUNNING);
  EXPECT_EQ(status.reason(), "ps-0: 1 of its partitions cannot be restored: no file x");
  EXPECT_FALSE(status.unrestorable());
  status = look(std::chrono::ceil<std::chrono::seconds>(CoreOptions().restore_timeout));
  EXPECT_EQ(status.state(), v1::JOB_STATE_FAILED);
  EXPECT_THAT(status.reason(), HasSubstr("no file x"));
  EXPECT_TRUE(status.unrestorable());
}

TEST_F(AdminAnswersTest, ShardMapHasEveryShardOfAnEpoch) {
  v1::GetShardMapResponse map;
  ASSERT_THAT(FillShardMap(*core_, {}, &map), IsOk());
  std::vector<std::string> runs;
  for (const auto& run : map.runs()) runs.push_back(run.state() + std::to_string(run.end()));
  EXPECT_EQ(map.shards(), 4u);
  EXPECT_THAT(runs, ::testing::ElementsAre("done1", "failed2", "leased4"));
  v1::GetShardMapRequest request;
  request.set_begin(4);
  EXPECT_THAT(FillShardMap(*core_, request, &map),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("4 is beyond")));
  request.set_epoch(2);
  EXPECT_THAT(FillShardMap(*core_, request, &map),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("dataset 0 has no epoch 2")));
  request.set_epoch(0);
  request.set_dataset(7);
  EXPECT_THAT(FillShardMap(*core_, request, &map),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("dataset 7")));
}

}  // namespace
}  // namespace muster
