#include "collectives/frames.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/words/limits.h"
#include "proto/wire/frame.h"

namespace muster::collectives {
namespace {

absl::Status Malformed(std::string_view what, uint64_t value, uint64_t limit) {
  return absl::InvalidArgumentError(
      fmt::format("malformed frame: {} is {}, the limit is {}", what, value, limit));
}

uint64_t ChecksumOf(ConstHeaderBytes header, std::span<const std::byte> payload) {
  const std::array<std::span<const std::byte>, 2> pieces = {
      header.first(offsetof(FrameHeader, checksum)), payload};
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

}  // namespace

void EncodeFrameHeader(const FrameHeader& header, HeaderBytes out) {
  std::memcpy(out.data(), &header, out.size());
}

void EncodeCheckedFrameHeader(FrameHeader header, std::span<const std::byte> payload,
                              HeaderBytes out) {
  header.checked = true;
  EncodeFrameHeader(header, out);
  header.checksum = ChecksumOf(out, payload);
  EncodeFrameHeader(header, out);
}

absl::StatusOr<FrameHeader> DecodeFrameHeader(ConstHeaderBytes in) {
  const auto checked = static_cast<uint8_t>(in[offsetof(FrameHeader, checked)]);
  std::array<std::byte, kFrameHeaderBytes> bytes;
  std::ranges::copy(in, bytes.begin());
  bytes[offsetof(FrameHeader, checked)] &= std::byte{1};  // any other value is no bool
  const auto header = std::bit_cast<FrameHeader>(bytes);
  if (header.magic != kFrameMagic) {
    return absl::InvalidArgumentError(fmt::format(
        "malformed frame: it begins with {:#x} instead of {:#x}", header.magic, kFrameMagic));
  }
  if (header.version != kFrameVersion) {
    return absl::InvalidArgumentError(
        fmt::format("its frames have version {}, ours have version {}: all members of a job need "
                    "the same version of Muster",
                    header.version, kFrameVersion));
  }
  const auto kind = static_cast<uint8_t>(header.kind), type = static_cast<uint8_t>(header.type);
  constexpr auto kLastKind = static_cast<uint8_t>(FrameKind::kNotFetched);
  constexpr auto kLastType = static_cast<uint8_t>(SumType::kInt64);
  if (kind < 1 || kind > kLastKind) return Malformed("the kind", kind, kLastKind);
  if (type > kLastType) return Malformed("the type", type, kLastType);
  if (checked > 1) return Malformed("the mark of a checksum", checked, 1);
  if (absl::Status sizes = CheckSizes(header); !sizes.ok()) return sizes;
  return header;
}

absl::Status CheckFrame(const FrameHeader& header, std::span<const std::byte> payload) {
  std::array<std::byte, kFrameHeaderBytes> bytes;
  EncodeFrameHeader(header, bytes);
  if (ChecksumOf(bytes, payload) == header.checksum) return absl::OkStatus();
  return absl::DataLossError("a frame was damaged on the way: its checksum is wrong");
}

}  // namespace muster::collectives
