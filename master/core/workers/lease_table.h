#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "base/clock.h"
#include "proto/messages/control.h"

namespace muster {

/// One process of a worker.
struct WorkerKey {
  std::string name;
  uint64_t incarnation = 0;
  friend auto operator<=>(const WorkerKey&, const WorkerKey&) = default;
};

struct Lease {
  ShardId shard;
  LeaseToken token;
  WorkerKey worker;
  /// The R that the worker was last told for this shard.
  RestoreEpoch restore_epoch;
  /// It is of an evaluate shard: the floor does not wait for it.
  bool evaluate = false;
  TimePoint granted_at;
  LeasePhase phase = LeasePhase::kQueued;
  uint32_t minibatches_started = 0;
  /// When the run, the phase or the minibatches last changed.
  TimePoint progress_at;
  /// Counted by the worker.
  RunNumber run;
};

/// The leases of this master incarnation; nothing of it is journaled. Pure; not thread-safe.
class LeaseTable {
 public:
  /// Requires that neither the token nor the shard has a lease.
  void Add(Lease lease);
  /// nullptr when there is none. Valid until the next Add or Remove.
  Lease* Find(LeaseToken token);
  const Lease* FindShard(const ShardId& shard) const;
  /// Takes the worker's report; returns true if it is progress. Requires Find(token) != nullptr.
  bool Update(const HeldLease& held, TimePoint now);
  /// Partitions are restored. This counts as progress of the shards that are being pushed, every
  /// time, because they wait for the partitions. It does not for shards that are being computed.
  void OnRestored(TimePoint now);
  /// Ends the lease and returns it. Requires Find(token) != nullptr.
  Lease Remove(LeaseToken token);

  /// The tokens of one worker process, ascending. A copy: the caller may end these leases in a
  /// loop.
  std::vector<LeaseToken> TokensOf(const WorkerKey& worker) const;
  size_t CountOf(const WorkerKey& worker) const;
  /// True if any process of this worker has leases.
  bool Holds(const std::string& worker) const;
  /// The smallest token of a lease on a training shard.
  std::optional<LeaseToken> OldestTrain() const;
  /// Tokens of leases that a worker has begun, with no news since `then` or earlier.
  std::vector<LeaseToken> BegunWithoutProgressSince(TimePoint then) const;
  /// Time passed that is no worker's fault. Every worker's progress counts as this much later, but
  /// not later than `now`.
  void Forgive(std::chrono::nanoseconds gap, TimePoint now);
  size_t train_count() const { return train_.size(); }
  size_t size() const { return leases_.size(); }
  /// By token, ascending.
  const std::map<LeaseToken, Lease>& leases() const { return leases_; }

 private:
  std::map<LeaseToken, Lease> leases_;
  absl::flat_hash_map<ShardId, LeaseToken> by_shard_;
  std::map<WorkerKey, absl::btree_set<LeaseToken>> by_worker_;
  absl::btree_set<LeaseToken> train_;
  absl::btree_set<LeaseToken> begun_;
};

}  // namespace muster
