#pragma once

#include <map>
#include <vector>

#include "base/failpoint_config.h"
#include "master/core/master_core.h"

namespace muster {

#if MUSTER_WITH_FAILPOINTS
/// Failpoints around the sync of a batch, chosen by the contents of the batch: a done, a commit or
/// a manifest can each be lost, or reported too early, in its own way. The owners, restore epoch
/// and manifests with which a master begins do not count as contents. Not thread-safe.
class BatchFailpoints {
 public:
  /// `core` has begun, and none of its steps was written.
  explicit BatchFailpoints(const MasterCore& core);

  void PassBeforeSync(const std::vector<Mutation>& mutations);
  /// For the same batch.
  void PassAfterSync() const;

 private:
  void Look(const Mutation& mutation);

  /// The contents of the present batch.
  struct Says {
    bool done = false;
    bool commit = false;    // shards of a training epoch became COMMITTED
    bool evaluate = false;  // shards of an evaluate epoch did
    bool manifest = false;  // a snapshot was accepted
    bool owner = false;     // a partition has another owner, or owner epoch
    bool restore = false;   // the restore epoch grew
    bool failure = false;   // a failure was charged
    bool table = false;
    bool node = false;
  };
  struct Known {
    SnapshotNumber number;
    OwnerEpoch epoch;
    ServerIncarnation owner;
  };
  const MasterCore& core_;
  Says says_;
  std::map<PartitionId, Known> partitions_;
  RestoreEpoch restore_epoch_;
};
#else
class BatchFailpoints {
 public:
  explicit BatchFailpoints(const MasterCore&) {}
  void PassBeforeSync(const std::vector<Mutation>&) {}
  void PassAfterSync() const {}
};
#endif

}  // namespace muster
