#include "proto/wire/frame.h"

#define XXH_INLINE_ALL  // the streaming state is on the stack, which needs its definition
#include <fmt/format.h>
#include <xxhash.h>

#include <cstring>

namespace muster::wire {
namespace {

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
  std::memcpy(out.data(), &header, out.size());
}

absl::StatusOr<Header> DecodeHeader(std::span<const std::byte, kHeaderBytes> in) {
  Header header;
  std::memcpy(&header, in.data(), in.size());
  if (header.magic != kMagic) {
    return absl::InvalidArgumentError(fmt::format(
        "not a muster frame: it begins with {:#010x} instead of {:#010x}", header.magic, kMagic));
  }
  if (header.version != kVersion) {
    return absl::FailedPreconditionError(
        fmt::format("the peer speaks version {} of the data plane, this program version {}: run "
                    "the same version of muster on both sides",
                    header.version, kVersion));
  }
  if (header.kind < Kind::kHello || header.kind > Kind::kError) {
    return absl::InvalidArgumentError(
        fmt::format("malformed frame: unknown kind {}", static_cast<int>(header.kind)));
  }
  if (header.encoding > Encoding::kBfloat16) {
    return absl::InvalidArgumentError(
        fmt::format("malformed frame: unknown encoding {}", static_cast<int>(header.encoding)));
  }
  if (header.checksum_kind > Checksum::kXxh3) {
    return absl::InvalidArgumentError(fmt::format("malformed frame: unknown checksum {}",
                                                  static_cast<int>(header.checksum_kind)));
  }
  if (header.zero16 != 0 || header.zero64 != 0) {
    return absl::InvalidArgumentError("malformed frame: a reserved field is not zero");
  }
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
