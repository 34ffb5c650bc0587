#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/words/types.h"
#include "proto/messages/partition_map.h"
#include "worker_sdk/core/pooled.h"

namespace muster::sdk {

/// Which parts of one shard their partitions have confirmed to be in the rows, and which of these
/// are *doubted*: confirmed by a state from before the partition's newest restore, so that the
/// partition must be asked again. What it then lacks is *lost*, until the minibatch is pushed there
/// again or its run is over without that. Pure; not thread-safe.
class ConfirmedParts {
 public:
  /// A minibatch with the partitions that its parts are in.
  struct Minibatch {
    MinibatchIndex minibatch;
    std::vector<PartitionId> partitions;
  };

  /// The partition has said that the part is in its rows, to a request that was sent under a map of
  /// the restore epoch `sent_under`.
  void Add(PartitionId partition, MinibatchIndex minibatch, RestoreEpoch sent_under);
  /// The partition has said that the part is not in its rows, as above. Said of a state before its
  /// newest restore, it means nothing.
  void Lose(PartitionId partition, MinibatchIndex minibatch, RestoreEpoch sent_under);
  /// The part is on its way again: it is lost no more, what its partition says counts.
  void Pushed(PartitionId partition, MinibatchIndex minibatch);
  /// Doubts what partitions have confirmed before their newest restore. To be given every map, in
  /// their order, the one at the grant first: what comes under a map is confirmed as of it.
  void TakeMap(const PartitionMap& map);
  /// What is doubted, by minibatch in ascending order, at most `limit` of them.
  std::vector<Minibatch> Doubted(size_t limit) const;
  /// What is lost, as above.
  std::vector<Minibatch> Lost() const;
  /// Lost parts are awaited no more: the run that was to push them again has ended without.
  void ForgetLost();

 private:
  using Bits = PooledVector<uint64_t>;  // 64 minibatches per word
  struct Partition {
    /// Of the newest restore that is known; what older states have confirmed is doubted.
    RestoreEpoch restored_at;
    Bits sure;
    Bits doubted;
    Bits lost;
  };
  Partition& At(PartitionId partition);
  static bool IsOutdated(const Partition& parts, RestoreEpoch restored_at);
  std::vector<Minibatch> Collect(Bits Partition::* which, size_t limit) const;

  std::vector<Partition> partitions_;  // by id
};

}  // namespace muster::sdk
