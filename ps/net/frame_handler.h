#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/work_limit.h"
#include "proto/wire/frame.h"
#include "ps/net/aligned_buffer.h"

namespace muster::ps {

/// Rows wanted. `keys`: those of all parts and groups, in order.
struct PullRequest {
  std::span<const wire::PullPart> parts;
  std::span<const uint64_t> keys;
  /// What the rows will be narrowed to: one that is too large for it is for the handler to refuse.
  wire::Encoding encoding = wire::Encoding::kFloat32;
};
/// What the handler fills in; `parts` comes empty, with one entry to be made per part of the
/// request. `values: [sum of keys of OK parts, their table's dim] float32 row-major`, at most
/// wire::kValueBytesMax bytes; the connection narrows it for the wire.
struct PullReply {
  std::vector<wire::PartReply> parts;
  std::string text;
  AlignedBuffer values;
};

/// Gradients. `keys` and `values` are those of all parts and groups, in order; whether their
/// numbers match the tables' widths is for the handler to check.
struct PushRequest {
  std::span<const wire::PushPart> parts;
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

/// What a handler keeps of a request between its slices. A connection has one, and uses it for one
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
  /// What MakeNotes made.
  RequestNotes* notes = nullptr;
};
enum class Progress { kMore, kDone };

/// Why a peer did not get what it wanted.
struct Refusal {
  /// As its hello said, and where it comes from: "worker-0 (127.0.0.1:40312)". Before its hello
  /// only the latter.
  std::string peer;
  std::string reason;
  bool greeted = false;
  /// The connection ends; otherwise one request was answered with kBadRequest.
  bool closed = false;
};

/// Serves the requests of one lane: net knows frames, the handler knows partitions. Every call
/// comes on the lane's thread, one at a time; a call must not block, and do no more than its slice
/// allows. OnPull and OnPush are called with the same request and reply, and other requests of the
/// lane between them, until they say kDone: also when the connection is gone, then as abandoned.
class FrameHandler {
 public:
  virtual ~FrameHandler() = default;
  /// For a new connection. Null when the handler needs none.
  virtual std::unique_ptr<RequestNotes> MakeNotes() { return nullptr; }
  /// An error closes the connection with its message.
  virtual absl::StatusOr<wire::HelloReply> OnHello(const wire::Hello& hello) = 0;
  virtual Progress OnPull(const PullRequest& request, const Slice& slice, PullReply* reply) = 0;
  virtual Progress OnPush(const PushRequest& request, const Slice& slice, PushReply* reply) = 0;
  /// The request of these notes is answered.
  virtual void OnServed(const ServedRequest& /*request*/, RequestNotes* /*notes*/) {}
  /// The peer has been told, too. Comes as often as peers make mistakes.
  virtual void OnRefused(const Refusal& /*refusal*/) {}
};

}  // namespace muster::ps
