#pragma once

#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "master/core/books.h"
#include "master/core/workers/hand_backs.h"

namespace muster {

/// Decides for which shard a run that did not reach its end counts as a failure, and when a shard
/// is FAILED.
///
/// Owns the newest leases that ended, to find the shard of a crash that is reported late, and the
/// counts of hand-backs. Enforces the rule on hand-backs (docs/protocol.md, section 7). The ledger
/// journals failures, so a restart of the master forgets a few hand-backs but no failure. Pure; not
/// thread-safe.
class Failures {
 public:
  /// Both outlive it.
  Failures(const Books* books, Ledger* ledger) : books_(books), ledger_(ledger) {}

  /// A run of a shard by a worker's process.
  struct Run {
    ShardId shard;
    WorkerKey worker;
  };

  /// Counts a failure of the trainer under lease `token` for the shard, which must be TODO. A
  /// failure that is reported again changes nothing.
  void Charge(LeaseToken token, const Run& run, std::string_view reason, StepTime at);
  /// The trainer left the shard before its end by its own choice.
  void HandedBack(const ReturnedLease& returned, const WorkerKey& worker, StepTime at);
  /// The shard is DONE or lost: the count of its hand-backs starts again at 0.
  void Settle(const ShardId& shard) { hand_backs_.Forget(shard); }

  /// The lease ended without its shard being done.
  void Remember(LeaseToken token, const Run& run);
  /// The run of a lease that ended. nullptr: it is not known any more. Valid until the next call of
  /// Remember or Forget.
  const Run* Find(LeaseToken token) const;
  void Forget(LeaseToken token) { ended_.erase(token); }

  /// As MasterCore::RetryShards, for a job that is not over. A failure of a run before the retry is
  /// not charged afterwards.
  absl::StatusOr<uint64_t> Retry(const std::vector<ShardId>& shards, StepTime at);

 private:
  const Books* const books_;
  Ledger* const ledger_;
  HandBacks hand_backs_;
  std::map<LeaseToken, Run> ended_;
};

}  // namespace muster
