#include "proto/wire/frame.h"

#define XXH_INLINE_ALL  // the streaming state is on the stack, which needs its definition
#include <fmt/format.h>
#include <xxhash.h>

#include <bit>
#include <cstring>

namespace muster::wire {
namespace {

static_assert(std::endian::native == std::endian::little, "the wire is little-endian");

/// Offsets of the header's fields.
constexpr size_t kMagicAt = 0;
constexpr size_t kVersionAt = 4;
constexpr size_t kKindAt = 6;
constexpr size_t kRequestAt = 8;
constexpr size_t kDirectoryBytesAt = 16;
constexpr size_t kPartsAt = 20;
constexpr size_t kKeysAt = 24;
constexpr size_t kValueBytesAt = 32;
constexpr size_t kEncodingAt = 40;
constexpr size_t kChecksumKindAt = 41;
constexpr size_t kZero16At = 42;
constexpr size_t kVersionsAt = 44;
constexpr size_t kChecksumAt = 48;
constexpr size_t kZero64At = 56;

template <typename T>
void Put(std::span<std::byte, kHeaderBytes> out, size_t at, T value) {
  std::memcpy(out.data() + at, &value, sizeof(value));
}

template <typename T>
T Get(std::span<const std::byte, kHeaderBytes> in, size_t at) {
  T value;
  std::memcpy(&value, in.data() + at, sizeof(value));
  return value;
}

absl::Status Malformed(std::string_view what, uint64_t value, uint64_t limit) {
  return absl::InvalidArgumentError(
      fmt::format("malformed frame: {} is {}, the limit is {}", what, value, limit));
}

/// Which blocks a kind of frame may have.
absl::Status CheckBlocks(const Header& header) {
  const bool parts = header.kind == Kind::kPull || header.kind == Kind::kPullReply ||
                     header.kind == Kind::kPush || header.kind == Kind::kPushReply;
  const bool keys = header.kind == Kind::kPull || header.kind == Kind::kPush;
  const bool values = header.kind == Kind::kPullReply || header.kind == Kind::kPush;
  const int kind = static_cast<int>(header.kind);
  if (!parts && header.parts != 0) {
    return absl::InvalidArgumentError(fmt::format(
        "malformed frame: kind {} has no parts, but the header says {}", kind, header.parts));
  }
  if (!keys && header.keys != 0) {
    return absl::InvalidArgumentError(fmt::format(
        "malformed frame: kind {} has no keys, but the header says {}", kind, header.keys));
  }
  if (!values && header.value_bytes != 0) {
    return absl::InvalidArgumentError(
        fmt::format("malformed frame: kind {} has no values, but the header says {} bytes", kind,
                    header.value_bytes));
  }
  const bool versions = header.kind == Kind::kPull || header.kind == Kind::kPullReply;
  if (!versions && header.versions != 0) {
    return absl::InvalidArgumentError(fmt::format(
        "malformed frame: kind {} has no versions, but the header says {}", kind, header.versions));
  }
  if (header.versions > header.directory_bytes / sizeof(uint64_t)) {
    return absl::InvalidArgumentError(fmt::format(
        "malformed frame: a directory of {} bytes cannot hold the {} versions of the header",
        header.directory_bytes, header.versions));
  }
  if (header.value_bytes % BytesPerValue(header.encoding) != 0) {
    return absl::InvalidArgumentError(
        fmt::format("malformed frame: {} bytes of values are no whole number of {}-byte values",
                    header.value_bytes, BytesPerValue(header.encoding)));
  }
  return absl::OkStatus();
}

}  // namespace

void EncodeHeader(const Header& header, std::span<std::byte, kHeaderBytes> out) {
  std::memset(out.data(), 0, out.size());
  Put<uint32_t>(out, kMagicAt, kMagic);
  Put<uint16_t>(out, kVersionAt, kVersion);
  Put<uint16_t>(out, kKindAt, static_cast<uint16_t>(header.kind));
  Put<uint64_t>(out, kRequestAt, header.request);
  Put<uint32_t>(out, kDirectoryBytesAt, header.directory_bytes);
  Put<uint32_t>(out, kPartsAt, header.parts);
  Put<uint32_t>(out, kVersionsAt, header.versions);
  Put<uint64_t>(out, kKeysAt, header.keys);
  Put<uint64_t>(out, kValueBytesAt, header.value_bytes);
  Put<uint8_t>(out, kEncodingAt, static_cast<uint8_t>(header.encoding));
  Put<uint8_t>(out, kChecksumKindAt, static_cast<uint8_t>(header.checksum_kind));
  Put<uint64_t>(out, kChecksumAt, header.checksum);
}

absl::StatusOr<Header> DecodeHeader(std::span<const std::byte, kHeaderBytes> in) {
  if (const auto magic = Get<uint32_t>(in, kMagicAt); magic != kMagic) {
    return absl::InvalidArgumentError(fmt::format(
        "not a muster frame: it begins with {:#010x} instead of {:#010x}", magic, kMagic));
  }
  if (const auto version = Get<uint16_t>(in, kVersionAt); version != kVersion) {
    return absl::FailedPreconditionError(
        fmt::format("the peer speaks version {} of the data plane, this program version {}: run "
                    "the same version of muster on both sides",
                    version, kVersion));
  }
  const auto kind = Get<uint16_t>(in, kKindAt);
  if (kind < static_cast<uint16_t>(Kind::kHello) || kind > static_cast<uint16_t>(Kind::kError)) {
    return absl::InvalidArgumentError(fmt::format("malformed frame: unknown kind {}", kind));
  }
  const auto encoding = Get<uint8_t>(in, kEncodingAt);
  if (encoding > static_cast<uint8_t>(Encoding::kBfloat16)) {
    return absl::InvalidArgumentError(
        fmt::format("malformed frame: unknown encoding {}", encoding));
  }
  const auto checksum_kind = Get<uint8_t>(in, kChecksumKindAt);
  if (checksum_kind > static_cast<uint8_t>(Checksum::kXxh3)) {
    return absl::InvalidArgumentError(
        fmt::format("malformed frame: unknown checksum {}", checksum_kind));
  }
  if (Get<uint16_t>(in, kZero16At) != 0 || Get<uint64_t>(in, kZero64At) != 0) {
    return absl::InvalidArgumentError("malformed frame: a reserved field is not zero");
  }
  Header header;
  header.kind = static_cast<Kind>(kind);
  header.request = Get<uint64_t>(in, kRequestAt);
  header.directory_bytes = Get<uint32_t>(in, kDirectoryBytesAt);
  header.parts = Get<uint32_t>(in, kPartsAt);
  header.versions = Get<uint32_t>(in, kVersionsAt);
  header.keys = Get<uint64_t>(in, kKeysAt);
  header.value_bytes = Get<uint64_t>(in, kValueBytesAt);
  header.encoding = static_cast<Encoding>(encoding);
  header.checksum_kind = static_cast<Checksum>(checksum_kind);
  header.checksum = Get<uint64_t>(in, kChecksumAt);
  if (header.directory_bytes > kDirectoryBytesMax) {
    return Malformed("the directory's size in bytes", header.directory_bytes, kDirectoryBytesMax);
  }
  if (header.parts > kPartsMax) return Malformed("the number of parts", header.parts, kPartsMax);
  if (header.keys > kKeysMax) return Malformed("the number of keys", header.keys, kKeysMax);
  if (header.value_bytes > kValueBytesMax) {
    return Malformed("the values' size in bytes", header.value_bytes, kValueBytesMax);
  }
  if (absl::Status status = CheckBlocks(header); !status.ok()) return status;
  return header;
}

uint64_t ChecksumOf(std::string_view directory, std::span<const uint64_t> keys,
                    std::string_view values) {
  XXH3_state_t state;
  XXH3_64bits_reset(&state);
  XXH3_64bits_update(&state, directory.data(), directory.size());
  XXH3_64bits_update(&state, keys.data(), keys.size_bytes());
  XXH3_64bits_update(&state, values.data(), values.size());
  return XXH3_64bits_digest(&state);
}

uint64_t ChecksumOf(std::span<const std::span<const std::byte>> pieces) {
  XXH3_state_t state;
  XXH3_64bits_reset(&state);
  for (const std::span<const std::byte> piece : pieces) {
    XXH3_64bits_update(&state, piece.data(), piece.size());
  }
  return XXH3_64bits_digest(&state);
}

}  // namespace muster::wire
