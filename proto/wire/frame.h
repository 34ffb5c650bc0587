#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/wire/parts.h"

/// The data plane's frames: pulls and pushes of rows between workers and servers. docs/wire.md is
/// the format.
///
/// A frame is a fixed header and three blocks: directory, keys, values. All integers are
/// little-endian. Keys and values are plain arrays, sent from and received into aligned buffers, so
/// rows are never serialised one by one. Ids are plain integers here: proto knows nothing of
/// sharding; callers wrap them.
namespace muster::wire {

inline constexpr uint32_t kMagic = 0x4d535452;  // "MSTR"
inline constexpr uint16_t kVersion = 6;
inline constexpr size_t kHeaderBytes = 64;

/// Limits on what a peer may send; a frame beyond them is malformed.
inline constexpr uint32_t kDirectoryBytesMax = 16u << 20;
inline constexpr uint32_t kPartsMax = 1u << 16;
inline constexpr uint32_t kGroupsPerPartMax = 1u << 10;
inline constexpr uint64_t kKeysMax = 1u << 24;
inline constexpr uint64_t kValueBytesMax = 1ull << 30;
inline constexpr uint32_t kTextBytesMax = 4096;

enum class Kind : uint16_t {
  kHello = 1,
  kHelloReply = 2,
  kPull = 3,
  kPullReply = 4,
  kPush = 5,
  kPushReply = 6,
  kError = 7,  // text block; the sender closes the connection after it
};

/// Encoding of the value block.
enum class Encoding : uint8_t { kFloat32 = 0, kFloat16 = 1, kBfloat16 = 2 };
/// Checksum over directory, keys and values.
enum class Checksum : uint8_t { kNone = 0, kXxh3 = 1 };

/// The fixed header as it lies on the wire.
struct Header {
  uint32_t magic = kMagic;
  uint16_t version = kVersion;
  Kind kind = Kind::kHello;
  uint64_t request = 0;
  uint32_t directory_bytes = 0;
  uint32_t parts = 0;
  uint64_t keys = 0;         // number of uint64 keys
  uint64_t value_bytes = 0;  // after encoding
  Encoding encoding = Encoding::kFloat32;
  Checksum checksum_kind = Checksum::kNone;
  uint16_t zero16 = 0;
  uint32_t versions = 0;  // of a pull or its reply: the number of groups with a version
  uint64_t checksum = 0;
  uint64_t zero64 = 0;
};
static_assert(std::endian::native == std::endian::little);
static_assert(sizeof(Header) == kHeaderBytes && std::has_unique_object_representations_v<Header>);

/// Writes the 64 bytes.
void EncodeHeader(const Header& header, std::span<std::byte, kHeaderBytes> out);
/// Checks magic, version, kind, encoding, reserved zeroes and every limit. The error says which,
/// with the value. A wrong version is kFailedPrecondition and names both versions; anything else
/// malformed is kInvalidArgument.
absl::StatusOr<Header> DecodeHeader(std::span<const std::byte, kHeaderBytes> in);

/// First frame of a connection, from the worker. Text fields up to kTextBytesMax.
struct Hello {
  std::string job;       // the job's name, for messages
  std::string job_id;    // another one is refused
  std::string peer;      // node name, for messages
  std::string software;  // "muster 1.2.3"
  /// The largest ring of shared memory that it accepts; 0: none. Over a UNIX socket only.
  uint32_t ring_bytes_max = 0;
};
struct HelloReply {
  uint64_t server_incarnation = 0;
  uint32_t partition_count = 0;
  uint32_t lane = 0;
  uint32_t lane_count = 0;
  /// Not 0: one byte with a descriptor follows this frame. Its memory has two rings of so many
  /// bytes each, and carries all later frames.
  uint32_t ring_bytes = 0;
};

/// The origin of a push: the minibatch, and the lease under which it ran.
struct PushIdentity {
  uint32_t dataset = 0;
  uint32_t epoch = 0;
  uint64_t shard_index = 0;
  uint32_t minibatch = 0;
  uint32_t run = 0;
  uint64_t token = 0;
  uint64_t step = 0;  // job-wide position of the minibatch
  friend bool operator==(const PushIdentity&, const PushIdentity&) = default;
};

enum class PartCode : uint8_t {
  kOk = 0,          // push: applied, or in the window already; pull: rows follow
  kWrongOwner = 1,  // not the owner, or another owner epoch: refresh the map, send again
  kRetry = 2,       // owner, but not now (loading, frozen, table not yet known): send again later
  kStaleLease = 3,  // token below the floor: drop the shard
  kBadRequest = 4,  // a wrong width, or a table that will never be known: a bug; the text names it
  kMissing = 5,     // push, answer to a question: not in the rows
};
struct PartReply {
  uint32_t partition = 0;
  PartCode code = PartCode::kOk;
  bool skipped = false;  // push: OK from the window
  friend bool operator==(const PartReply&, const PartReply&) = default;
};

/// Directory encodings. Decoders check every count against the header and the limits, and that the
/// blocks are used up exactly; errors are kInvalidArgument and say where.
std::string EncodeHello(const Hello& hello);
absl::StatusOr<Hello> DecodeHello(std::string_view directory);
std::string EncodeHelloReply(const HelloReply& reply);
absl::StatusOr<HelloReply> DecodeHelloReply(std::string_view directory);
std::string EncodePull(const Parts& parts);
/// Replaces the contents of `directory`, and reuses its memory.
void EncodePull(const Parts& parts, std::string* directory);
/// Replaces what is in `parts`, and uses its memory; after an error it holds anything.
absl::Status DecodePull(const Header& header, std::string_view directory, Parts* parts);
/// A part without groups is a question: is the minibatch's part in the rows? It applies nothing.
std::string EncodePush(const PushIdentity& push, const Parts& parts);
void EncodePush(const PushIdentity& push, const Parts& parts, std::string* directory);
absl::Status DecodePush(const Header& header, std::string_view directory, PushIdentity* push,
                        Parts* parts);
/// Replies list the parts of the request in order. A pull reply's value block holds the rows of the
/// parts with kOk, in request order; the others contribute nothing, nor do groups that are
/// unchanged. `versions`: of a pull, one for each group that has one in the request, in its order;
/// kNoVersion in parts without kOk. `text` explains kBadRequest.
std::string EncodeReply(std::span<const PartReply> parts, std::string_view text,
                        std::span<const uint64_t> versions = {});
/// The size of that without a text.
size_t ReplyDirectoryBytes(size_t parts, size_t versions);
struct Reply {
  std::vector<PartReply> parts;
  std::vector<uint64_t> versions;
  std::string text;
};
absl::StatusOr<Reply> DecodeReply(const Header& header, std::string_view directory);
/// Replaces the contents of `reply`, and reuses its memory; after an error, its contents are
/// undefined.
absl::Status DecodeReply(const Header& header, std::string_view directory, Reply* reply);
std::string EncodeError(std::string_view text);
absl::StatusOr<std::string> DecodeError(std::string_view directory);

/// XXH3 over the three blocks in order.
uint64_t ChecksumOf(std::string_view directory, std::span<const uint64_t> keys,
                    std::string_view values);
/// The same over the blocks in pieces of memory, one after the other.
uint64_t ChecksumOf(std::span<const std::span<const std::byte>> pieces);

/// "float32", "float16", "bfloat16".
std::string_view NameOf(Encoding encoding);
/// Bytes per value: 4 or 2.
size_t BytesPerValue(Encoding encoding);
/// The largest finite magnitude of the encoding.
float LargestFinite(Encoding encoding);
/// Position of the first finite value that would be rounded to infinity; values.size() if none.
size_t FirstUnencodable(std::span<const float> values, Encoding encoding);
/// Converts floats to the wire (round to nearest even) and back. out.size() == in.size() *
/// BytesPerValue.
void EncodeValues(std::span<const float> in, Encoding encoding, std::span<std::byte> out);
void DecodeValues(std::span<const std::byte> in, Encoding encoding, std::span<float> out);

}  // namespace muster::wire
