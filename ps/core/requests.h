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

/// A pull. `keys` has the keys of all parts and groups, in order. The memory that it refers to
/// outlives it.
struct PullRequest {
  const wire::Parts& parts;
  std::span<const uint64_t> keys;
  /// The encoding of the answer. The server refuses a row with a value that is too large for it.
  wire::Encoding encoding = wire::Encoding::kFloat32;
};
/// The answer to a pull, which the server fills in. `parts` comes empty and gets one entry for each
/// part of the request. `values` is `[sum of keys of OK parts, their table's dim] float32
/// row-major`, at most wire::kValueBytesMax bytes. The connection converts it to the encoding of
/// the wire. `versions` has one entry for every group that has a version in the request. Unchanged
/// groups have no values (docs/wire.md).
struct PullReply {
  std::vector<wire::PartReply> parts;
  std::vector<uint64_t> versions;
  std::string text;
  AlignedBuffer values;
};

/// A push of gradients. `keys` and `values` are those of all parts and groups, in order. The server
/// checks that their numbers match the tables' widths. Lifetimes are as for PullRequest.
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
  /// The bytes of whole frames, as they went over the wire.
  uint64_t received_bytes = 0;
  uint64_t sent_bytes = 0;
  /// The wall-clock time of all its slices, from the complete request to the encoded answer.
  std::chrono::nanoseconds time{0};
};

/// The handler's notes about a request between its slices. A connection has one such object and
/// uses it for all its requests, one after the other.
class RequestNotes {
 public:
  virtual ~RequestNotes() = default;
};

/// One slice of a request.
struct Slice {
  /// True for the first slice of a request: the notes still belong to an earlier request.
  bool first = true;
  /// The answer is no longer wanted. Only what must not stay half done is completed.
  bool abandoned = false;
  /// How much work may be done before the lane serves others.
  WorkLimit* work = nullptr;
  /// The notes of the connection (FrameHandler::MakeNotes).
  RequestNotes* notes = nullptr;
};
enum class Progress { kMore, kDone };
/// The cost of a part besides its rows, as the number of bytes that could be moved in the same
/// time.
inline constexpr uint64_t kPartWork = 1024;

}  // namespace muster::ps
