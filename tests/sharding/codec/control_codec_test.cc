#include "sharding/codec/control_codec.h"

#include "tests/support/status_matchers.h"

namespace muster {
namespace {

using ::muster::testing::StatusIs;
using ::testing::HasSubstr;

// A field that a codec forgets comes back as its default; so every field below has a value of its
// own, and the round trip is compared as Protobuf bytes.
template <typename Struct, typename Message>
void ExpectRoundTrip(const Struct& value) {
  Message first;
  ToProto(value, &first);
  absl::StatusOr<Struct> back = FromProto(first);
  ASSERT_TRUE(back.ok()) << back.status();
  Message second;
  ToProto(*back, &second);
  EXPECT_EQ(first.DebugString(), second.DebugString());
}

// Every singular field of `message` is set, so that nothing of the struct was left out on the way
// to the wire.
void ExpectEveryFieldSet(const google::protobuf::Message& message, const std::string& path) {
  const auto* descriptor = message.GetDescriptor();
  const auto* reflection = message.GetReflection();
  for (int i = 0; i < descriptor->field_count(); ++i) {
    const auto* field = descriptor->field(i);
    const std::string name = path + "." + field->name();
    if (field->is_repeated()) {
      EXPECT_GT(reflection->FieldSize(message, field), 0) << name << " is empty";
      if (field->cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_MESSAGE &&
          reflection->FieldSize(message, field) > 0) {
        ExpectEveryFieldSet(reflection->GetRepeatedMessage(message, field, 0), name);
      }
    } else {
      EXPECT_TRUE(reflection->HasField(message, field)) << name << " is not set";
      if (field->cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_MESSAGE) {
        ExpectEveryFieldSet(reflection->GetMessage(message, field), name);
      }
    }
  }
}

ShardId Shard(uint64_t n) {
  return {DatasetId(static_cast<uint32_t>(n)), EpochIndex(static_cast<uint32_t>(n + 1)),
          ShardIndex(n + 2)};
}
LeaseToken Token(uint64_t n) {
  return LeaseToken(MasterIncarnation(3), n);
}

ShardMetrics Metrics() {
  ShardMetrics metrics{.records = 11, .rejected_records = 2, .reject_samples = {"a.csv:7: short"}};
  metrics.means["loss"] = {1.5, 2.5};
  AddScore(&metrics.aucs["auc"], 0.25, true);
  AddScore(&metrics.aucs["auc"], 0.25, false);
  return metrics;
}

PartitionMap Map() {
  PartitionMap map{.version = MapVersion(4), .restore_epoch = RestoreEpoch(5)};
  map.partitions.push_back({ServerId(1), ServerIncarnation(2), OwnerEpoch(3), OwnerEpoch(4),
                            OwnerEpoch(5), true, RestoreEpoch(6)});
  map.servers.push_back({ServerId(1), ServerIncarnation(2), "ps-1", {{"unix:/s", "127.0.0.1:1"}}});
  return map;
}

TEST(ControlCodecTest, WorkerRequestKeepsEveryField) {
  WorkerExchangeRequest request{.worker = "worker-1", .incarnation = 1, .sequence = 2};
  request.map_version = MapVersion(3);
  request.newest_grant = Token(4);
  request.held.push_back(
      {Shard(5), Token(6), RestoreEpoch(7), RunNumber(8), LeasePhase::kPushing, 9});
  request.done.push_back({Shard(10), Token(11), RestoreEpoch(12), RunNumber(13), Metrics()});
  request.returned.push_back(
      {Shard(14), Token(15), "diverged", true, HandBack::kByTrainer, "", 33});
  request.returned.push_back(
      {Shard(34), Token(35), std::nullopt, true, HandBack::kShortage, "no descriptors", 36});
  request.want = 16;
  request.times = {17, 18, 19, 20, 21, 22, 23, 24, 25};
  DatasetDelays& delays = request.delays.emplace_back(DatasetDelays{DatasetId(32), {}});
  for (const int ms : {1, 900, 50'000}) delays.delays.Add(std::chrono::milliseconds(ms));
  request.peers.push_back({ServerId(26), ServerIncarnation(27), 28, 29, 30, 31});
  v1::WorkerExchangeRequest message;
  ToProto(request, &message);
  ExpectEveryFieldSet(message, "WorkerExchangeRequest");
  ExpectRoundTrip<WorkerExchangeRequest, v1::WorkerExchangeRequest>(request);
}

TEST(ControlCodecTest, WorkerReplyKeepsEveryField) {
  WorkerExchangeReply reply{.master_incarnation = MasterIncarnation(1),
                            .directive = JobDirective::kDrain};
  reply.grants.push_back(
      {Shard(2), Token(3), RestoreEpoch(4),
       ShardWork{"train", DatasetMode::kEvaluate, "/d/a.csv", 5, 6, 7, 8, 9, 10, 11, true, 12, 13,
                 StreamWork{"clicks", TopicPartition(19), 20, 21}}});
  reply.verdicts.push_back(
      {Shard(14), Token(15), RunNumber(16), DoneCode::kReverify, RestoreEpoch(17)});
  reply.lost.push_back(Token(18));
  reply.map = Map();
  reply.heartbeat_interval = std::chrono::milliseconds(19);
  v1::WorkerExchangeReply message;
  ToProto(reply, &message);
  ExpectEveryFieldSet(message, "WorkerExchangeReply");
  ExpectRoundTrip<WorkerExchangeReply, v1::WorkerExchangeReply>(reply);
}

Manifest SomeManifest() {
  return {SnapshotNumber(MasterIncarnation(1), 2),
          DoneSeq(3),
          {{"p/1.sst", 4, SnapshotNumber(MasterIncarnation(1), 2)}}};
}

TEST(ControlCodecTest, ServerRequestKeepsEveryField) {
  ServerExchangeRequest request{.id = ServerId(1), .incarnation = ServerIncarnation(2)};
  request.sequence = 3;
  request.owned.push_back({PartitionId(4), OwnerEpoch(5), SnapshotNumber(MasterIncarnation(6), 7)});
  request.snapshots.push_back({PartitionId(8), OwnerEpoch(9), SomeManifest()});
  request.missing.push_back({PartitionId(10), OwnerEpoch(11)});
  request.newest_table = TableId(12);
  request.forget_version = 13;
  request.counters = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  request.traffic.push_back({PartitionId(1), 2, 3, 4, 5, 6, 7, 8});
  request.leaving = true;
  request.snapshot_error = "no space left";
  request.restore_error = "no such file";
  request.warm_start_error = "no such folder";
  request.fatal_error = "another export";
  v1::ServerExchangeRequest message;
  ToProto(request, &message);
  ExpectEveryFieldSet(message, "ServerExchangeRequest");
  ExpectRoundTrip<ServerExchangeRequest, v1::ServerExchangeRequest>(request);
}

TableSpec SomeTable(OptimizerSpec optimizer) {
  return {.id = TableId(1),
          .name = "t",
          .dim = 2,
          .shape = {3, 4},
          .optimizer = std::move(optimizer),
          .initializer = {InitializerSpec::Kind::kNormal, 5, 6},
          .schedule = {ScheduleSpec::Kind::kCosine, 7, 8, 9, 10},
          .warm_start_directory = "/w",
          .warm_start_hash = "h"};
}

TEST(ControlCodecTest, ServerReplyKeepsEveryField) {
  ServerExchangeReply reply{.master_incarnation = MasterIncarnation(1),
                            .unknown_incarnation = true};
  reply.tables.push_back(SomeTable(SgdSpec{}));
  reply.owns.push_back(
      {PartitionId(2), OwnerEpoch(3), OwnerEpoch(4), OwnerEpoch(5), true, SomeManifest()});
  reply.snapshots.push_back(
      {PartitionId(6), OwnerEpoch(7), DoneSeq(8), SnapshotNumber(MasterIncarnation(9), 10)});
  reply.accepted.push_back({PartitionId(11), SnapshotNumber(MasterIncarnation(12), 13)});
  reply.forget = ForgetState{.version = 14, .floor = Token(15)};
  reply.forget->shards[{DatasetId(1), EpochIndex(2)}].Add(1, 4);
  reply.heartbeat_interval = std::chrono::milliseconds(16);
  reply.drained = true;
  v1::ServerExchangeReply message;
  ToProto(reply, &message);
  ExpectRoundTrip<ServerExchangeReply, v1::ServerExchangeReply>(reply);
  EXPECT_EQ(FromProto(message)->forget->shards, reply.forget->shards);
}

TEST(ControlCodecTest, EveryOptimizerComesBackAsItWas) {
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
    const TableSpec table = SomeTable(optimizer);
    v1::Table message;
    ToProto(table, &message);
    MUSTER_ASSERT_OK_AND_ASSIGN(const TableSpec back, FromProto(message));
    EXPECT_EQ(back, table) << "optimizer " << optimizer.index();
  }
}

TEST(ControlCodecTest, WhatIsOutOfRangeIsRefusedWithItsNameAndValue) {
  v1::Table table;
  table.mutable_optimizer()->set_kind(8);
  EXPECT_THAT(FromProto(table),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("optimizer.kind: 8")));
  v1::WorkerExchangeRequest request;
  request.add_held()->set_phase(3);
  EXPECT_THAT(FromProto(request),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("held.phase: 3")));
  request.Clear();
  request.add_returned()->set_hand_back(3);
  EXPECT_THAT(FromProto(request),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("returned.hand_back: 3")));
  request.Clear();
  for (int i = 0; i <= kLeasesPerCallMax; ++i) request.add_done();
  EXPECT_THAT(FromProto(request),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("done: 100001 entries")));
  request.Clear();
  for (size_t i = 0; i <= kPeersPerCallMax; ++i) request.add_peers();
  EXPECT_THAT(FromProto(request),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("peers: 1025 entries")));
  request.Clear();
  request.add_delays();
  for (size_t i = 0; i <= DelayHistogram::kBuckets; ++i) request.mutable_delays(0)->add_buckets(1);
  EXPECT_THAT(FromProto(request), StatusIs(absl::StatusCode::kInvalidArgument,
                                           HasSubstr("delays.buckets: 117 entries")));
  v1::ServerExchangeRequest server;
  for (size_t i = 0; i <= kTrafficPerCallMax; ++i) server.add_traffic();
  EXPECT_THAT(FromProto(server),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("traffic: 4097 entries")));
  v1::ShardMetrics metrics;
  metrics.add_aucs()->add_bins(AucHistogram::kBins);
  metrics.mutable_aucs(0)->add_positives(1);
  EXPECT_THAT(FromProto(metrics),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("differ in length")));
  metrics.mutable_aucs(0)->add_negatives(1);
  EXPECT_THAT(FromProto(metrics),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("metrics.aucs.bins: 4096")));
  metrics.clear_aucs();
  for (const uint32_t bin : {7, 7}) {
    v1::Auc* auc = metrics.aucs_size() == 0 ? metrics.add_aucs() : metrics.mutable_aucs(0);
    auc->add_bins(bin);
    auc->add_positives(1);
    auc->add_negatives(1);
  }
  EXPECT_THAT(FromProto(metrics), StatusIs(absl::StatusCode::kInvalidArgument,
                                           HasSubstr("bin 7 comes after bin 7; they must ascend")));
}

TEST(ControlCodecTest, AHistogramTakesRoomForItsFilledBinsOnly) {
  v1::ShardMetrics metrics;
  metrics.add_aucs()->set_name("auc");
  EXPECT_EQ(FromProto(metrics)->aucs.at("auc").bins.capacity(), 0u);
  v1::Auc* auc = metrics.mutable_aucs(0);
  for (const uint32_t bin : {3, 5, 4'095}) {
    auc->add_bins(bin);
    auc->add_positives(bin);
    auc->add_negatives(1);
  }
  const ShardMetrics decoded = *FromProto(metrics);
  EXPECT_EQ(decoded.aucs.at("auc").bins.capacity(), 3u);
  v1::ShardMetrics again;
  ToProto(decoded, &again);
  EXPECT_EQ(again.SerializeAsString(), metrics.SerializeAsString());
}

}  // namespace
}  // namespace muster
