#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "base/planted_bug.h"
#include "master/core/books.h"
#include "master/core/workers/failures.h"
#include "master/core/workers/forgetting.h"
#include "master/core/workers/grace_period.h"
#include "master/core/workers/lease_table.h"

namespace muster {

/// Which worker process has which shard on lease: from the grant, or the re-assertion after a
/// restart of the master, to the end.
///
/// Owns the leases, the tokens, the grace period, what partitions may forget (it follows from the
/// tokens), and what each worker process knows of its leases. Keeps of docs/protocol.md: the lease
/// (section 2, rule 1), forgetting (section 3, rule 7), expiry and re-assertion (section 4), and of
/// section 7 that a lease which its worker does not list has ended, the largest age of a lease, and
/// the end of an evaluation whose training is replayed. Pure; not thread-safe.
class Leasing {
 public:
  static constexpr uint32_t kGrantsPerCallMax = 10'000;

  /// `books` and `failures` outlive it. `committed`: the training shards that were COMMITTED when
  /// the master began.
  Leasing(Books* books, Failures* failures, Forgetting::Shards committed);
  Leasing(const Leasing&) = delete;
  Leasing& operator=(const Leasing&) = delete;

  const LeaseTable& table() const { return table_; }
  const GracePeriod& grace() const { return grace_; }
  GracePeriod& grace() { return grace_; }
  const Forgetting& forgetting() const { return forgetting_; }
  Forgetting& forgetting() { return forgetting_; }
  /// The smallest token of any outstanding training lease, or the next token.
  LeaseToken Floor() const;
  /// What can be forgotten by now is told from now on. Nothing new in the grace period.
  void TellFloor();

  /// A worker process is heard of for the first time. Required by all that names a worker below,
  /// but for EndOf().
  void Join(const WorkerKey& worker, TimePoint now);
  /// Nothing was heard of it for so long that it is forgotten. Requires that it holds nothing.
  void Leave(const WorkerKey& worker);

  /// What the process says that it holds, in its newest call. `lost`: what it must drop.
  void TakeHeld(const WorkerExchangeRequest& request, const WorkerKey& worker, StepTime at,
                std::vector<LeaseToken>* lost);
  /// What the process gives up. `directive`: what it is to do; who is to leave is not to blame for
  /// leaving shards. Returns why the job cannot go on, if so; what was returned after that is not
  /// taken.
  std::optional<std::string> TakeReturned(const WorkerExchangeRequest& request,
                                          const WorkerKey& worker, JobDirective directive,
                                          StepTime at);
  struct Allowance {
    /// So many in one answer at most, granted again or new.
    uint32_t shards = 0;
    /// None is new while memory does not allow it.
    bool with_new = true;
  };
  /// Grants again what the process has not seen, then what is next.
  void Grant(const WorkerExchangeRequest& request, const WorkerKey& worker, Allowance allowance,
             StepTime at, WorkerExchangeReply* reply);

  /// Whether the done was accepted before. Requires that its shard is valid.
  bool WasAccepted(const DoneReport& done, const WorkerKey& worker) const;
  /// The lease under which the process reports the shard, which must be valid, as done; it may be
  /// re-asserted by that. nullptr: it has none. Valid until the next call.
  const Lease* LeaseOfDone(const DoneReport& done, const WorkerKey& worker, StepTime at);
  /// The process is told to look again at what it pushed: that counts as progress, once per
  /// restore. Requires a lease.
  void Reverify(LeaseToken token, TimePoint now);
  /// The done of the lease is accepted. What becomes of its shard is the caller's. Requires a
  /// lease.
  void Finish(LeaseToken token, TimePoint now);

  /// How a lease ends that is not finished; its shard is TODO again.
  enum class EndCause : uint8_t { kReturned, kDropped, kNodeFailure, kTrainerFailure };
  void EndOf(const WorkerKey& worker, EndCause cause);
  /// Ends all of them.
  void EndAll();
  /// The job is over: ends all of them, and nothing is re-asserted from now on.
  void Close();
  /// Ends the evaluate leases whose weights lack what is replayed now; returns how many.
  size_t EndOutdatedEvaluations(const std::vector<DoneShard>& replayed);
  /// Ends the leases that have made no progress for the largest age of a lease.
  void ExpireStuck(StepTime at);
  /// The run of the lease, which a process of the worker had when it died after so many
  /// minibatches. None: it is not known any more, or never was.
  std::optional<Failures::Run> RunOf(LeaseToken token, const std::string& worker,
                                     uint32_t minibatches_started);

  /// Partitions begin anew.
  void OnRestored(TimePoint now);
  /// Time passed for which no worker is to blame.
  void Forgive(std::chrono::nanoseconds gap, TimePoint now);

 private:
  /// What is known of one worker process.
  struct Holder {
    /// When any of its leases last changed: what waits in its queue ages from here.
    TimePoint progress_at;
    /// Tokens whose done was accepted and that the process may not know of yet.
    absl::flat_hash_set<LeaseToken> accepted;
    /// What its node lacks was told since it last finished a shard.
    bool shortage_told = false;
  };

  LeaseToken NextToken() const;
  /// Whether shards may be granted, as to the time.
  bool MayGrant() const;
  /// Whether a lease that the master does not know may go on.
  bool MayReassert(const HeldLease& held) const;
  /// Whether the done of a lease that the master does not know may count.
  bool MayFinish(const HeldLease& held) const;
  /// Whether a lease of this master that has ended goes on.
  bool IsRevivable(const HeldLease& held) const;
  /// Whether leases end because they make no progress.
  static bool AgesOut();
  /// The floor that partitions may take over; none: it rests.
  std::optional<LeaseToken> FloorToTell() const;
  MUSTER_PLANTED_BODY(bool LowersFloor(std::optional<LeaseToken>* floor) const);

  /// The shard is leased in the queue.
  void Begin(Lease lease);
  Lease* Reassert(const HeldLease& held, const WorkerKey& worker, StepTime at);
  /// Makes it a lease unless the shard is another's by right. nullptr: it is.
  Lease* Adopt(const HeldLease& held, const WorkerKey& worker, StepTime at);
  void Update(const HeldLease& held, const Lease& lease, TimePoint now);
  void End(LeaseToken token, EndCause cause);
  void TellShortage(const ReturnedLease& returned, const WorkerKey& worker, StepTime at);
  /// Of a dataset that grows; of a layout the shell knows it.
  ShardWork WorkOf(const ShardId& shard) const;

  Books* const books_;
  Failures* const failures_;
  LeaseTable table_;
  Forgetting forgetting_;
  GracePeriod grace_;
  std::map<WorkerKey, Holder> holders_;
  uint64_t token_count_ = 0;
  /// Of every shard.
  [[no_unique_address]] PlantedMemory<ShardId, LeaseToken> newest_grant_;
  bool closed_ = false;
};

}  // namespace muster
