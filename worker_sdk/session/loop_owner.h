#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/words/types.h"
#include "proto/messages/metrics.h"
#include "worker_sdk/core/row_batch.h"

namespace muster::internal {

class MinibatchImpl;

/// Whose minibatches a MinibatchLoop runs: those of a leased shard (ShardImpl), or a member's share
/// of a group's step (GroupStepImpl).
///
/// The owner owns the loop, and the loop calls its owner on the loop's thread, only inside of a
/// call to the loop or to one of its minibatches, never in its destructor. The loop tells its owner
/// once how it ended: by Complete, FailRun or HandBack, or because Start returned kLost. If the
/// trainer leaves the loop early, the owner is not called; MinibatchLoop::left() is false then.
class LoopOwner {
 public:
  virtual ~LoopOwner() = default;

  /// False: minibatches may neither pull nor push.
  virtual bool may_use_tables() const = 0;
  /// The minibatch has no record, so the loop does not run it. Called before the first Start.
  virtual void Skip(MinibatchIndex minibatch) = 0;

  enum class Next : uint8_t {
    kRun,
    kEnd,   // the loop ends before this minibatch; Complete follows
    kLost,  // the loop ends, and what has run is of no use
  };
  /// The loop is about to hand this minibatch out.
  virtual Next Start(MinibatchIndex minibatch) = 0;
  /// The trainer commits a minibatch that has pushed nothing. True: Push is called for it, too.
  virtual bool PushesNothing(const MinibatchImpl& minibatch) = 0;
  /// The trainer commits a minibatch, which pushes `batch`. May block.
  virtual void Push(const MinibatchImpl& minibatch, std::shared_ptr<const sdk::RowBatch> batch) = 0;
  /// The minibatch has run, and is committed. `metrics` are those of all that have run.
  virtual void End(MinibatchIndex minibatch, size_t records, const ShardMetrics& metrics) = 0;

  /// The loop ended well, and its rejected records are stored.
  virtual void Complete(ShardMetrics metrics) = 0;
  /// The trainer, or a check of what it gave, has failed the run. `reason` names the shard.
  virtual void FailRun(std::string reason) = 0;
  /// The run cannot be completed, and this is not the fault of the shard. `reason` names the shard.
  virtual void HandBack(std::string reason) = 0;
};

}  // namespace muster::internal
