// Writes one input per kind of message for every target, to begin a corpus with: after a change of
// format, fuzz_seeds tests/fuzz/corpus, then run the targets. README.md has the steps.
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/file.h"
#include "base/status.h"
#include "collectives/frames.h"
#include "proto/exported/npy.h"
#include "proto/fields/encode.h"
#include "proto/wire/frame.h"
#include "ps/snapshot/image_codec.h"
#include "tests/master/core/core_fixture.h"
#include "tests/master/journal/sample_records.h"
#include "tests/ps/snapshot/sample_image.h"
#include "tests/worker_sdk/core/core_fixture.h"

namespace muster::testing {
namespace {

std::string Sized(std::string_view bytes) {
  MUSTER_CHECK(bytes.size() < 65536);
  std::string text;
  text += static_cast<char>(bytes.size() & 0xff);
  text += static_cast<char>(bytes.size() >> 8);
  return text.append(bytes);
}

std::string Text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string Frame(wire::Header header, const std::string& directory,
                  const std::vector<uint64_t>& keys, const std::vector<float>& values) {
  header.directory_bytes = static_cast<uint32_t>(directory.size());
  header.keys = keys.size();
  header.value_bytes = values.size() * wire::BytesPerValue(header.encoding);
  std::vector<std::byte> encoded(header.value_bytes);
  wire::EncodeValues(values, header.encoding, encoded);
  std::array<std::byte, wire::kHeaderBytes> head;
  wire::EncodeHeader(header, head);
  return Text(head) + directory + Text(std::as_bytes(std::span(keys))) + Text(encoded);
}

std::string ServerFrames(wire::Encoding encoding) {
  const wire::Parts pull(1, 1, {{.table = 1, .keys = 2}, {.table = 2, .keys = 1}});
  const wire::Parts by_version(1, 1,
                               {{.table = 1, .keys = 2, .version = 1},
                                {.table = 2, .keys = 1, .version = wire::kNoVersion}});
  const wire::Parts push(1, 1, {{.table = 1, .keys = 1}, {.table = 2, .keys = 1}});
  const wire::PushIdentity identity{.token = LeaseToken(MasterIncarnation(1), 3).value()};
  const std::string hello = wire::EncodeHello({.job = "job",
                                               .job_id = "id-1",
                                               .peer = "worker-0",
                                               .software = "muster 0.1.0",
                                               .ring_bytes_max = 1u << 18});
  return Frame({.kind = wire::Kind::kHello}, hello, {}, {}) +
         Frame({.kind = wire::Kind::kPush, .request = 1, .parts = 1, .encoding = encoding},
               wire::EncodePush(identity, push), {7, 9}, {1, 2, 3, 4, 5}) +
         Frame({.kind = wire::Kind::kPull, .request = 2, .parts = 1, .encoding = encoding},
               wire::EncodePull(pull), {7, 8, 9}, {}) +
         Frame({.kind = wire::Kind::kPull,
                .request = 3,
                .parts = 1,
                .versions = 2,
                .encoding = encoding},
               wire::EncodePull(by_version), {7, 8, 9}, {});
}

/// Answers to the four requests of the target: rows to the pulls, an OK to the pushes.
std::string WorkerFrames(wire::PartCode code) {
  std::string frames = Frame({.kind = wire::Kind::kHelloReply},
                             wire::EncodeHelloReply({1, sdk::kPartitions, 0, 1, 1u << 18}), {}, {});
  for (uint64_t request = 1; request <= 4; ++request) {
    std::vector<wire::PartReply> parts;
    for (uint32_t p = (request - 1) % 2; p < sdk::kPartitions; p += 2) {
      parts.push_back({p, p == 2 ? code : wire::PartCode::kOk, p == 4});
    }
    const bool pull = request <= 2;
    size_t floats = 0;
    for (const auto& part : parts) floats += pull && part.code == wire::PartCode::kOk ? 2 : 0;
    frames += Frame({.kind = pull ? wire::Kind::kPullReply : wire::Kind::kPushReply,
                     .request = request,
                     .parts = static_cast<uint32_t>(parts.size())},
                    wire::EncodeReply(parts, "why"), {}, std::vector<float>(floats, 0.5f));
  }
  return frames + Frame({.kind = wire::Kind::kError}, wire::EncodeError("no"), {}, {});
}

std::string SnapshotImage(ps::SnapshotKind kind) {
  std::string text;
  const absl::Status encoded =
      ps::EncodeImage({PartitionId(3), OwnerEpoch(2), SnapshotNumber(MasterIncarnation(1), 5)},
                      ps::SampleImage(kind), [&](std::string_view key, std::string_view value) {
                        text += Sized(key) + Sized(value);
                        return absl::OkStatus();
                      });
  MUSTER_CHECK(encoded.ok());
  return text;
}

std::string JournalRecords() {
  std::string text;
  for (const Mutation& record : SampleRecords()) {
    const StoreChange change = Encode(record);
    text += Sized(change.key) + Sized(*change.value);
  }
  return text + Sized(kHeaderKey) +
         Sized(EncodeHeader({"job", {{"spec.seed", "1"}}, {{"data", "abc"}}, "id"}));
}

template <fields::Listed Value>
std::string Call(char kind, const Value& value) {
  return kind + Sized(fields::Encode(value));
}

std::string MasterRequests() {
  WorkerExchangeRequest worker;
  worker.worker = "worker-0";
  worker.incarnation = 7;
  worker.sequence = 9;
  worker.want = 1;
  const ShardId shard{DatasetId(0), EpochIndex(0), ShardIndex(0)};
  const LeaseToken token(MasterIncarnation(1), 1);
  worker.held = {{shard, token, RestoreEpoch(1), RunNumber(0), LeasePhase::kPushing, 2}};
  worker.done = {{shard, token, RestoreEpoch(1), RunNumber(0), {.records = 10}}};
  worker.returned = {{shard, LeaseToken(MasterIncarnation(1), 2), true, "because", false}};
  ServerExchangeRequest server;
  server.incarnation = ServerIncarnation(1);
  server.sequence = 1;
  server.owned = {{PartitionId(0), OwnerEpoch(1), {}}, {PartitionId(1), OwnerEpoch(1), {}}};
  server.snapshots = {{PartitionId(0),
                       OwnerEpoch(1),
                       {SnapshotNumber(MasterIncarnation(1), 1), DoneSeq(1), {{"f", 1}}}}};
  server.missing = {{PartitionId(1), OwnerEpoch(1)}};
  TableSpec table;
  table.name = "t";
  table.dim = 4;
  return Call(0, worker) + Call(2, RegisterServerRequest{"ps-0", 9, {{"unix:/a"}}}) +
         Call(1, server) + Call(3, table) + std::string("\x04") + Sized(std::string(100, 'x')) +
         Call(1, server) + std::string("\x06") + Sized("") + Call(0, worker);
}

std::string MasterAnswers() {
  WorkerExchangeReply reply;
  reply.master_incarnation = MasterIncarnation(1);
  ShardGrant grant;
  grant.token = LeaseToken(MasterIncarnation(1), 1);
  grant.restore_epoch = RestoreEpoch(1);
  grant.work.dataset_name = "data";
  grant.work.files = {{.path = "/data.txt"}};
  grant.work.runs = {{.record_count = 8}};
  grant.work.record_count = 8;
  grant.work.minibatch_size = 4;
  grant.work.minibatch_count = 2;
  reply.grants = {grant};
  reply.map = sdk::MapOf(1, 1);
  WorkerExchangeReply second;
  second.master_incarnation = MasterIncarnation(1);
  second.verdicts = {
      {grant.shard, grant.token, RunNumber(0), DoneCode::kReverify, RestoreEpoch(2)}};
  second.lost = {grant.token};
  second.map_changes = {reply.map->version,
                        MapVersion(2),
                        RestoreEpoch(2),
                        {{PartitionId(0), reply.map->partitions[0]}},
                        {reply.map->servers[0]}};
  return Call(3, reply) + std::string("\x02") + Sized("") + Call(3, second);
}

std::string GroupFrame(collectives::FrameHeader header, std::string_view payload) {
  header.payload_bytes = payload.size();
  std::array<std::byte, collectives::kFrameHeaderBytes> head;
  collectives::EncodeFrameHeader(header, head);
  return Text(head) + std::string(payload);
}

/// Every message, and all that the buckets of the target wait for.
std::string GroupFrames() {
  using collectives::FrameKind;
  std::string text =
      GroupFrame({.kind = FrameKind::kHello},
                 collectives::EncodeMessage(collectives::Hello{.job_id = "id-1",
                                                               .worker = "worker-0",
                                                               .incarnation = 7,
                                                               .to_worker = "worker-1",
                                                               .members = 4,
                                                               .to_rank = 1,
                                                               .ring_bytes_max = 1u << 20}));
  text += GroupFrame({.kind = FrameKind::kHelloReply},
                     collectives::EncodeMessage(collectives::HelloReply{"no", true, 1u << 20}));
  text +=
      GroupFrame({.kind = FrameKind::kFetch},
                 collectives::EncodeMessage(collectives::FetchRequest{.number = 3, .bytes = 9}));
  text += GroupFrame({.kind = FrameKind::kNotFetched},
                     collectives::EncodeMessage(collectives::FetchError{true, "no stripe"}));
  const std::string bytes(40, 'x');
  for (const uint64_t lent : {0u, 1u}) {
    for (const uint64_t peer : {2u, 1u}) {
      text += GroupFrame({.kind = FrameKind::kChunk,
                          .lineage = LineageNumber(lent),
                          .step = StepNumber(peer),
                          .bucket = static_cast<uint32_t>(2 * lent),
                          .elements = 10},
                         bytes);
    }
    // Parts of 4, 3 and 3 elements, in slices of 2 at most.
    uint32_t chunk = 0;
    for (const size_t elements : {2u, 1u, 2u, 1u, 2u, 2u, 2u, 1u}) {
      text += GroupFrame({.kind = FrameKind::kChunk,
                          .lineage = LineageNumber(lent),
                          .step = StepNumber(2),
                          .bucket = static_cast<uint32_t>(1 + 2 * lent),
                          .chunk = chunk++,
                          .elements = 10},
                         bytes.substr(0, elements * sizeof(float)));
    }
  }
  return text;
}

void Write(const std::filesystem::path& corpus, const std::string& target, const std::string& name,
           const std::string& input) {
  std::filesystem::create_directories(corpus / target);
  const absl::Status written = WriteFileAtomically(corpus / target / name, input);
  MUSTER_CHECK_MSG(written.ok(), written.ToString());
}

void WriteAll(const std::filesystem::path& corpus) {
  Write(corpus, "server_frames", "float32", ServerFrames(wire::Encoding::kFloat32));
  Write(corpus, "server_frames", "bfloat16", ServerFrames(wire::Encoding::kBfloat16));
  Write(corpus, "worker_frames", "ok", WorkerFrames(wire::PartCode::kOk));
  Write(corpus, "worker_frames", "retry", WorkerFrames(wire::PartCode::kRetry));
  Write(corpus, "lines", "plain", std::string("\x01\x02\x07\x09", 4) + "a,b\n1,2\r\n\n3,4\n5,6");
  Write(corpus, "snapshot_image", "base", SnapshotImage(ps::SnapshotKind::kBase));
  Write(corpus, "snapshot_image", "delta", SnapshotImage(ps::SnapshotKind::kDelta));
  Write(corpus, "journal_records", "all", JournalRecords());
  Write(corpus, "master_requests", "all", MasterRequests());
  Write(corpus, "master_answers", "grant", MasterAnswers());
  Write(corpus, "npy", "float32", EncodeNpyHeader({kNpyFloat32, {2, 3}}) + std::string(24, '\x01'));
  Write(corpus, "group_frames", "all", GroupFrames());
  Write(corpus, "npy", "uint64", EncodeNpyHeader({kNpyUint64, {2}}) + std::string(16, '\x01'));
}

}  // namespace
}  // namespace muster::testing

int main(int argc, char** argv) {
  if (argc != 2 || argv[1][0] == '-') {
    std::fputs(
        "Usage: fuzz_seeds FOLDER\n\nWrites inputs to begin corpora with.\n\n"
        "Example: fuzz_seeds tests/fuzz/corpus\n",
        stderr);
    return 2;
  }
  muster::testing::WriteAll(argv[1]);
  return 0;
}
