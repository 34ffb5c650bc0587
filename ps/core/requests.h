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
  /// What the rows will be narrowed to: one that is too large for it is refused by whoever serves
  /// the pull.
  wire::Encoding encoding = wire::Encoding::kFloat32;
};
/// What whoever serves it fills in; `parts` comes empty, with one entry to be made per part of the
/// request. `values: [sum of keys of OK parts, their table's dim] float32 row-major`, at most
/// wire::kValueBytesMax bytes; the connection narrows it for the wire. `versions`: of every group
/// that has one in the request; the values lack those that are unchanged by it (docs/wire.md).
struct PullReply {
  std::vector<wire::PartReply> parts;
  std::vector<uint64_t> versions;
  std::string text;
  AlignedBuffer values;
};

/// Gradients. `keys` and `values` are those of all parts and groups, in order; whether their
/// numbers match the tables' widths is for whoever serves it to check. As a PullRequest.
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
  /// Wall clock of all its slices, from having the request whole to having its answer encoded.
  std::chrono::nanoseconds time{0};
};

/// What is kept of a request between its slices. A connection has one, and uses it for one
/// request after the other.
class RequestNotes {
 public:
  virtual ~RequestNotes() = default;
};

/// One slice of a request.
struct Slice {
  /// The first one of its request: the notes are of an earlier request.
  bool first = true;
  /// Nobody waits for the answer any more: do only what must not be left half done.
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
