#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/words/types.h"
#include "proto/messages/metrics.h"
#include "proto/status/event_kinds.h"

namespace muster {

/// The data of a step: one shard.
struct StepData {
  ShardId shard;
  uint32_t minibatches = 0;
  /// The shard that probably follows.
  std::optional<ShardId> ahead;
  /// The step has happened, and only what it pushed to tables is pushed again.
  bool replay = false;
};

/// The shards of the job, as the group uses them. The steps of the lineage after the checkpoint are
/// the DONE shards, in the order in which they became DONE. `master/core` implements it over the
/// ledger; every change belongs to the core step in which it is made.
class GroupData {
 public:
  virtual ~GroupData() = default;

  /// A shard to replay, or that of the next step; none: there is none now. Its state stays.
  virtual std::optional<StepData> Next() = 0;
  /// It is TODO, or must be replayed.
  virtual bool IsOpen(const ShardId& shard) const = 0;
  /// For an attempt at this shard. Larger than every token before.
  virtual LeaseToken NewToken(const ShardId& shard) = 0;
  /// No attempt that still counts has a token below this.
  virtual void EndTokensBelow(LeaseToken floor) = 0;
  /// TODO -> DONE. `worker`: counted for its progress. `pushed_under`: partitions had this restore
  /// epoch when they confirmed what was pushed; 0: nothing was.
  virtual void Commit(const ShardId& shard, LeaseToken token, const ShardMetrics& metrics,
                      const std::string& worker, RestoreEpoch pushed_under) = 0;
  /// The shard has been replayed. It stays open if a partition was restored meanwhile.
  virtual void Replayed(const ShardId& shard, RestoreEpoch pushed_under) = 0;
  /// A checkpoint has all DONE shards, except the newest `kept`. They become COMMITTED, as soon as
  /// snapshots of the tables have them, too. Idempotent.
  virtual void Checkpointed(uint64_t kept) = 0;
  /// The newest `count` DONE shards become TODO.
  virtual void Undo(uint64_t count) = 0;
  /// So many minibatches were given to members that will not bring them any more, and are to be
  /// computed again.
  virtual void Redelivered(uint64_t minibatches) = 0;
  /// Whether the job goes on, or ends, only after a checkpoint of everything that is DONE.
  virtual bool NeedsCheckpoint() const = 0;
  /// Counts a failure of the shard, which is open, once for each token. A TODO shard may become
  /// FAILED; the job fails if a shard cannot be replayed.
  virtual void Charge(const ShardId& shard, LeaseToken token, const std::string& worker,
                      uint64_t incarnation, std::string_view reason) = 0;
  /// How many workers run, or are on their way; none: not known.
  virtual std::optional<uint32_t> Workers() const = 0;
  /// The job has ended.
  virtual bool Over() const = 0;
  /// The job cannot go on.
  virtual void FailJob(std::string_view reason) = 0;
  /// `worker` empty: the event is the job's.
  virtual void Say(MasterEventKind kind, const std::string& worker, std::string_view text) = 0;
};

}  // namespace muster
