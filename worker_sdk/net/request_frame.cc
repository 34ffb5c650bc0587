#include <fmt/format.h>

#include "worker_sdk/core/request_parts.h"
#include "worker_sdk/net/internal/request_frame.h"

namespace muster::sdk::net_internal {
namespace {

std::span<const std::byte> Bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

void AppendPiece(std::span<const std::byte> piece, RequestFrame* frame) {
  if (piece.empty()) return;
  if (!frame->pieces.empty()) {
    std::span<const std::byte>& last = frame->pieces.back();
    if (last.data() + last.size() == piece.data()) {
      last = {last.data(), last.size() + piece.size()};
      return;
    }
  }
  frame->pieces.push_back(piece);
}

/// Calls `use(part, item)` for every part of the request.
template <typename Use>
void ForEachPart(const SendRequest& request, Use use) {
  for (const SendRequest::Item& item : request.items) {
    use(request.batch->plan.parts[item.part], item);
  }
}

void PutDirectory(const SendRequest& request, RequestFrame* frame) {
  WireParts(request, &frame->parts);
  if (request.push) {
    wire::EncodePush(WireIdentity(*request.push), frame->parts, &frame->directory);
  } else {
    wire::EncodePull(frame->parts, &frame->directory);
  }
}

/// Writes the header, with the checksum of the pieces. The first piece is the header itself.
void SealFrame(wire::Checksum checksum, wire::Header* header, RequestFrame* frame) {
  header->checksum_kind = checksum;
  if (checksum == wire::Checksum::kXxh3) {
    header->checksum = wire::ChecksumOf(std::span(frame->pieces).subspan(1));
  }
  wire::EncodeHeader(*header, frame->header);
}

}  // namespace

void BuildFrame(const SendRequest& request, wire::Encoding encoding, wire::Checksum checksum,
                RequestFrame* frame) {
  const RowBatch& batch = *request.batch;
  frame->batch = request.batch;
  PutDirectory(request, frame);
  frame->encoded_values.clear();
  frame->pieces.clear();
  wire::Header header;
  header.kind = request.push ? wire::Kind::kPush : wire::Kind::kPull;
  header.request = request.id.value();
  header.directory_bytes = static_cast<uint32_t>(frame->directory.size());
  header.parts = static_cast<uint32_t>(request.items.size());
  header.versions = static_cast<uint32_t>(request.versions.size());
  header.encoding = encoding;
  AppendPiece(frame->header, frame);
  AppendPiece(Bytes(frame->directory), frame);
  uint64_t floats = 0;
  ForEachPart(request, [&](const PlanPart& part, const SendRequest::Item&) {
    header.keys += part.key_count;
    floats += part.value_count;
    AppendPiece(std::as_bytes(std::span(batch.plan.keys).subspan(part.key_begin, part.key_count)),
                frame);
  });
  if (request.push) {
    header.value_bytes = floats * wire::BytesPerValue(encoding);
    if (encoding != wire::Encoding::kFloat32) frame->encoded_values.resize(header.value_bytes);
    size_t at = 0;
    ForEachPart(request, [&](const PlanPart& part, const SendRequest::Item&) {
      auto values = std::span(batch.values).subspan(part.value_begin, part.value_count);
      if (encoding == wire::Encoding::kFloat32) {
        AppendPiece(std::as_bytes(values), frame);
        return;
      }
      size_t bytes = values.size() * wire::BytesPerValue(encoding);
      wire::EncodeValues(values, encoding, std::span(frame->encoded_values).subspan(at, bytes));
      at += bytes;
    });
    AppendPiece(frame->encoded_values, frame);
  }
  SealFrame(checksum, &header, frame);
}

std::string HelloFrame(const wire::Hello& hello) {
  const std::string directory = wire::EncodeHello(hello);
  const wire::Header header{.kind = wire::Kind::kHello,
                            .directory_bytes = static_cast<uint32_t>(directory.size()),
                            .checksum_kind = wire::Checksum::kXxh3,
                            .checksum = wire::ChecksumOf(directory, {}, {})};
  return std::string(reinterpret_cast<const char*>(&header), sizeof(header)) + directory;
}

namespace {

/// How many floats a part has in an answer if it is `ok`. `*version` is the number of groups with
/// versions in all parts before it.
uint64_t FloatsOf(const SendRequest& request, const PlanPart& part, bool ok,
                  std::span<const uint64_t> answered, size_t* version) {
  if (request.versions.empty()) return ok ? part.value_count : 0;
  uint64_t floats = 0;
  for (const PlanGroup& group :
       std::span(request.batch->plan.groups).subspan(part.group_begin, part.group_count)) {
    wire::Group asked;
    uint64_t now = wire::kNoVersion;
    if (group.dense) {
      asked.version = request.versions[*version];
      now = answered[(*version)++];
    }
    if (ok && !asked.Unchanged(now)) floats += group.floats();
  }
  return floats;
}

}  // namespace

absl::Status CheckReply(const SendRequest& request, const wire::Header& header,
                        const wire::Reply& reply, uint64_t* floats) {
  wire::Kind expected = request.push ? wire::Kind::kPushReply : wire::Kind::kPullReply;
  if (header.kind != expected) {
    return absl::InvalidArgumentError(fmt::format("request {} was answered with a frame of kind {}",
                                                  header.request, static_cast<int>(header.kind)));
  }
  if (reply.parts.size() != request.items.size()) {
    return absl::InvalidArgumentError(fmt::format("request {} of {} parts was answered with {}",
                                                  header.request, request.items.size(),
                                                  reply.parts.size()));
  }
  if (reply.versions.size() != request.versions.size()) {
    return absl::InvalidArgumentError(
        fmt::format("request {} with {} versions was answered with {}", header.request,
                    request.versions.size(), reply.versions.size()));
  }
  *floats = 0;
  size_t version = 0;
  for (size_t i = 0; i < reply.parts.size(); ++i) {
    const PlanPart& part = request.batch->plan.parts[request.items[i].part];
    if (reply.parts[i].partition != part.partition.value()) {
      return absl::InvalidArgumentError(
          fmt::format("request {} was answered for partition {} instead of {}", header.request,
                      reply.parts[i].partition, part.partition.value()));
    }
    if (request.push) continue;
    const bool ok = reply.parts[i].code == wire::PartCode::kOk;
    *floats += FloatsOf(request, part, ok, reply.versions, &version);
  }
  uint64_t expected_bytes = *floats * wire::BytesPerValue(header.encoding);
  if (header.value_bytes != expected_bytes) {
    return absl::InvalidArgumentError(
        fmt::format("request {} was answered with {} bytes of values instead of {}", header.request,
                    header.value_bytes, expected_bytes));
  }
  return absl::OkStatus();
}

}  // namespace muster::sdk::net_internal
