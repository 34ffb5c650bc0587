#pragma once

#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "master/core/books.h"
#include "master/core/workers/hand_backs.h"

namespace muster {

/// Which shard is charged with a run that did not reach its end, and when a shard is FAILED.
///
/// Owns what it needs to name the shard of a crash that is reported late: the newest leases that
/// ended; and the counts of hand-backs. Keeps the rule on hand-backs (docs/protocol.md, section 7).
/// What is charged is journaled by the ledger, so a restart of the master forgives a few hand-backs
/// and no failure. Pure; not thread-safe.
class Failures {
 public:
  /// `books` outlives it.
  explicit Failures(Books* books) : books_(books) {}

  /// A run of a shard by a worker's process.
  struct Run {
    ShardId shard;
    WorkerKey worker;
  };

  /// Charges the shard, which is TODO, with the failure of its trainer under lease `token`. A
  /// failure that is told again changes nothing.
  void Charge(LeaseToken token, const Run& run, std::string_view reason, StepTime at);
  /// The trainer left the shard before its end by its own choice.
  void HandedBack(const ReturnedLease& returned, const WorkerKey& worker, StepTime at);
  /// The shard is DONE or lost: hand-backs that come later count anew.
  void Settle(const ShardId& shard) { hand_backs_.Forget(shard); }

  /// The lease ended, and not by its done.
  void Remember(LeaseToken token, const Run& run);
  /// The run of a lease that ended. nullptr: it is not known any more. Valid until the next call of
  /// Remember or Forget.
  const Run* Find(LeaseToken token) const;
  void Forget(LeaseToken token) { ended_.erase(token); }

  /// As MasterCore::RetryShards, for a job that is not over.
  absl::StatusOr<uint64_t> Retry(const std::vector<ShardId>& shards, StepTime at);

 private:
  Books* const books_;
  HandBacks hand_backs_;
  std::map<LeaseToken, Run> ended_;
};

}  // namespace muster
