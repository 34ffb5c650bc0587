#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "master/core/workers/run_map.h"
#include "proto/messages/control.h"

namespace muster {

/// Says what partitions may forget (docs/protocol.md, section 3, rule 7): the COMMITTED training
/// shards whose tokens are all below the floor. Tokens of earlier master incarnations count as
/// issued for every shard. Tokens of this incarnation are kept until the shard is COMMITTED. An
/// epoch of which every shard is forgotten takes no room of its own. Pure; not thread-safe.
class Forgetting {
 public:
  /// Shards by epoch, and whole epochs.
  struct Shards {
    std::map<std::pair<DatasetId, EpochIndex>, IntervalSet> shards;
    std::map<DatasetId, IntervalSet> epochs;
    bool empty() const { return shards.empty() && epochs.empty(); }
  };

  /// `committed`: the training shards that were COMMITTED before this incarnation. `epoch_shards`:
  /// for each dataset, the shards of an epoch; 0: their number grows.
  Forgetting(MasterIncarnation incarnation, Shards committed, std::vector<uint64_t> epoch_shards);
  /// A training shard that is not COMMITTED is leased under `token`. The token may be older than an
  /// earlier one of the shard: its worker may still hold a lease of an earlier incarnation.
  void OnLeased(const ShardId& shard, LeaseToken token);
  /// A training shard became COMMITTED.
  void OnCommitted(const ShardId& shard);
  /// A partition serves an older state again and must be told again.
  void OnRestored() { restored_ = true; }
  /// Takes a new floor, and gives the state a new version if it now says more. `floor` is the
  /// smallest token of an outstanding lease, or the next token. Do not call it in the grace period.
  void Update(LeaseToken floor);
  /// version 0: nothing to forget yet.
  const ForgetState& state() const { return state_; }

 private:
  /// Forgets the shards [begin, end) of an epoch.
  void Forget(const std::pair<DatasetId, EpochIndex>& epoch, uint64_t begin, uint64_t end);
  /// Of an epoch's shards. Tokens and shards are granted in order, so there are few runs.
  using ByEpoch = std::map<std::pair<DatasetId, EpochIndex>, RunMap>;
  /// Forgets the shards below the floor. Returns true if there were any.
  bool ForgetRecovered(LeaseToken floor);
  bool ForgetWaiting(LeaseToken floor);

  std::vector<uint64_t> epoch_shards_;
  /// No token of an earlier incarnation is above it: each counts as issued for every shard.
  LeaseToken base_;
  /// Newest tokens of the shards that this incarnation leased and that are not COMMITTED: index ->
  /// token.
  ByEpoch newest_;
  /// COMMITTED, and with no token of this incarnation.
  Shards recovered_;
  /// COMMITTED, and with one: newest token -> index.
  ByEpoch waiting_;
  ForgetState state_;
  uint64_t versions_ = 0;
  bool restored_ = false;
};

}  // namespace muster
