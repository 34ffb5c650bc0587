#include "master/service/admin_answers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "proto/fields/encode.h"
#include "tests/master/core/core_fixture.h"
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
    plan.size_of = [](EpochIndex, ShardIndex) { return ShardSize{10, 2}; };
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
    work.files = {{.path = "/data/\xff.csv"}};
    work.runs = {{.first_record = 10 * shard.index.value(), .record_count = 10}};
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
  const JobStatus status = StatusOf(*core_, "flights", {later_, WallTime(0)});
  EXPECT_EQ(status.name, "flights");
  EXPECT_EQ(status.state, JobState::kRunning);
  ASSERT_EQ(status.datasets[0].epochs.size(), 2u);
  const EpochStatus& epoch = status.datasets[0].epochs[0];
  EXPECT_EQ(epoch.records_expected, 40u);
  EXPECT_EQ(epoch.records_done, 10u);
  EXPECT_EQ(epoch.records_committed, 0u);
  EXPECT_EQ(epoch.shards.total, 4u);
  EXPECT_EQ(epoch.shards.todo, 0u);
  EXPECT_EQ(epoch.shards.done, 1u);
  EXPECT_EQ(epoch.shards.failed, 1u);
  EXPECT_EQ(epoch.shards.leased, 2u);
  EXPECT_EQ(status.progress.records_expected, 80u);
  EXPECT_EQ(status.progress.records_done, 10u);
  EXPECT_EQ(status.progress.records_committed, 0u);
  EXPECT_EQ(status.datasets[0].epochs[1].shards.leased, 1u);
  EXPECT_EQ(status.datasets[0].epochs[1].shards.todo, 3u);
  ASSERT_EQ(status.nodes.size(), 1u);
  EXPECT_EQ(status.nodes[0].heartbeat_age_ms, 2000u);
  EXPECT_EQ(status.nodes[0].worker->shards_held, 3u);
  EXPECT_EQ(status.uptime_ms, 2000u);
  EXPECT_THAT(status.last_event, HasSubstr("shard-failed worker-0: shard 0/0/1"));
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
  const JobStatus status = StatusOf(core, "flights", {later_, WallTime(0)});
  const EpochStatus& shown = status.datasets[0].epochs[0];
  std::map<std::string, double> values = shown.metrics;
  EXPECT_DOUBLE_EQ(values["logloss"], 0.75);
  EXPECT_FALSE(values.contains("nothing")) << "all its weights are 0";
  EXPECT_DOUBLE_EQ(values["auc"], 1);
  EXPECT_EQ(shown.rejected_records, 2u);
  EXPECT_EQ(shown.reject_samples[0], "a.csv:3: ?");
  ASSERT_EQ(status.metric_trends.size(), 4u) << "an AUC has three values";
  EXPECT_EQ(status.metric_trends[0].metric, "auc");
  EXPECT_DOUBLE_EQ(status.metric_trends[0].latest, 1);
  EXPECT_LT(fields::Encode(status).size(), 2'000u);
}

TEST(StatusFactsTest, AStatusIsOfTheMomentAtWhichItsFactsWereTaken) {
  testing::CoreFixture job;
  job.options.snapshot_interval = {};
  job.Start();
  job.Register(1);
  job.ExchangeServer(job.ServerRequest());
  const auto commit = [&job](double loss) {
    const std::vector<ShardGrant> grants = job.Want(1).grants;
    WorkerExchangeRequest request = job.Request();
    job.Hold(grants, &request);
    const ShardGrant& grant = grants.at(0);
    DoneReport done{grant.shard, grant.token, grant.restore_epoch, {}, {}};
    done.metrics.records = 10;
    done.metrics.means["loss"] = {loss, 1};
    request.done = {done};
    job.Exchange(request);
    job.Snapshot();
  };
  const auto loss_of = [](StatusFacts facts) {
    return Complete(std::move(facts)).datasets[0].epochs[0].metrics["loss"];
  };
  commit(1);
  const StatusFacts first = StatusFactsOf(*job.core, "flights", job.At());
  commit(3);
  EXPECT_DOUBLE_EQ(loss_of(first), 1) << "what came later is not in it";
  EXPECT_DOUBLE_EQ(loss_of(StatusFactsOf(*job.core, "flights", job.At())), 2);
}

TEST_F(AdminAnswersTest, AShardOfRecordNumbersHasNoFile) {
  const auto work_of = [](const ShardId&) {
    return ShardWork{.record_count = 12, .runs = {{.first_record = 40, .record_count = 12}}};
  };
  MUSTER_ASSERT_OK_AND_ASSIGN(const ShardPage page,
                              ShardsOf(*core_, later_, work_of, v1::ListShardsRequest()));
  EXPECT_EQ(page.shards[0].source, "");
  EXPECT_EQ(page.shards[0].first_record, 40u);
  EXPECT_EQ(page.shards[0].records, 12u);
  EXPECT_EQ(page.shards[0].first_line, 0u);
}

