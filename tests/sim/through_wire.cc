#include "tests/sim/through_wire.h"

#include <utility>

#include "base/check.h"
#include "proto/control.pb.h"
#include "proto/fields/generated.h"
#include "worker_sdk/core/request_parts.h"

namespace muster::sim {
namespace {

template <typename Proto, typename Value>
Value ThroughProto(const Value& value) {
  Proto message;
  ToProto(value, &message);
  Proto parsed;
  MUSTER_CHECK(parsed.ParseFromString(message.SerializeAsString()));
  absl::StatusOr<Value> back = FromProto<Value>(parsed);
  MUSTER_CHECK_MSG(back.ok(), back.status().ToString());
  return *std::move(back);
}

template <typename Parts>
wire::Header HeaderOf(wire::Kind kind, const Parts& parts, const DataMessage& message,
                      const std::string& directory, size_t versions) {
  wire::Header header;
  header.kind = kind;
  header.directory_bytes = static_cast<uint32_t>(directory.size());
  header.parts = static_cast<uint32_t>(parts.size());
  header.versions = static_cast<uint32_t>(versions);
  header.keys = message.keys.size();
  header.value_bytes = message.values.size() * sizeof(float);
  std::vector<std::byte> bytes(wire::kHeaderBytes);
  wire::EncodeHeader(header, std::span<std::byte, wire::kHeaderBytes>(bytes));
  absl::StatusOr<wire::Header> decoded =
      wire::DecodeHeader(std::span<const std::byte, wire::kHeaderBytes>(bytes));
  MUSTER_CHECK_MSG(decoded.ok(), decoded.status().ToString());
  return *decoded;
}

}  // namespace

DataMessage MessageOf(const sdk::SendRequest& request) {
  const sdk::RowBatch& batch = *request.batch;
  DataMessage message;
  sdk::WireParts(request, &message.parts);
  if (request.push) message.push = sdk::WireIdentity(*request.push);
  for (const sdk::SendRequest::Item& item : request.items) {
    const sdk::PlanPart& part = batch.plan.parts[item.part];
    const auto keys = batch.plan.keys.begin() + static_cast<std::ptrdiff_t>(part.key_begin);
    message.keys.insert(message.keys.end(), keys,
                        keys + static_cast<std::ptrdiff_t>(part.key_count));
    if (!request.push) continue;
    const auto values = batch.values.begin() + static_cast<std::ptrdiff_t>(part.value_begin);
    message.values.insert(message.values.end(), values,
                          values + static_cast<std::ptrdiff_t>(part.value_count));
  }
  return message;
}

DataMessage ThroughWire(const DataMessage& message) {
  DataMessage back = message;
  absl::Status decoded;
  if (message.push) {
    const std::string directory = wire::EncodePush(*message.push, message.parts);
    decoded = wire::DecodePush(HeaderOf(wire::Kind::kPush, message.parts, message, directory, 0),
                               directory, &*back.push, &back.parts);
  } else {
    const std::string directory = wire::EncodePull(message.parts);
    decoded = wire::DecodePull(HeaderOf(wire::Kind::kPull, message.parts, message, directory,
                                        message.parts.version_count()),
                               directory, &back.parts);
  }
  MUSTER_CHECK_MSG(decoded.ok(), decoded.ToString());
  return back;
}

DataReply ThroughWire(const DataReply& reply, bool push) {
  const std::string directory = wire::EncodeReply(reply.parts, reply.text, reply.versions);
  auto back = wire::DecodeReply(HeaderOf(push ? wire::Kind::kPushReply : wire::Kind::kPullReply,
                                         reply.parts, {}, directory, reply.versions.size()),
                                directory);
  MUSTER_CHECK_MSG(back.ok(), back.status().ToString());
  return {std::move(back->parts), std::move(back->text), reply.rows, std::move(back->versions)};
}

WorkerExchangeRequest ThroughWire(const WorkerExchangeRequest& request) {
  return ThroughProto<v1::WorkerExchangeRequest>(request);
}
WorkerExchangeReply ThroughWire(const WorkerExchangeReply& reply) {
  return ThroughProto<v1::WorkerExchangeReply>(reply);
}
GroupExchangeRequest ThroughWire(const GroupExchangeRequest& request) {
  return ThroughProto<v1::GroupExchangeRequest>(request);
}
GroupExchangeReply ThroughWire(const GroupExchangeReply& reply) {
  return ThroughProto<v1::GroupExchangeReply>(reply);
}
ServerExchangeRequest ThroughWire(const ServerExchangeRequest& request) {
  return ThroughProto<v1::ServerExchangeRequest>(request);
}
ServerExchangeReply ThroughWire(const ServerExchangeReply& reply) {
  return ThroughProto<v1::ServerExchangeReply>(reply);
}

void FillWork(ShardWork* work) {
  if (work->stream.has_value()) return;
  work->record_count = work->minibatch_size = work->minibatch_count = 1;
  work->files = {{.path = "/data", .bytes = 1}};
  work->runs = {{.record_count = 1, .byte_end = 1}};
}

}  // namespace muster::sim
