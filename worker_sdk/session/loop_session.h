#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "proto/messages/control.h"
#include "proto/messages/table_spec.h"
#include "proto/messages/worker_hello.h"
#include "proto/wire/frame.h"
#include "worker_sdk/core/part_sender.h"
#include "worker_sdk/core/row_batch.h"
#include "worker_sdk/readers/shard_reader.h"

namespace muster::internal {

/// Names the run of a shard that a loop is in.
struct RunRef {
  LeaseToken token;
  RunNumber run;
};

/// What a loop and its minibatches need of their session. Thread-safe.
class LoopSession {
 public:
  virtual ~LoopSession() = default;

  virtual const HelloResponse& job() const = 0;
  /// The encoding of rows and gradients on the wire.
  virtual wire::Encoding encoding() const = 0;
  /// The table of a handle; null, and the session fails, if the handle is not from this session.
  virtual const TableSpec* FindTable(TableId id) = 0;
  /// The order in which parts are planned; never empty.
  virtual std::shared_ptr<const std::vector<PartitionId>> sending_order() = 0;

  /// A thread enters or leaves the loop over a shard's minibatches; counts its time.
  virtual void EnterLoop() = 0;
  virtual void LeaveLoop() = 0;
  /// For a wait for `what` in a run: reports it on stderr, and returns if the wait should continue.
  /// `leaving`: continue even if the worker is to leave.
  virtual sdk::KeepWaiting WaitingFor(const RunRef& run, std::string what, bool leaving) = 0;

  virtual sdk::DeliveryId StartPull(std::shared_ptr<const sdk::RowBatch> batch) = 0;
  /// Blocks until the pull is answered; none if the lease is lost or the session failed.
  virtual std::optional<sdk::PullRows> WaitPull(const RunRef& run, sdk::DeliveryId id) = 0;
  virtual void CancelPull(sdk::DeliveryId id) = 0;
  /// Blocks until a minibatch may begin to gather about so many floats of gradients.
  virtual void AwaitRoomForGradients(const RunRef& run, uint64_t floats) = 0;

  /// Publishes the outputs of a run of a predict shard (OutputWriter), if its lease is held and its
  /// pulls saw all pushes. Blocks. kAborted: they did not, or the session failed.
  virtual absl::Status WriteOutput(const RunRef& run, const std::string& place,
                                   const std::string& name, std::string_view bytes) = 0;

  /// A call that can never work: the session fails with it.
  virtual void ProgramError(std::string message) = 0;
};

}  // namespace muster::internal
