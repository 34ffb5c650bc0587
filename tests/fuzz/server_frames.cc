#include <cstring>
#include <memory>
#include <vector>

#include "base/check.h"
#include "base/status.h"
#include "ps/core/owned_partitions.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/fuzz/targets.h"
#include "tests/ps/core/whole_requests.h"

namespace muster::testing {
namespace {

using ps::OwnedPartitions;

TableSpec TableOf(uint32_t id, uint32_t dim, const OptimizerSpec& optimizer) {
  TableSpec table;
  table.id = TableId(id);
  table.name = fmt::format("table-{}", id);
  table.dim = dim;
  table.optimizer = optimizer;
  return table;
}

/// A lane of a job with three partitions, of which it serves two.
std::unique_ptr<OwnedPartitions> Lane() {
  auto lane = std::make_unique<OwnedPartitions>(
      OwnedPartitions::Options{.job_seed = 7, .partition_count = 3, .lane = 0, .lane_count = 1});
  lane->AddTable(TableOf(1, 2, SumSpec{}));
  lane->AddTable(TableOf(2, 3, AdagradSpec{}));
  ps::LaneCommands commands;
  commands.sequence = 1;
  for (uint32_t p = 0; p < 2; ++p) {
    commands.owns.push_back({PartitionId(p), OwnerEpoch(1), OwnerEpoch(1), {}, true, {}});
  }
  lane->Apply(commands);
  return lane;
}

/// A frame's blocks in memory that is aligned as the connection's.
struct Body {
  std::string_view directory;
  std::vector<uint64_t> keys;
  std::vector<std::byte> values;
};

bool TakeBody(const wire::Header& header, FuzzInput* input, Body* body) {
  const uint64_t key_bytes = header.keys * sizeof(uint64_t);
  if (header.directory_bytes + key_bytes + header.value_bytes > input->rest().size()) return false;
  body->directory = input->Bytes(header.directory_bytes);
  body->keys.resize(header.keys);
  const std::string_view keys = input->Bytes(key_bytes);
  if (!keys.empty()) std::memcpy(body->keys.data(), keys.data(), keys.size());
  const auto values = std::as_bytes(std::span(input->Bytes(header.value_bytes)));
  body->values.assign(values.begin(), values.end());
  return true;
}

/// Answers must be what the SDK takes for one: as many parts as were asked for, in their order.
template <typename Answer>
void CheckAnswer(const wire::Parts& parts, const Answer& reply,
                 const std::vector<uint64_t>& versions) {
  MUSTER_CHECK(versions.size() == parts.version_count());
  MUSTER_CHECK(reply.parts.size() == parts.size());
  for (size_t i = 0; i < parts.size(); ++i) {
    MUSTER_CHECK(reply.parts[i].partition == parts[i].partition);
  }
  wire::Header header;
  header.parts = static_cast<uint32_t>(parts.size());
  header.versions = static_cast<uint32_t>(versions.size());
  const std::string directory = wire::EncodeReply(reply.parts, reply.text, versions);
  header.directory_bytes = static_cast<uint32_t>(directory.size());
  MUSTER_CHECK(wire::DecodeReply(header, directory).ok());
}

void Pull(const wire::Header& header, const Body& body, OwnedPartitions* lane) {
  wire::Parts parts, again;
  if (!wire::DecodePull(header, body.directory, &parts).ok()) return;
  MUSTER_CHECK(wire::DecodePull(header, wire::EncodePull(parts), &again).ok());
  MUSTER_CHECK(again == parts);
  ps::PullReply reply;
  ps::PullWhole({.parts = parts, .keys = body.keys, .encoding = header.encoding}, lane, &reply);
  CheckAnswer(parts, reply, reply.versions);
}

void Push(const wire::Header& header, const Body& body, OwnedPartitions* lane) {
  wire::PushIdentity push, push_again;
  wire::Parts parts, again;
  if (!wire::DecodePush(header, body.directory, &push, &parts).ok()) return;
  MUSTER_CHECK(wire::DecodePush(header, wire::EncodePush(push, parts), &push_again, &again).ok());
  MUSTER_CHECK(push_again == push && again == parts);
  std::vector<float> values(body.values.size() / wire::BytesPerValue(header.encoding));
  wire::DecodeValues(
      std::span(body.values).first(values.size() * wire::BytesPerValue(header.encoding)),
      header.encoding, values);
  ps::PushReply reply;
  ps::PushWhole({.push = push, .parts = parts, .keys = body.keys, .values = values}, lane, &reply);
  CheckAnswer(parts, reply, {});
}

}  // namespace

void FuzzServerFrames(std::string_view bytes) {
  FuzzInput input(bytes);
  const std::unique_ptr<OwnedPartitions> lane = Lane();
  while (input.rest().size() >= wire::kHeaderBytes) {
    const auto head = std::as_bytes(std::span(input.Bytes(wire::kHeaderBytes)));
    const auto header = wire::DecodeHeader(head.first<wire::kHeaderBytes>());
    Body body;
    if (!header.ok() || !TakeBody(*header, &input, &body)) return;
    if (header->kind == wire::Kind::kPull) Pull(*header, body, lane.get());
    if (header->kind == wire::Kind::kPush) Push(*header, body, lane.get());
    if (header->kind == wire::Kind::kHello) (void)wire::DecodeHello(body.directory);
  }
}

}  // namespace muster::testing
