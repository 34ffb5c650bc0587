#include "worker_sdk/control/control_codec.h"

#include "base/random.h"
#include "proto/control.pb.h"
#include "sharding/codec/control_codec.h"
#include "tests/support/status_matchers.h"

namespace muster::sdk {
namespace {

using muster::testing::IsOk;
using muster::testing::StatusIs;
using ::testing::HasSubstr;

const ShardId kShard{DatasetId(2), EpochIndex(3), ShardIndex(1ull << 40)};
const LeaseToken kToken = LeaseToken(MasterIncarnation(4), 5);

WorkerExchangeRequest FullRequest() {
  WorkerExchangeRequest request;
  request.worker = "worker-1";
  request.incarnation = ~0ull;
  request.sequence = 7;
  request.map_version = MapVersion(8);
  request.newest_grant = kToken;
  request.held = {{kShard, kToken, RestoreEpoch(9), RunNumber(2), LeasePhase::kPushing, 16}, {}};
  DoneReport done{kShard, kToken, RestoreEpoch(9), RunNumber(2), {}};
  done.metrics.records = 4096;
  done.metrics.rejected_records = 2;
  done.metrics.reject_samples = {"a.csv:7: no label", ""};
  done.metrics.means["logloss"] = {-1.5, 4096};
  AddScore(&done.metrics.aucs["auc"], 0.25, true);
  AddScore(&done.metrics.aucs["auc"], 0.75, false);
  request.done = {done};
  request.returned = {{kShard, kToken, "NaN in table t", true},
                      {kShard, kToken, std::nullopt, false},
                      {kShard, kToken, std::nullopt, false, HandBack::kByTrainer, "", 9},
                      {kShard, kToken, std::nullopt, false, HandBack::kShortage, "no files", 0}};
  request.want = 3;
  request.times = {100, 20, 30, 40, 50, 60, 70, 80, 90};
  request.peers = {{ServerId(1), ServerIncarnation(2), 3, 4, 5, 6}, {}};
  request.delays = {{DatasetId(0), {}}, {DatasetId(7), {}}};
  for (const int ms : {0, 3, 4, 900, 90'000}) {
    request.delays[1].delays.Add(std::chrono::milliseconds(ms));
  }
  return request;
}

TEST(ControlCodecTest, AnExchangeRequestReadsTheSameInTheGeneratedClasses) {
  v1::WorkerExchangeRequest expected, parsed;
  ToProto(FullRequest(), &expected);
  ASSERT_TRUE(parsed.ParseFromString(EncodeExchangeRequest(FullRequest())));
  EXPECT_EQ(parsed.DebugString(), expected.DebugString());
}

TEST(ControlCodecTest, EveryOptimizerReadsTheSameInTheGeneratedClasses) {
  TableSpec table{TableId(0),
                  "embedding",
                  16,
                  {3, 5},
                  {},
                  {InitializerSpec::Kind::kNormal, 1, 2},
                  {ScheduleSpec::Kind::kCosine, 10, 20, 0.5f, 0.25f},
                  "/warm",
                  "abc"};
  const OptimizerSpec optimizers[] = {SumSpec{},
                                      SgdSpec{.5f, .25f},
                                      MomentumSpec{.5f, .9f, true, .1f},
                                      AdagradSpec{.5f, .1f, .2f},
                                      RowwiseAdagradSpec{.5f, .1f, .2f},
                                      AdamSpec{.5f, .8f, .9f, .1f},
                                      AdamWSpec{.5f, .8f, .9f, .1f, .2f},
                                      FtrlSpec{.5f, .8f, .9f, .1f}};
  for (const OptimizerSpec& optimizer : optimizers) {
    table.optimizer = optimizer;
    v1::RegisterTableRequest parsed;
    ASSERT_TRUE(parsed.ParseFromString(EncodeRegisterTableRequest("worker-0", table)));
    EXPECT_EQ(parsed.worker(), "worker-0");
    MUSTER_ASSERT_OK_AND_ASSIGN(TableSpec read, FromProto(parsed.table()));
    EXPECT_EQ(read, table) << optimizer.index();
  }
}

TEST(ControlCodecTest, HelloBothWays) {
  v1::HelloRequest request;
  ASSERT_TRUE(request.ParseFromString(EncodeHelloRequest("worker-2", 77, 3, "0.1")));
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
  MUSTER_ASSERT_OK_AND_ASSIGN(HelloAnswer answer,
                              DecodeHelloResponse(response.SerializeAsString()));
  EXPECT_EQ(answer.job, "flights");
  EXPECT_EQ(answer.seed, 7u);
  EXPECT_EQ(answer.partition_count, 256u);
  EXPECT_EQ(answer.heartbeat_interval_ms, 500u);
  EXPECT_EQ(answer.unacknowledged_minibatches_max, 4u);
  EXPECT_EQ(answer.prefetch_minibatches, 2u);
  EXPECT_EQ(answer.shards_ahead, 3u);
  EXPECT_EQ(answer.wire_encoding, "float16");
  EXPECT_EQ(answer.lease_duration_ms, 10'000u);
  EXPECT_EQ(JobOf(answer), (JobIdentity{"id-1", "flights"}));
  v1::RegisterTableResponse registered;
  registered.set_id(12);
  MUSTER_ASSERT_OK_AND_ASSIGN(TableId id,
                              DecodeRegisterTableResponse(registered.SerializeAsString()));
  EXPECT_EQ(id, TableId(12));
}

WorkerExchangeReply FullReply() {
  WorkerExchangeReply reply;
  reply.master_incarnation = MasterIncarnation(4);
  reply.directive = JobDirective::kDrain;
  ShardGrant grant{kShard, kToken, RestoreEpoch(9), {}};
  grant.work = {
      "train",   DatasetMode::kEvaluate, "/data/a.csv", 1000, ~0ull, 10, 20, 30, 40, 5, true, 99,
      1ull << 50};
  reply.grants = {grant};
  reply.verdicts = {{kShard, kToken, RunNumber(2), DoneCode::kReverify, RestoreEpoch(11)}, {}};
  reply.lost = {kToken, LeaseToken::FromValue(1)};
  PartitionMap map;
  map.version = MapVersion(12);
  map.restore_epoch = RestoreEpoch(13);
  map.partitions = {{ServerId(1), ServerIncarnation(2), OwnerEpoch(3), OwnerEpoch(4), OwnerEpoch(5),
                     true, RestoreEpoch(6)},
                    {}};
  map.servers = {{ServerId(1), ServerIncarnation(2), "ps-1", {{"unix:/a", "127.0.0.1:1"}, {}}}};
  reply.map = map;
  reply.heartbeat_interval = std::chrono::milliseconds(500);
  return reply;
}

void ExpectEqual(const WorkerExchangeReply& a, const WorkerExchangeReply& b) {
  v1::WorkerExchangeReply left, right;
  ToProto(a, &left);
  ToProto(b, &right);
  EXPECT_EQ(left.DebugString(), right.DebugString());
}

TEST(ControlCodecTest, AnExchangeReplyFromTheGeneratedClassesReadsTheSame) {
  v1::WorkerExchangeReply message;
  ToProto(FullReply(), &message);
  MUSTER_ASSERT_OK_AND_ASSIGN(WorkerExchangeReply read,
                              DecodeExchangeReply(message.SerializeAsString()));
  ExpectEqual(read, FullReply());
  EXPECT_EQ(read.map, FullReply().map);
  EXPECT_EQ(read.grants[0].work, FullReply().grants[0].work);
}

TEST(ControlCodecTest, UnknownFieldsAreSkippedAndLimitsKept) {
  v1::WorkerExchangeReply message;
  ToProto(FullReply(), &message);
  std::string unknown(
      "\xfa\x07\x03"
      "abc\xf0\x07\x05",
      9);  // fields 127 (bytes) and 126 (varint)
  MUSTER_ASSERT_OK_AND_ASSIGN(WorkerExchangeReply read,
                              DecodeExchangeReply(message.SerializeAsString() + unknown));
  ExpectEqual(read, FullReply());
  message.mutable_grants(0)->mutable_work()->set_path(std::string(kTextBytesMax + 1, 'x'));
  EXPECT_THAT(DecodeExchangeReply(message.SerializeAsString()),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("4097 bytes of text")));
  message.Clear();
  message.set_directive(3);
  EXPECT_THAT(DecodeExchangeReply(message.SerializeAsString()),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("directive 3")));
  message.Clear();
  message.add_grants()->mutable_work()->set_record_count(3);
  EXPECT_THAT(DecodeExchangeReply(message.SerializeAsString()),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("minibatches of 0")));
}

TEST(ControlCodecTest, DamagedBytesNeverCrash) {
  v1::WorkerExchangeReply message;
  ToProto(FullReply(), &message);
  std::string good = message.SerializeAsString();
  Rng rng(5);
  int refused = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string bad = good;
    for (uint64_t n = 1 + rng.Below(4); n > 0; --n) {
      bad[rng.Below(bad.size())] = static_cast<char>(rng.Next());
    }
    if (rng.Below(4) == 0) bad.resize(rng.Below(bad.size()));
    refused += DecodeExchangeReply(bad).ok() ? 0 : 1;
  }
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace muster::sdk
