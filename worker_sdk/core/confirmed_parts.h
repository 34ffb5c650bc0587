#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/words/types.h"
#include "proto/messages/partition_map.h"
#include "worker_sdk/core/kept_memory.h"

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

  /// The partition has confirmed that the part is in its rows. The request was sent under a map of
  /// the restore epoch `sent_under`.
  void Add(PartitionId partition, MinibatchIndex minibatch, RestoreEpoch sent_under);
  /// The partition has answered that the part is not in its rows, as above. An answer about a state
  /// before its newest restore means nothing.
  void Lose(PartitionId partition, MinibatchIndex minibatch, RestoreEpoch sent_under);
  /// The part is sent again. So it is no longer lost, and the partition's answer counts.
  void Pushed(PartitionId partition, MinibatchIndex minibatch);
  /// Doubts what partitions have confirmed before their newest restore. Call it with every map, in
  /// order, beginning with the one at the grant: a confirmation counts as of its map.
  void TakeMap(const PartitionMap& map);
  /// The doubted parts, by minibatch in ascending order, at most `limit`.
  std::vector<Minibatch> Doubted(size_t limit) const;
  /// The lost parts, as above.
  std::vector<Minibatch> Lost() const;
  /// No longer waits for lost parts: the run that should push them again has ended without them.
  void ForgetLost();

 private:
  using Bits = PooledVector<uint64_t>;  // 64 minibatches per word
  struct Partition {
    /// The newest known restore; confirmations of older states are doubted.
    RestoreEpoch restored_at;
    Bits sure;
    Bits doubted;
    Bits lost;
  };
  Partition& At(PartitionId partition);
  std::vector<Minibatch> Collect(Bits Partition::* which, size_t limit) const;

  std::vector<Partition> partitions_;  // by id
};

}  // namespace muster::sdk
