#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "proto/control.pb.h"
#include "proto/fields/generated.h"
#include "proto/messages/control.h"
#include "proto/messages/worker_hello.h"
#include "tests/support/status_matchers.h"

// Checks that control_test.cc cannot make, because it takes its expectations from the lists: the
// numbers of the limits, the member for each name of the .proto file, and the reasons for refused
// values.
namespace muster {
namespace {

using ::muster::testing::StatusIs;
using ::testing::HasSubstr;

TEST(ControlValuesTest, HelloBothWays) {
  v1::HelloRequest request;
  ToProto(HelloRequest{"worker-2", 77, "0.1", StartNumber(3)}, &request);
  EXPECT_EQ(request.worker(), "worker-2");
  EXPECT_EQ(request.incarnation(), 77u);
  EXPECT_EQ(request.start(), 3u);
  EXPECT_EQ(request.sdk_version(), "0.1");
  v1::HelloResponse response;
  response.set_job("flights");
  response.set_seed(7);
  response.set_partition_count(256);
  response.set_heartbeat_interval_ms(500);
  response.set_unacknowledged_minibatches_max(4);
  response.set_prefetch_minibatches(2);
  response.set_shards_ahead(3);
  response.set_wire_encoding("float16");
  response.set_lease_duration_ms(10'000);
  response.set_job_id("id-1");
  response.set_group(true);
  response.set_group_directory("/snapshots");
  v1::TopicSource* topic = response.add_topics();
  topic->set_dataset("clicks");
  (*topic->mutable_properties())["a"] = "b";
  (*topic->mutable_secrets())["c"] = "env:D";
  MUSTER_ASSERT_OK_AND_ASSIGN(const HelloResponse hello, FromProto<HelloResponse>(response));
  EXPECT_EQ(hello.job, "flights");
  EXPECT_EQ(hello.seed, 7u);
  EXPECT_EQ(hello.partition_count, 256u);
  EXPECT_EQ(hello.heartbeat_interval_ms, 500u);
  EXPECT_EQ(hello.unacknowledged_minibatches_max, 4u);
  EXPECT_EQ(hello.prefetch_minibatches, 2u);
  EXPECT_EQ(hello.shards_ahead, 3u);
  EXPECT_EQ(hello.wire_encoding, "float16");
  EXPECT_EQ(hello.lease_duration_ms, 10'000u);
  EXPECT_EQ(JobOf(hello), (JobIdentity{"id-1", "flights"}));
  EXPECT_TRUE(hello.group);
  EXPECT_EQ(hello.group_directory, "/snapshots");
  EXPECT_EQ(hello.topics.at(0).dataset, "clicks");
  EXPECT_EQ(hello.topics[0].properties.at("a"), "b");
  EXPECT_EQ(hello.topics[0].secrets.at("c"), "env:D");
  v1::RegisterTableResponse registered;
  registered.set_id(12);
  EXPECT_EQ(FromProto<RegisterTableResponse>(registered)->id, TableId(12));
}

TEST(ControlValuesTest, ARegistrationBothWays) {
  v1::RegisterServerRequest request;
  ToProto(RegisterServerRequest{"ps-1", 2, {{"unix:/s", "127.0.0.1:1"}, {}}, StartNumber(3), "0.1"},
          &request);
  EXPECT_EQ(request.name(), "ps-1");
  EXPECT_EQ(request.nonce(), 2u);
  EXPECT_EQ(request.lanes_size(), 2);
  EXPECT_EQ(request.lanes(0).addresses(1), "127.0.0.1:1");
  EXPECT_EQ(request.start(), 3u);
  EXPECT_EQ(request.version(), "0.1");
  v1::RegisterServerReply reply;
  reply.set_master_incarnation(4);
  reply.set_id(5);
  reply.set_incarnation(6);
  reply.set_job("flights");
  reply.set_job_id("id-1");
  reply.set_seed(7);
  reply.set_partition_count(8);
  reply.set_snapshot_directory("/s\xff");
  reply.set_heartbeat_interval_ms(9);
  MUSTER_ASSERT_OK_AND_ASSIGN(const RegisterServerReply given,
                              FromProto<RegisterServerReply>(reply));
  EXPECT_EQ(given.master_incarnation, MasterIncarnation(4));
  EXPECT_EQ(given.id, ServerId(5));
  EXPECT_EQ(given.incarnation, ServerIncarnation(6));
  EXPECT_EQ(JobOf(given), (JobIdentity{"id-1", "flights"}));
  EXPECT_EQ(given.seed, 7u);
  EXPECT_EQ(given.partition_count, 8u);
  EXPECT_EQ(given.snapshot_directory, "/s\xff") << "a name of a file need not be UTF-8";
  EXPECT_EQ(given.heartbeat_interval, std::chrono::milliseconds(9));
}

TEST(ControlValuesTest, EveryOptimizerComesBackAsItWas) {
  const OptimizerSpec optimizers[] = {
      SumSpec{},
      SgdSpec{1, 2},
      MomentumSpec{1, 2, true, 3},
      AdagradSpec{1, 2, 3},
      RowwiseAdagradSpec{1, 2, 3},
      AdamSpec{1, 2, 3, 4},
      AdamWSpec{1, 2, 3, 4, 5},
      FtrlSpec{1, 2, 3, 4},
  };
  for (const OptimizerSpec& optimizer : optimizers) {
    const TableSpec table{.id = TableId(1),
                          .name = "t",
                          .dim = 2,
                          .shape = {3, 4},
                          .optimizer = optimizer,
                          .initializer = {InitializerSpec::Kind::kNormal, 5, 6},
                          .schedule = {ScheduleSpec::Kind::kCosine, 7, 8, 9, 10},
                          .warm_start_directory = "/w",
                          .warm_start_hash = "h"};
    v1::RegisterTableRequest message;
    ToProto(RegisterTableRequest{"worker-0", table}, &message);
    EXPECT_EQ(message.worker(), "worker-0");
    EXPECT_EQ(message.table().optimizer().kind(), optimizer.index());
    MUSTER_ASSERT_OK_AND_ASSIGN(const TableSpec back, FromProto<TableSpec>(message.table()));
    EXPECT_EQ(back, table) << "optimizer " << optimizer.index();
  }
  v1::Optimizer ftrl;
  ToProto(FtrlSpec{1, 2, 3, 4}, &ftrl);
  EXPECT_EQ(ftrl.learning_rate(), 1);
  EXPECT_EQ(ftrl.beta1(), 2);
  EXPECT_EQ(ftrl.lambda1(), 3);
  EXPECT_EQ(ftrl.lambda2(), 4);
}

ShardGrant SomeGrant() {
  return {ShardId{DatasetId(1), EpochIndex(2), ShardIndex(3)},
          LeaseToken(MasterIncarnation(4), 5),
          RestoreEpoch(6),
          {.record_count = 1,
           .minibatch_size = 1,
           .minibatch_count = 1,
           .files = {{.path = "/data/\xff.csv", .hash = ~0ull}},
           .runs = {{.record_count = 1}}}};
}

TEST(ControlValuesTest, AReplyComesBackAsItWas) {
  WorkerExchangeReply reply;
  reply.directive = JobDirective::kDrain;
  reply.grants = {SomeGrant()};
  reply.verdicts = {{{}, {}, RunNumber(2), DoneCode::kReverify, RestoreEpoch(11)}, {}};
  reply.lost = {reply.grants[0].token, LeaseToken::FromValue(1), {}};
  PartitionMap& map = reply.map.emplace();
  map.version = MapVersion(12);
  map.partitions = {{ServerId(1), ServerIncarnation(2), OwnerEpoch(3), OwnerEpoch(4), OwnerEpoch(5),
                     true, RestoreEpoch(6)},
                    {}};
  map.servers = {{ServerId(1), ServerIncarnation(2), "ps-1", {{"unix:/a", "127.0.0.1:1"}, {}}}};
  v1::WorkerExchangeReply message;
  ToProto(reply, &message);
  EXPECT_EQ(message.verdicts_size(), 2);
  MUSTER_ASSERT_OK_AND_ASSIGN(const auto read, FromProto<WorkerExchangeReply>(message));
  EXPECT_EQ(read.map, reply.map);
  EXPECT_EQ(read.lost, reply.lost);
  EXPECT_EQ(read.grants[0].work, reply.grants[0].work);
  EXPECT_EQ(read.verdicts[0].code, DoneCode::kReverify);
  // An empty message is not the same as a missing one.
  reply.map.emplace();
  ToProto(reply, &message);
  EXPECT_TRUE(message.has_map());
  EXPECT_TRUE(FromProto<WorkerExchangeReply>(message)->map.has_value());
  reply.map.reset();
  ToProto(reply, &message);
  EXPECT_FALSE(message.has_map());
  EXPECT_FALSE(FromProto<WorkerExchangeReply>(message)->map.has_value());
}

TEST(ControlValuesTest, WhatPartitionsMayForgetComesBackAsItWas) {
  ServerExchangeReply reply;
  reply.forget.emplace();
  reply.forget->shards[{DatasetId(1), EpochIndex(2)}].Add(1, 4);
  reply.forget->shards[{DatasetId(1), EpochIndex(2)}].Add(7, 9);
  reply.forget->shards[{DatasetId(2), EpochIndex(0)}];
  reply.forget->epochs[DatasetId(1)].Add(0, 2);
  reply.forget->epochs[DatasetId(3)].Add(5, 9);
  MUSTER_ASSERT_OK_AND_ASSIGN(const auto read,
                              fields::Decode<ServerExchangeReply>(fields::Encode(reply)));
  EXPECT_EQ(read.forget->shards, reply.forget->shards);
  EXPECT_EQ(read.forget->epochs, reply.forget->epochs);
}

/// A field of a message, the largest number of it that is taken, and how the message is decoded
/// with `number` of it: entries, bytes, or the value of a number.
struct Limit {
  std::string field;
  uint32_t last;
  std::function<absl::Status(uint32_t number)> decode;
};
template <typename Struct>
Limit Entries(std::string field, uint32_t last, void (*add)(Struct*)) {
  return {std::move(field), last, [add](uint32_t number) {
            Struct message{};
            for (uint32_t i = 0; i < number; ++i) add(&message);
            return fields::Decode<Struct>(fields::Encode(message)).status();
          }};
}
template <typename Struct>
Limit Value(std::string field, uint32_t last, void (*set)(Struct*, uint32_t)) {
  return {std::move(field), last, [set](uint32_t number) {
            Struct message{};
            set(&message, number);
            return fields::Decode<Struct>(fields::Encode(message)).status();
          }};
}
template <typename Struct>
Limit Bytes(std::string field, uint32_t last, void (*set)(Struct*, std::string)) {
  return {std::move(field), last, [set](uint32_t number) {
            Struct message{};
            set(&message, std::string(number, 'x'));
            return fields::Decode<Struct>(fields::Encode(message)).status();
          }};
}

void ExpectLimits(const std::vector<Limit>& limits) {
  for (const Limit& limit : limits) {
    EXPECT_TRUE(limit.decode(limit.last).ok()) << limit.field << ": " << limit.decode(limit.last);
    EXPECT_THAT(
        limit.decode(limit.last + 1),
        StatusIs(absl::StatusCode::kInvalidArgument,
                 ::testing::StartsWith(fmt::format("{}: {} ", limit.field, limit.last + 1))));
  }
}

TEST(ControlValuesTest, LimitsOfWhatWorkersSay) {
  using Asks = WorkerExchangeRequest;
  using Table = RegisterTableRequest;
  ExpectLimits({
      Entries<Asks>("held", 100'000, [](Asks* m) { m->held.emplace_back(); }),
      Entries<Asks>("done", 100'000, [](Asks* m) { m->done.emplace_back(); }),
      Entries<Asks>("returned", 100'000, [](Asks* m) { m->returned.emplace_back(); }),
      Entries<Asks>("peers", 1'024, [](Asks* m) { m->peers.emplace_back(); }),
      Entries<Asks>("delays", kDelaysPerCallMax, [](Asks* m) { m->delays.emplace_back(); }),
      Value<Asks>("want", 100'000, [](Asks* m, uint32_t n) { m->want = n; }),
      Value<Asks>(
          "held.phase", 2,
          [](Asks* m, uint32_t n) { m->held.emplace_back().phase = static_cast<LeasePhase>(n); }),
      Value<Asks>("returned.hand_back", 2,
                  [](Asks* m, uint32_t n) {
                    m->returned.emplace_back().hand_back = static_cast<HandBack>(n);
                  }),
      Bytes<Asks>("worker", 256, [](Asks* m, std::string s) { m->worker = s; }),
      Bytes<Asks>("returned.reason", 4'096,
                  [](Asks* m, std::string s) { m->returned.emplace_back().reason = s; }),
      Bytes<Asks>("unwritten", 4'096, [](Asks* m, std::string s) { m->unwritten = s; }),
      Entries<ShardMetrics>("means", 256,
                            [](ShardMetrics* m) { m->means[std::to_string(m->means.size())]; }),
      Bytes<ShardMetrics>("means.name", 256, [](ShardMetrics* m, std::string s) { m->means[s]; }),
      Entries<ShardMetrics>("aucs", 256,
                            [](ShardMetrics* m) { m->aucs[std::to_string(m->aucs.size())]; }),
      Bytes<ShardMetrics>("aucs.name", 256, [](ShardMetrics* m, std::string s) { m->aucs[s]; }),
      Entries<ShardMetrics>("reject_samples", 10,
                            [](ShardMetrics* m) { m->reject_samples.emplace_back(); }),
      Bytes<ShardMetrics>("reject_samples", 4'096,
                          [](ShardMetrics* m, std::string s) { m->reject_samples = {s}; }),
      Entries<Table>("table.shape", 16, [](Table* m) { m->table.shape.push_back(1); }),
      Bytes<Table>("table.name", 256, [](Table* m, std::string s) { m->table.name = s; }),
      Bytes<Table>("table.warm_start_directory", 4'096,
                   [](Table* m, std::string s) { m->table.warm_start_directory = s; }),
      Bytes<Table>("table.warm_start_hash", 256,
                   [](Table* m, std::string s) { m->table.warm_start_hash = s; }),
      Value<Table>("table.initializer.kind", 3,
                   [](Table* m, uint32_t n) {
                     m->table.initializer.kind = static_cast<InitializerSpec::Kind>(n);
                   }),
      Value<Table>("table.schedule.kind", 2,
                   [](Table* m, uint32_t n) {
                     m->table.schedule.kind = static_cast<ScheduleSpec::Kind>(n);
                   }),
  });
}

TEST(ControlValuesTest, LimitsOfWhatServersSay) {
  using Serves = ServerExchangeRequest;
  using Registers = RegisterServerRequest;
  ExpectLimits({
      Entries<Serves>("owned", 65'536, [](Serves* m) { m->owned.emplace_back(); }),
      Entries<Serves>("snapshots", 65'536, [](Serves* m) { m->snapshots.emplace_back(); }),
      Entries<Serves>("missing", 65'536, [](Serves* m) { m->missing.emplace_back(); }),
      Entries<Serves>("traffic", 4'096, [](Serves* m) { m->traffic.emplace_back(); }),
      Bytes<Serves>("snapshot_error", 4'096,
                    [](Serves* m, std::string s) { m->snapshot_error = s; }),
      Bytes<Serves>("restore_error", 4'096, [](Serves* m, std::string s) { m->restore_error = s; }),
      Bytes<Serves>("warm_start_error", 4'096,
                    [](Serves* m, std::string s) { m->warm_start_error = s; }),
      Bytes<Serves>("fatal_error", 4'096, [](Serves* m, std::string s) { m->fatal_error = s; }),
      Entries<Manifest>("files", 1'024, [](Manifest* m) { m->files.emplace_back(); }),
      Bytes<Manifest>("files.name", 256,
                      [](Manifest* m, std::string s) { m->files.emplace_back().name = s; }),
      Bytes<Registers>("name", 256, [](Registers* m, std::string s) { m->name = s; }),
      Entries<Registers>("lanes", 256, [](Registers* m) { m->lanes.emplace_back(); }),
      Entries<Registers>("lanes.addresses", 8,
                         [](Registers* m) {
                           m->lanes.resize(1);
                           m->lanes[0].emplace_back();
                         }),
      Bytes<Registers>("lanes.addresses", 256,
                       [](Registers* m, std::string s) { m->lanes = {{s}}; }),
  });
}

TEST(ControlValuesTest, LimitsOfWhatTheMasterSays) {
  using Told = WorkerExchangeReply;
  using Commands = ServerExchangeReply;
  ExpectLimits({
      Value<Told>("directive", 2,
                  [](Told* m, uint32_t n) { m->directive = static_cast<JobDirective>(n); }),
      Entries<Told>("grants", 100'000, [](Told* m) { m->grants.push_back(SomeGrant()); }),
      Entries<Told>("verdicts", 100'000, [](Told* m) { m->verdicts.emplace_back(); }),
      Entries<Told>("lost", 100'000, [](Told* m) { m->lost.emplace_back(); }),
      Value<Told>(
          "verdicts.code", 2,
          [](Told* m, uint32_t n) { m->verdicts.emplace_back().code = static_cast<DoneCode>(n); }),
      Value<Told>("grants.work.mode", 2,
                  [](Told* m, uint32_t n) {
                    m->grants = {SomeGrant()};
                    m->grants[0].work.mode = static_cast<DatasetMode>(n);
                  }),
      Bytes<Told>("grants.work.files.path", 4'096,
                  [](Told* m, std::string s) {
                    m->grants = {SomeGrant()};
                    m->grants[0].work.files[0].path = s;
                  }),
      Bytes<Told>("grants.work.dataset_name", 256,
                  [](Told* m, std::string s) {
                    m->grants = {SomeGrant()};
                    m->grants[0].work.dataset_name = s;
                  }),
      Bytes<Told>("grants.work.stream.topic", 256,
                  [](Told* m, std::string s) {
                    m->grants = {SomeGrant()};
                    m->grants[0].work.stream = {.topic = s};
                  }),
      Entries<PartitionMap>("partitions", 65'536,
                            [](PartitionMap* m) { m->partitions.emplace_back(); }),
      Entries<PartitionMap>("servers", 4'096, [](PartitionMap* m) { m->servers.emplace_back(); }),
      Bytes<PartitionMap>(
          "servers.name", 256,
          [](PartitionMap* m, std::string s) { m->servers.emplace_back().name = s; }),
      Entries<Commands>("tables", 4'096, [](Commands* m) { m->tables.emplace_back(); }),
      Entries<Commands>("owns", 65'536, [](Commands* m) { m->owns.emplace_back(); }),
      Entries<Commands>("snapshots", 65'536, [](Commands* m) { m->snapshots.emplace_back(); }),
      Entries<Commands>("accepted", 65'536, [](Commands* m) { m->accepted.emplace_back(); }),
  });
}

TEST(ControlValuesTest, WhatIsOutOfRangeIsRefusedWithItsNameAndValue) {
  const auto refusal = [](const auto& value) {
    return fields::Decode<std::decay_t<decltype(value)>>(fields::Encode(value)).status();
  };
  const auto says = [](const std::string& text) {
    return StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(text));
  };
  ShardMetrics metrics;
  metrics.aucs["auc"] = {{ScoreHistogram::kBins}, {1}, {}};
  EXPECT_THAT(refusal(metrics),
              says("aucs: 'auc': 1 bins, 1 positives and 0 negatives differ in length"));
  metrics.aucs["auc"] = {{ScoreHistogram::kBins}, {1}, {1}};
  EXPECT_THAT(refusal(metrics), says("bin 4096 is not a known one"));
  metrics.aucs["auc"] = {{7, 7}, {1, 1}, {1, 1}};
  EXPECT_THAT(refusal(metrics), says("bin 7 comes after bin 7; they must ascend"));

  v1::ServerExchangeReply commands;
  v1::Interval* interval = commands.mutable_forget()->add_shards()->add_intervals();
  interval->set_begin(3);
  interval->set_end(3);
  EXPECT_THAT(FromProto<ServerExchangeReply>(commands).status(), says("[3, 3) is empty"));
  v1::Table table;
  table.mutable_optimizer()->set_kind(7);
  EXPECT_THAT(FromProto<TableSpec>(table).status(), testing::IsOk());
  table.mutable_optimizer()->set_kind(8);
  EXPECT_THAT(FromProto<TableSpec>(table).status(),
              says("optimizer.kind: 8 is not a known value (0 to 7)"));
  v1::WorkerExchangeRequest request;
  v1::DatasetDelays* delays = request.add_delays();
  for (int i = 0; i < 116; ++i) delays->add_buckets(1);
  EXPECT_THAT(FromProto<WorkerExchangeRequest>(request).status(), testing::IsOk());
  delays->add_buckets(1);
  EXPECT_THAT(FromProto<WorkerExchangeRequest>(request).status(),
              says("delays.buckets: 117 entries are more than the limit of 116"));
}

TEST(ControlValuesTest, AHistogramTakesRoomForItsFilledBinsOnly) {
  ShardMetrics metrics;
  metrics.aucs["auc"];
  const auto decoded = [&metrics] {
    return fields::Decode<ShardMetrics>(fields::Encode(metrics))->aucs.at("auc");
  };
  EXPECT_EQ(decoded().bins.capacity(), 0u);
  metrics.aucs["auc"] = {{3, 5, 4'095}, {3, 5, 4'095}, {1, 1, 1}};
  EXPECT_EQ(decoded(), metrics.aucs["auc"]);
  EXPECT_EQ(decoded().bins.capacity(), 3u);
  EXPECT_EQ(decoded().positives.capacity(), 3u);
  EXPECT_EQ(decoded().negatives.capacity(), 3u);
}

}  // namespace
}  // namespace muster