TEST_F(AdminAnswersTest, ShardsComePageByPage) {
  v1::ListShardsRequest request;
  MUSTER_ASSERT_OK_AND_ASSIGN(const ShardPage all, ShardsOf(*core_, later_, WorkOf, request));
  EXPECT_EQ(all.total, 5u);
  ASSERT_EQ(all.shards.size(), 5u);
  EXPECT_EQ(all.shards[0].state, "failed");
  EXPECT_THAT(all.shards[0].reasons[0], HasSubstr("bad luck"));
  EXPECT_EQ(all.shards[0].id, "0/0/1");
  EXPECT_EQ(all.shards[0].source, "/data/?.csv");
  EXPECT_EQ(all.shards[0].first_record, 10u);
  EXPECT_EQ(all.shards[0].records, 10u);
  EXPECT_EQ(all.shards[0].first_line, 12u) << "the header is line 1";
  EXPECT_EQ(all.shards[1].worker, "worker-0");
  EXPECT_EQ(all.shards[1].age_ms, 2000u);
  EXPECT_EQ(all.shards[4].state, "done");
  request.set_offset(1);
  request.set_limit(2);
  MUSTER_ASSERT_OK_AND_ASSIGN(const ShardPage page, ShardsOf(*core_, later_, WorkOf, request));
  EXPECT_EQ(page.total, 5u);
  ASSERT_EQ(page.shards.size(), 2u);
  EXPECT_EQ(page.shards[0].token, all.shards[1].token);
  request.set_limit(10'001);
  EXPECT_THAT(ShardsOf(*core_, later_, WorkOf, request).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("10001 is more than")));
}

