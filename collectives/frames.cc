#include "collectives/frames.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cstring>

#include "base/status.h"
#include "base/words/limits.h"
#include "proto/fields/decode.h"
#include "proto/fields/encode.h"
#include "proto/wire/frame.h"

namespace muster::collectives {
namespace {

static_assert(std::endian::native == std::endian::little, "the wire is little-endian");

// Offsets of the header's fields.
constexpr size_t kMagicAt = 0;
constexpr size_t kVersionAt = 4;
constexpr size_t kKindAt = 5;
constexpr size_t kTypeAt = 6;
constexpr size_t kCheckedAt = 7;
constexpr size_t kLineageAt = 8;
constexpr size_t kAttemptAt = 16;
constexpr size_t kStepAt = 24;
constexpr size_t kBucketAt = 32;
constexpr size_t kChunkAt = 36;
constexpr size_t kElementsAt = 40;
constexpr size_t kPayloadAt = 48;
constexpr size_t kChecksumAt = 56;

template <typename T>
void Put(HeaderBytes out, size_t at, T value) {
  std::memcpy(out.data() + at, &value, sizeof(value));
}

template <typename T>
T Get(ConstHeaderBytes in, size_t at) {
  T value;
  std::memcpy(&value, in.data() + at, sizeof(value));
  return value;
}

absl::Status Malformed(std::string_view what, uint64_t value, uint64_t limit) {
  return absl::InvalidArgumentError(
      fmt::format("malformed frame: {} is {}, the limit is {}", what, value, limit));
}

uint64_t ChecksumOf(ConstHeaderBytes header, std::span<const std::byte> payload) {
  const std::array<std::span<const std::byte>, 2> pieces = {header.first(kChecksumAt), payload};
  return wire::ChecksumOf(pieces);
}

absl::Status CheckSizes(const FrameHeader& header) {
  if (header.bucket >= most::kGroupTensors) {
    return Malformed("the bucket", header.bucket, most::kGroupTensors - 1);
  }
  if (header.elements > kPayloadBytesMax) {
    return Malformed("the number of elements", header.elements, kPayloadBytesMax);
  }
  uint64_t most_bytes = kMessageBytesMax;
  if (header.kind == FrameKind::kBegin || header.kind == FrameKind::kLeave) most_bytes = 0;
  if (header.kind == FrameKind::kChunk) most_bytes = header.elements * ElementBytes(header.type);
  if (header.kind == FrameKind::kFetched) most_bytes = kPayloadBytesMax;
  if (header.payload_bytes > most_bytes) {
    return Malformed("the size of the payload", header.payload_bytes, most_bytes);
  }
  if (header.kind == FrameKind::kChunk && header.payload_bytes % ElementBytes(header.type) != 0) {
    return absl::InvalidArgumentError(
        fmt::format("malformed frame: {} bytes are no whole number of elements of {} bytes",
                    header.payload_bytes, ElementBytes(header.type)));
  }
  return absl::OkStatus();
}

template <typename Message>
absl::StatusOr<Message> DecodeMessage(std::string_view bytes, std::string_view name) {
  absl::StatusOr<Message> message = fields::Decode<Message>(bytes);
  if (message.ok()) return message;
  return Annotate(message.status(), fmt::format("malformed {}", name));
}

}  // namespace

void EncodeFrameHeader(const FrameHeader& header, HeaderBytes out) {
  Put(out, kMagicAt, kFrameMagic);
  Put(out, kVersionAt, kFrameVersion);
  Put(out, kKindAt, static_cast<uint8_t>(header.kind));
  Put(out, kTypeAt, static_cast<uint8_t>(header.type));
  Put(out, kCheckedAt, static_cast<uint8_t>(header.checked));
  Put(out, kLineageAt, header.lineage.value());
  Put(out, kAttemptAt, header.attempt.value());
  Put(out, kStepAt, header.step.value());
  Put(out, kBucketAt, header.bucket);
  Put(out, kChunkAt, header.chunk);
  Put(out, kElementsAt, header.elements);
  Put(out, kPayloadAt, header.payload_bytes);
  Put(out, kChecksumAt, header.checksum);
}

void EncodeCheckedFrameHeader(FrameHeader header, std::span<const std::byte> payload,
                              HeaderBytes out) {
  header.checked = true;
  EncodeFrameHeader(header, out);
  Put(out, kChecksumAt, ChecksumOf(out, payload));
}

absl::StatusOr<FrameHeader> DecodeFrameHeader(ConstHeaderBytes in) {
  if (Get<uint32_t>(in, kMagicAt) != kFrameMagic) {
    return absl::InvalidArgumentError(
        fmt::format("malformed frame: it begins with {:#x} instead of {:#x}",
                    Get<uint32_t>(in, kMagicAt), kFrameMagic));
  }
  if (const auto version = Get<uint8_t>(in, kVersionAt); version != kFrameVersion) {
    return absl::InvalidArgumentError(
        fmt::format("its frames have version {}, ours have version {}: all members of a job need "
                    "the same version of Muster",
                    version, kFrameVersion));
  }
  const auto kind = Get<uint8_t>(in, kKindAt), type = Get<uint8_t>(in, kTypeAt),
             checked = Get<uint8_t>(in, kCheckedAt);
  constexpr auto kLastKind = static_cast<uint8_t>(FrameKind::kNotFetched);
  constexpr auto kLastType = static_cast<uint8_t>(SumType::kInt64);
  if (kind < 1 || kind > kLastKind) return Malformed("the kind", kind, kLastKind);
  if (type > kLastType) return Malformed("the type", type, kLastType);
  if (checked > 1) return Malformed("the mark of a checksum", checked, 1);
  FrameHeader header{.kind = static_cast<FrameKind>(kind),
                     .type = static_cast<SumType>(type),
                     .checked = checked == 1,
                     .lineage = LineageNumber(Get<uint64_t>(in, kLineageAt)),
                     .attempt = AttemptNumber(Get<uint64_t>(in, kAttemptAt)),
                     .step = StepNumber(Get<uint64_t>(in, kStepAt)),
                     .bucket = Get<uint32_t>(in, kBucketAt),
                     .chunk = Get<uint32_t>(in, kChunkAt),
                     .elements = Get<uint64_t>(in, kElementsAt),
                     .payload_bytes = Get<uint64_t>(in, kPayloadAt),
                     .checksum = Get<uint64_t>(in, kChecksumAt)};
  if (absl::Status sizes = CheckSizes(header); !sizes.ok()) return sizes;
  return header;
}

absl::Status CheckFrame(const FrameHeader& header, std::span<const std::byte> payload) {
  std::array<std::byte, kFrameHeaderBytes> bytes;
  EncodeFrameHeader(header, bytes);
  if (ChecksumOf(bytes, payload) == header.checksum) return absl::OkStatus();
  return absl::DataLossError("a frame was damaged on the way: its checksum is wrong");
}

std::string EncodeMessage(const Hello& hello) {
  return fields::Encode(hello);
}
std::string EncodeMessage(const HelloReply& reply) {
  return fields::Encode(reply);
}
std::string EncodeMessage(const FetchRequest& request) {
  return fields::Encode(request);
}
std::string EncodeMessage(const FetchError& error) {
  return fields::Encode(error);
}

absl::StatusOr<Hello> DecodeHelloMessage(std::string_view bytes) {
  return DecodeMessage<Hello>(bytes, "hello");
}
absl::StatusOr<HelloReply> DecodeHelloReplyMessage(std::string_view bytes) {
  return DecodeMessage<HelloReply>(bytes, "answer to a hello");
}
absl::StatusOr<FetchRequest> DecodeFetchRequestMessage(std::string_view bytes) {
  return DecodeMessage<FetchRequest>(bytes, "request of a fetch");
}
absl::StatusOr<FetchError> DecodeFetchErrorMessage(std::string_view bytes) {
  return DecodeMessage<FetchError>(bytes, "answer to a fetch");
}

}  // namespace muster::collectives
