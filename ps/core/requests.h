#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/work_limit.h"
#include "proto/wire/frame.h"
#include "ps/core/aligned_buffer.h"

namespace muster::ps {

/// Rows wanted. `keys`: those of all parts and groups, in order. What it refers to outlives it.
struct PullRequest {
  const wire::Parts& parts;
  std::span<const uint64_t> keys;
  /// The encoding of the answer. The server refuses a row with a value that is too large for it.
  wire::Encoding encoding = wire::Encoding::kFloat32;
};
/// The answer that the server fills in. `parts` comes empty and gets one entry per part of the
/// request. `values: [sum of keys of OK parts, their table's dim] float32 row-major`, at most
/// wire::kValueBytesMax bytes; the connection narrows it for the wire. `versions`: one for every
/// group that has one in the request; unchanged groups have no values (docs/wire.md).
struct PullReply {
  std::vector<wire::PartReply> parts;
  std::vector<uint64_t> versions;
  std::string text;
  AlignedBuffer values;
};

/// Gradients. `keys` and `values` are those of all parts and groups, in order. The server checks
/// that their numbers match the tables' widths. Lifetimes are as for PullRequest.
struct PushRequest {
  const wire::PushIdentity& push;
  const wire::Parts& parts;
  std::span<const uint64_t> keys;
  std::span<const float> values;
};
struct PushReply {
  std::vector<wire::PartReply> parts;
  std::string text;
};

/// What a request cost its lane.
struct ServedRequest {
  /// Whole frames, as they went over the wire.
  uint64_t received_bytes = 0;
  uint64_t sent_bytes = 0;
  /// Wall clock of all its slices, from the complete request to the encoded answer.
  std::chrono::nanoseconds time{0};
};

/// Notes about a request between its slices. A connection has one object and uses it for one
/// request after the other.
class RequestNotes {
 public:
  virtual ~RequestNotes() = default;
};

/// One slice of a request.
struct Slice {
  /// The first one of its request: the notes are of an earlier request.
  bool first = true;
  /// The answer is no longer wanted: only complete what must not stay half done.
  bool abandoned = false;
  /// How much may be done before the lane serves others.
  WorkLimit* work = nullptr;
  /// The connection's (FrameHandler::MakeNotes).
  RequestNotes* notes = nullptr;
};
enum class Progress { kMore, kDone };
/// What a part costs besides its rows, in bytes that could be moved instead.
inline constexpr uint64_t kPartWork = 1024;

}  // namespace muster::ps