TEST_F(AdminAnswersTest, EventsComeAfterASequence) {
  v1::ListEventsRequest request;
  MUSTER_ASSERT_OK_AND_ASSIGN(const MasterEvents all, EventsOf(*core_, request));
  ASSERT_GE(all.events.size(), 2);
  EXPECT_EQ(all.events[0].wall_us, 7u);
  request.set_after(all.events[0].sequence);
  MUSTER_ASSERT_OK_AND_ASSIGN(const MasterEvents rest, EventsOf(*core_, request));
  EXPECT_EQ(rest.events.size(), all.events.size() - 1);
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
  const JobStatus status = StatusOf(core, "flights", {later_, WallTime(0)});
  const DatasetStatus& dataset = status.datasets[0];
  EXPECT_EQ(dataset.epochs_total, 5'000u);
  ASSERT_EQ(dataset.epochs.size(), 1'000u);
  EXPECT_EQ(dataset.epochs[0].epoch, 2'002u);
  EXPECT_EQ(dataset.epochs[998].records_done, 40u);
  EXPECT_EQ(dataset.epochs[999].epoch, 3'001u) << "the one that comes next";
  EXPECT_EQ(dataset.omitted_records_done, 2'002u * 40);
  EXPECT_EQ(dataset.omitted_records_committed, 2'002u * 40);
  EXPECT_EQ(status.progress.records_committed, 3'001u * 40);
  EXPECT_EQ(dataset.omitted_records_expected, 4'000u * 40);
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
    MUSTER_ASSERT_OK_AND_ASSIGN(MasterEvents events, EventsOf(core, events_request));
    Trim(&events);
    EXPECT_LT(fields::Encode(events).size(), kMessageBytesMax);
    for (const MasterEvent& event : events.events) {
      EXPECT_EQ(event.sequence, ++seen);
      events_request.set_after(event.sequence);
    }
    more = events.events.size() > 0;
  }
  EXPECT_EQ(seen, 2'000u);
  v1::ListShardsRequest shards_request;
  uint64_t shards_seen = 0;
  for (bool more = true; more;) {
    shards_request.set_offset(shards_seen);
    MUSTER_ASSERT_OK_AND_ASSIGN(ShardPage shards, ShardsOf(core, later_, WorkOf, shards_request));
    Trim(&shards);
    EXPECT_LT(fields::Encode(shards).size(), kMessageBytesMax);
    EXPECT_EQ(shards.total, 1'000u);
    shards_seen += shards.shards.size();
    more = shards.shards.size() > 0;
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
  MUSTER_ASSERT_OK_AND_ASSIGN(const PartitionList all, PartitionsOf(core, later_, {}));
  EXPECT_EQ(all.total, 3u);
  ASSERT_EQ(all.partitions.size(), 3u);
  EXPECT_EQ(all.partitions[0].owner, "ps-0");
  EXPECT_EQ(all.partitions[0].state, "serving");
  EXPECT_EQ(all.partitions[0].snapshot_files, 2u);
  EXPECT_EQ(all.partitions[0].snapshot_bytes, 10u);
  EXPECT_EQ(all.partitions[0].snapshot_age_ms, std::nullopt) << "of an earlier master: not known";
  EXPECT_EQ(all.partitions[0].traffic.service_us, 5u);
  std::map<std::string, std::string> states;
  for (const auto& partition : all.partitions) states[partition.owner] = partition.state;
  EXPECT_EQ(states["ps-1"], "unowned");
  v1::ListPartitionsRequest page;
  page.set_offset(1);
  page.set_limit(1);
  MUSTER_ASSERT_OK_AND_ASSIGN(const PartitionList one, PartitionsOf(core, later_, page));
  ASSERT_EQ(one.partitions.size(), 1u);
  EXPECT_EQ(one.partitions[0].partition, 1u);
  page.set_offset(99);
  MUSTER_ASSERT_OK_AND_ASSIGN(const PartitionList none, PartitionsOf(core, later_, page));
  EXPECT_EQ(none.partitions.size(), 0u);
  page.set_limit(10'001);
  EXPECT_THAT(PartitionsOf(core, later_, page).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("10001 is more than")));
  const JobStatus status = StatusOf(core, "flights", {later_, WallTime(0)});
  EXPECT_EQ(status.nodes[0].server->lanes, 2u);
  EXPECT_EQ(status.nodes[0].server->counters.service_us, 8u);
  EXPECT_EQ(status.nodes[0].drain, DrainState::kNone);
  ASSERT_THAT(core.DrainNode("ps-0", {}, at_).status(), IsOk());
  const JobStatus drained = StatusOf(core, "flights", {later_, WallTime(0)});
  EXPECT_EQ(drained.nodes[0].drain, DrainState::kDrained);
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
    return StatusOf(*core_, "flights", at);
  };
  JobStatus status = look(std::chrono::seconds(10));
  EXPECT_EQ(status.state, JobState::kRunning);
  EXPECT_EQ(status.reason, "ps-0: 1 of its partitions cannot be restored: no file x");
  EXPECT_FALSE(status.unrestorable);
  status = look(std::chrono::ceil<std::chrono::seconds>(CoreOptions().restore_timeout));
  EXPECT_EQ(status.state, JobState::kFailed);
  EXPECT_THAT(status.reason, HasSubstr("no file x"));
  EXPECT_TRUE(status.unrestorable);
}

TEST_F(AdminAnswersTest, AServerThatNeverCallsIsTheReason) {
  core_->ReportNode({.node = "ps-0", .role = NodeRole::kServer, .start = StartNumber(1)}, at_);
  EXPECT_EQ(StatusOf(*core_, "flights", at_).reason, "");
  const StepTime later{at_.now + std::chrono::seconds(14), at_.wall};
  EXPECT_THAT(StatusOf(*core_, "flights", later).reason,
              HasSubstr("ps-0 runs, but has not called for 14 s: "));
}

TEST_F(AdminAnswersTest, OutputsThatCannotBeWrittenAreTheReasonWhileNothingElseIsDone) {
  StepTime at = at_;
  WorkerExchangeRequest request;
  request.worker = "worker-0";
  request.incarnation = 1;
  request.sequence = 2;
  for (const ShardGrant& grant : {grants_[2], grants_[3]}) {
    request.held.push_back({grant.shard, grant.token, grant.restore_epoch, {}, {}, 1});
  }
  const auto reason_after = [&](int seconds) {
    at.now += std::chrono::seconds(seconds);
    ++request.sequence;
    EXPECT_THAT(core_->ExchangeWorker(request, at).status(), IsOk());
    return StatusOf(*core_, "flights", at).reason;
  };
  request.unwritten = "no answer from s3://b";
  EXPECT_EQ(reason_after(0), "");
  EXPECT_EQ(reason_after(4), "") << "it may pass";
  EXPECT_EQ(reason_after(1),
            "no outputs were written for 0:05, because worker-0 cannot write its outputs: no "
            "answer from s3://b");
  const ShardGrant& done = grants_[2];
  request.done = {{done.shard, done.token, done.restore_epoch, {}, {}}};
  reason_after(0);
  EXPECT_EQ(reason_after(1), "") << "the job gets on";
  EXPECT_THAT(reason_after(6), HasSubstr("for 0:06, because worker-0"));
  request.unwritten.clear();
  EXPECT_EQ(reason_after(1), "");
}

TEST_F(AdminAnswersTest, ShardMapHasEveryShardOfAnEpoch) {
  MUSTER_ASSERT_OK_AND_ASSIGN(const ShardMap map, ShardMapOf(*core_, {}));
  std::vector<std::string> runs;
  for (const auto& run : map.runs) runs.push_back(run.state + std::to_string(run.end));
  EXPECT_EQ(map.shards, 4u);
  EXPECT_THAT(runs, ::testing::ElementsAre("done1", "failed2", "leased4"));
  EXPECT_EQ(map.runs[1].begin, 1u);
  v1::GetShardMapRequest request;
  request.set_begin(4);
  EXPECT_THAT(ShardMapOf(*core_, request).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("4 is beyond")));
  request.set_epoch(2);
  EXPECT_THAT(ShardMapOf(*core_, request).status(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("dataset 0 has no epoch 2")));
  request.set_epoch(0);
  request.set_dataset(7);
  EXPECT_THAT(ShardMapOf(*core_, request).status(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("dataset 7")));
}

}  // namespace
}  // namespace muster
