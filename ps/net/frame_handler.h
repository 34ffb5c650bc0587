#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "proto/wire/frame.h"
#include "ps/core/requests.h"

namespace muster::ps {

/// Why a peer was refused.
struct Refusal {
  /// The name in its hello, and its address: "worker-0 (127.0.0.1:40312)". Before its hello, only
  /// the address.
  std::string peer;
  std::string reason;
  bool greeted = false;
  /// The connection ends; otherwise one request was answered with kBadRequest.
  bool closed = false;
};

/// Serves the requests of one lane. net handles frames; the handler handles partitions. Every call
/// comes on the lane's thread, one at a time; a call must not block, and do no more than its slice
/// allows. OnPull and OnPush are called with the same request and reply, and other requests of the
/// lane between them, until they return kDone. If the connection is gone, they are called as
/// abandoned.
class FrameHandler {
 public:
  virtual ~FrameHandler() = default;
  /// The notes for a new connection. Null if the handler needs none.
  virtual std::unique_ptr<RequestNotes> MakeNotes() { return nullptr; }
  /// An error closes the connection with its message.
  virtual absl::StatusOr<wire::HelloReply> OnHello(const wire::Hello& hello) = 0;
  virtual Progress OnPull(const PullRequest& request, const Slice& slice, PullReply* reply) = 0;
  virtual Progress OnPush(const PushRequest& request, const Slice& slice, PushReply* reply) = 0;
  /// The request of these notes is answered.
  virtual void OnServed(const ServedRequest& /*request*/, RequestNotes* /*notes*/) {}
  /// The peer got the same message. It may be called very often, because peers may make any number
  /// of mistakes.
  virtual void OnRefused(const Refusal& /*refusal*/) {}
};

}  // namespace muster::ps
