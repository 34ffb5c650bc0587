#include "sharding/codec/control_codec.h"

#include <fmt/format.h>

#include <functional>

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
    if (field->name() == "optimizer") continue;  // has the fields of its kind only
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
  for (const int ms : {0, 1, 900, 50'000}) delays.delays.Add(std::chrono::milliseconds(ms));
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
  ExpectEveryFieldSet(message, "ServerExchangeReply");
  ExpectRoundTrip<ServerExchangeReply, v1::ServerExchangeReply>(reply);
  EXPECT_EQ(FromProto(message)->forget->shards, reply.forget->shards);
}

TEST(ControlCodecTest, ARegistrationKeepsEveryField) {
  v1::RegisterServerRequest request;
  ToProto(
      RegisterServerRequest{"ps-1", 2, {{"unix:/s", "127.0.0.1:1"}, {"unix:/t"}}, StartNumber(3)},
      &request);
  MUSTER_ASSERT_OK_AND_ASSIGN(const RegisterServerRequest asked, FromProto(request));
  EXPECT_EQ(asked.name, "ps-1");
  EXPECT_EQ(asked.nonce, 2u);
  EXPECT_EQ(asked.lanes,
            (std::vector<std::vector<std::string>>{{"unix:/s", "127.0.0.1:1"}, {"unix:/t"}}));
  EXPECT_EQ(asked.start, StartNumber(3));
  v1::RegisterServerReply reply;
  ToProto(RegisterServerReply{MasterIncarnation(4), ServerId(5), ServerIncarnation(6)}, &reply);
  const RegisterServerReply given = FromProto(reply);
  EXPECT_EQ(given.master_incarnation, MasterIncarnation(4));
  EXPECT_EQ(given.id, ServerId(5));
  EXPECT_EQ(given.incarnation, ServerIncarnation(6));
}

TEST(ControlCodecTest, ATableKeepsEveryField) {
  const TableSpec table = SomeTable(SgdSpec{1, 2});
  v1::Table message;
  ToProto(table, &message);
  EXPECT_EQ(FromProto(message).value(), table);
  ExpectEveryFieldSet(message, "Table");
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

/// A field of a message, the largest number of it that is taken, and how the message is decoded
/// with `number` of it: entries, bytes, or the value of an enum.
struct Limit {
  std::string field;
  uint32_t last;
  std::function<absl::Status(uint32_t number)> decode;
};
template <typename Message>
Limit Entries(std::string field, uint32_t last, void (*add)(Message*)) {
  return {std::move(field), last, [add](uint32_t number) {
            Message message;
            for (uint32_t i = 0; i < number; ++i) add(&message);
            return FromProto(message).status();
          }};
}
template <typename Message>
Limit Value(std::string field, uint32_t last, void (*set)(Message*, uint32_t)) {
  return {std::move(field), last, [set](uint32_t number) {
            Message message;
            set(&message, number);
            return FromProto(message).status();
          }};
}
template <typename Message>
Limit Bytes(std::string field, size_t last, void (*set)(Message*, std::string)) {
  return {std::move(field), static_cast<uint32_t>(last), [set](uint32_t number) {
            Message message;
            set(&message, std::string(number, 'x'));
            return FromProto(message).status();
          }};
}

TEST(ControlCodecTest, EveryLimitIsTheLastThatIsTaken) {
  using Asks = v1::WorkerExchangeRequest;
  using Told = v1::WorkerExchangeReply;
  using Serves = v1::ServerExchangeRequest;
  using Commands = v1::ServerExchangeReply;
  const Limit limits[] = {
      Entries<Asks>("held", 100'000, [](Asks* m) { m->add_held(); }),
      Entries<Asks>("done", 100'000, [](Asks* m) { m->add_done(); }),
      Entries<Asks>("returned", 100'000, [](Asks* m) { m->add_returned(); }),
      Entries<Asks>("peers", 1'024, [](Asks* m) { m->add_peers(); }),
      Entries<Asks>("delays", kDelaysPerCallMax, [](Asks* m) { m->add_delays(); }),
      Entries<Asks>(
          "delays.buckets", 116,
          [](Asks* m) {
            (m->delays_size() == 0 ? m->add_delays() : m->mutable_delays(0))->add_buckets(1);
          }),
      Value<Asks>("want", 100'000, [](Asks* m, uint32_t n) { m->set_want(n); }),
      Value<Asks>("held.phase", 2, [](Asks* m, uint32_t n) { m->add_held()->set_phase(n); }),
      Value<Asks>("returned.hand_back", 2,
                  [](Asks* m, uint32_t n) { m->add_returned()->set_hand_back(n); }),
      Bytes<Asks>("worker", 256, [](Asks* m, std::string s) { m->set_worker(s); }),
      Bytes<Asks>("returned.reason", 4'096,
                  [](Asks* m, std::string s) { m->add_returned()->set_reason(s); }),
      Value<Told>("directive", 2, [](Told* m, uint32_t n) { m->set_directive(n); }),
      Value<Told>("verdicts.code", 2, [](Told* m, uint32_t n) { m->add_verdicts()->set_code(n); }),
      Value<Told>("work.mode", 1,
                  [](Told* m, uint32_t n) { m->add_grants()->mutable_work()->set_mode(n); }),
      Bytes<Told>("work.path", 4'096,
                  [](Told* m, std::string s) { m->add_grants()->mutable_work()->set_path(s); }),
      Entries<Serves>("owned", 65'536, [](Serves* m) { m->add_owned(); }),
      Entries<Serves>("traffic", 4'096, [](Serves* m) { m->add_traffic(); }),
      Bytes<Serves>("snapshot_error", 4'096,
                    [](Serves* m, std::string s) { m->set_snapshot_error(s); }),
      Entries<Commands>("tables", 4'096, [](Commands* m) { m->add_tables(); }),
      Entries<Commands>("owns", 65'536, [](Commands* m) { m->add_owns(); }),
      Entries<v1::Manifest>("manifest.files", 1'024, [](v1::Manifest* m) { m->add_files(); }),
      Entries<v1::PartitionMap>("map.servers", 4'096,
                                [](v1::PartitionMap* m) { m->add_servers(); }),
      Entries<v1::RegisterServerRequest>("lanes", 256,
                                         [](v1::RegisterServerRequest* m) { m->add_lanes(); }),
      Entries<v1::Table>("table.shape", 16, [](v1::Table* m) { m->add_shape(1); }),
      Value<v1::Table>("initializer.kind", 3,
                       [](v1::Table* m, uint32_t n) { m->mutable_initializer()->set_kind(n); }),
      Value<v1::Table>("schedule.kind", 2,
                       [](v1::Table* m, uint32_t n) { m->mutable_schedule()->set_kind(n); }),
      Value<v1::Table>("optimizer.kind", 7,
                       [](v1::Table* m, uint32_t n) { m->mutable_optimizer()->set_kind(n); }),
      Entries<v1::ShardMetrics>("metrics.means", 256, [](v1::ShardMetrics* m) { m->add_means(); }),
      Entries<v1::ShardMetrics>("metrics.reject_samples", 10,
                                [](v1::ShardMetrics* m) { m->add_reject_samples(); }),
  };
  for (const Limit& limit : limits) {
    EXPECT_TRUE(limit.decode(limit.last).ok()) << limit.field << ": " << limit.decode(limit.last);
    EXPECT_THAT(
        limit.decode(limit.last + 1),
        StatusIs(absl::StatusCode::kInvalidArgument,
                 ::testing::StartsWith(fmt::format("{}: {} ", limit.field, limit.last + 1))));
  }
}

TEST(ControlCodecTest, WhatIsOutOfRangeIsRefusedWithItsNameAndValue) {
  v1::ServerExchangeReply reply;
  v1::Interval* interval = reply.mutable_forget()->add_shards()->add_intervals();
  interval->set_begin(3);
  interval->set_end(3);
  EXPECT_THAT(FromProto(reply),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("[3, 3) is empty")));
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
