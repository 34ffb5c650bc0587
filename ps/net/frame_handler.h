#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "proto/wire/frame.h"
#include "ps/core/requests.h"

namespace muster::ps {

/// Why a peer was refused.
struct Refusal {
  /// The name in the peer's hello, and its address: "worker-0 (127.0.0.1:40312)". Before the hello,
  /// it is only the address.
  std::string peer;
  std::string reason;
  bool greeted = false;
  /// True if the connection ends. False if only one request was answered with kBadRequest.
  bool closed = false;
};

/// Serves the requests of one lane: net knows frames, and the handler knows partitions. Every call
/// comes on the lane's thread, one at a time. A call must not block, and must not do more than its
/// slice allows. OnPull and OnPush are called with the same request and reply until they return
/// kDone. In between, the lane may serve other requests. If the connection is gone, they are called
/// as abandoned.
class FrameHandler {
 public:
  virtual ~FrameHandler() = default;
  /// Makes the notes for a new connection. Null if the handler needs none.
  virtual std::unique_ptr<RequestNotes> MakeNotes() { return nullptr; }
  /// An error closes the connection with its message.
  virtual absl::StatusOr<wire::HelloReply> OnHello(const wire::Hello& hello) = 0;
  virtual Progress OnPull(const PullRequest& request, const Slice& slice, PullReply* reply) = 0;
  virtual Progress OnPush(const PushRequest& request, const Slice& slice, PushReply* reply) = 0;
  /// The request with these notes was answered.
  virtual void OnServed(const ServedRequest& /*request*/, RequestNotes* /*notes*/) {}
  /// The peer got the same message. This may be called very often, because a peer may make any
  /// number of mistakes.
  virtual void OnRefused(const Refusal& /*refusal*/) {}
};

}  // namespace muster::ps
