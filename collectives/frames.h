#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/words/types.h"
#include "collectives/add_elements.h"
#include "proto/fields/decode.h"
#include "proto/fields/encode.h"
#include "proto/messages/group_control.h"

/// What members of a group send each other. Pure. A frame is a fixed header and a payload: a
/// message (proto/fields), or elements as they lie in memory. Integers are little-endian.
namespace muster::collectives {

inline constexpr uint32_t kFrameMagic = 0x5052474d;  // "MGRP"
inline constexpr uint8_t kFrameVersion = 1;
inline constexpr size_t kFrameHeaderBytes = 64;
/// Longest payload that is a message, and longest one at all.
inline constexpr uint64_t kMessageBytesMax = 16u << 10;
inline constexpr uint64_t kPayloadBytesMax = uint64_t{1} << 40;

enum class FrameKind : uint8_t {
  kHello = 1,       // message Hello; the first frame of a connection
  kHelloReply = 2,  // message HelloReply
  kBegin = 3,       // from who said hello: it has the reply
  kChunk = 4,       // elements of a bucket
  kLeave = 5,       // the sender is no longer in the attempt, which is no error
  kFetch = 6,       // message FetchRequest
  kFetched = 7,     // the bytes
  kNotFetched = 8,  // message FetchError
};

/// The header as it lies on the wire. What a kind does not need is 0.
struct FrameHeader {
  uint32_t magic = kFrameMagic;
  uint8_t version = kFrameVersion;
  FrameKind kind = FrameKind::kHello;
  SumType type = SumType::kFloat32;  // of a chunk
  /// There is a checksum: XXH3 of the header up to it, and of the payload.
  bool checked = false;
  LineageNumber lineage;
  AttemptNumber attempt;
  StepNumber step;
  uint32_t bucket = 0;
  /// Counts what one member sends to one other of this bucket, from 0.
  uint32_t chunk = 0;
  uint64_t elements = 0;  // of the whole bucket
  uint64_t payload_bytes = 0;
  uint64_t checksum = 0;
  friend bool operator==(const FrameHeader&, const FrameHeader&) = default;
};
static_assert(std::endian::native == std::endian::little);
static_assert(sizeof(FrameHeader) == kFrameHeaderBytes &&
              std::has_unique_object_representations_v<FrameHeader>);

using HeaderBytes = std::span<std::byte, kFrameHeaderBytes>;
using ConstHeaderBytes = std::span<const std::byte, kFrameHeaderBytes>;

/// Writes the 64 bytes.
void EncodeFrameHeader(const FrameHeader& header, HeaderBytes out);
/// As above, with the checksum of header and payload.
void EncodeCheckedFrameHeader(FrameHeader header, std::span<const std::byte> payload,
                              HeaderBytes out);
/// Checks magic, version, kind, type, and every limit. kInvalidArgument says which, with the value.
absl::StatusOr<FrameHeader> DecodeFrameHeader(ConstHeaderBytes in);
/// kDataLoss if the checksum is not that of header and payload. Requires: header.checked.
absl::Status CheckFrame(const FrameHeader& header, std::span<const std::byte> payload);

/// Who connects, and what for. A member's has an attempt, a learner's has none.
struct Hello {
  static constexpr char kName[] = "hello";
  std::string job_id;
  std::string worker;
  uint64_t incarnation = 0;
  /// The process that it looks for.
  std::string to_worker;
  uint64_t to_incarnation = 0;
  LineageNumber lineage;
  AttemptNumber attempt;
  uint32_t members = 0;
  uint32_t rank = 0;
  uint32_t to_rank = 0;
  /// The sender wants checksums in both directions.
  bool checked = false;
  /// The largest ring that the sender would share over this UNIX socket; 0: none.
  uint32_t ring_bytes_max = 0;
  static void Fields(auto& f, auto& s) {
    f(1, "job_id", s.job_id, {.most = most::kNameBytes});
    f(2, "worker", s.worker, {.most = most::kNameBytes});
    f(3, "incarnation", s.incarnation);
    f(4, "to_worker", s.to_worker, {.most = most::kNameBytes});
    f(5, "to_incarnation", s.to_incarnation);
    f(6, "lineage", s.lineage), f(7, "attempt", s.attempt);
    f(8, "members", s.members, {.most = most::kMembers});
    f(9, "rank", s.rank, {.most = most::kMembers});
    f(10, "to_rank", s.to_rank, {.most = most::kMembers});
    f(11, "checked", s.checked);
    f(12, "ring_bytes_max", s.ring_bytes_max);
  }
  friend bool operator==(const Hello&, const Hello&) = default;
};

struct HelloReply {
  static constexpr char kName[] = "answer to a hello";
  /// Why the connection is refused; empty: it is accepted.
  std::string refused;
  /// Another process may listen at the address later, so a new connection may be accepted.
  bool again = false;
  /// Size of each of two rings (net/ring_memory.h), whose descriptor follows; all further frames go
  /// through them. 0: they go through the socket.
  uint32_t ring_bytes = 0;
  static void Fields(auto& f, auto& s) {
    f(1, "refused", s.refused, {.most = 1'024});
    f(2, "again", s.again);
    f(3, "ring_bytes", s.ring_bytes);
  }
  friend bool operator==(const HelloReply&, const HelloReply&) = default;
};

/// A learner asks for bytes of a captured stripe, or of a kept sum.
struct FetchRequest {
  static constexpr char kName[] = "request of a fetch";
  bool kept_sum = false;
  StateLabel label;     // of a sum: its step
  uint32_t number = 0;  // the stripe, or the bucket
  uint64_t offset = 0;
  uint64_t bytes = 0;
  static void Fields(auto& f, auto& s) {
    f(1, "kept_sum", s.kept_sum), f(2, "label", s.label);
    f(3, "number", s.number, {.most = most::kGroupTensors});
    f(4, "offset", s.offset), f(5, "bytes", s.bytes);
  }
  friend bool operator==(const FetchRequest&, const FetchRequest&) = default;
};

struct FetchError {
  static constexpr char kName[] = "answer to a fetch";
  bool not_found = false;  // otherwise, the request was wrong, or came too early
  std::string text;
  bool later = false;  // it came too early
  static void Fields(auto& f, auto& s) {
    f(1, "not_found", s.not_found);
    f(2, "text", s.text, {.most = 1'024});
    f(3, "later", s.later);
  }
  friend bool operator==(const FetchError&, const FetchError&) = default;
};

/// The messages as payloads.
template <typename Message>
std::string EncodeMessage(const Message& message) {
  return fields::Encode(message);
}
/// Checks limits; errors are kInvalidArgument.
template <typename Message>
absl::StatusOr<Message> DecodeMessage(std::string_view bytes) {
  absl::StatusOr<Message> message = fields::Decode<Message>(bytes);
  if (message.ok()) return message;
  return Annotate(message.status(), absl::StrCat("malformed ", Message::kName));
}

}  // namespace muster::collectives
