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
};

/// The shards of the job, as the group uses them. The steps of the lineage after the checkpoint are
/// the DONE shards, in the order in which they became DONE. `master/core` implements it over the
/// ledger; every change belongs to the core step in which it is made.
class GroupData {
 public:
  virtual ~GroupData() = default;

  /// The shard of the next step; none: there is none now. It stays TODO.
  virtual std::optional<StepData> Next() = 0;
  virtual bool IsTodo(const ShardId& shard) const = 0;
  /// Larger than every token before.
  virtual LeaseToken NewToken() = 0;
  /// TODO -> DONE. `worker`: counted for its progress.
  virtual void Commit(const ShardId& shard, LeaseToken token, const ShardMetrics& metrics,
                      const std::string& worker) = 0;
  /// All DONE shards become COMMITTED, except the newest `kept`. Idempotent.
  virtual void CommitAllBut(uint64_t kept) = 0;
  /// The newest `count` DONE shards become TODO.
  virtual void Undo(uint64_t count) = 0;
  /// Whether the job goes on, or ends, only after a checkpoint of everything that is DONE.
  virtual bool NeedsCheckpoint() const = 0;
  /// Counts a failure of the shard, which is TODO, once for each token. It may become FAILED.
  virtual void Charge(const ShardId& shard, LeaseToken token, const std::string& worker,
                      uint64_t incarnation, std::string_view reason) = 0;
  /// The job has ended.
  virtual bool Over() const = 0;
  /// The job cannot go on.
  virtual void FailJob(std::string_view reason) = 0;
  /// `worker` empty: the event is the job's.
  virtual void Say(MasterEventKind kind, const std::string& worker, std::string_view text) = 0;
};

}  // namespace muster
