#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "master/core/books.h"
#include "master/core/workers/failures.h"
#include "master/core/workers/forgetting.h"
#include "master/core/workers/grace_period.h"
#include "master/core/workers/lease_table.h"

namespace muster {

/// Decides which worker process has which shard on lease: from the grant, or the re-assertion after
/// a restart of the master, to the end.
///
/// Owns the leases, the tokens, the grace period, what partitions may forget (this follows from the
/// tokens), and what each worker process knows of its leases. Enforces of docs/protocol.md: the
/// lease (section 2, rule 1), forgetting (section 3, rule 7), expiry and re-assertion (section 4),
/// and from section 7: a lease that its worker does not list has ended, the largest age of a lease,
/// and the end of an evaluation whose training is replayed. Pure; not thread-safe.
class Leasing {
 public:
  static constexpr uint32_t kGrantsPerCallMax = 10'000;

  /// All of them outlive it. `committed`: the training shards that were COMMITTED when the master
  /// began.
  Leasing(const Books* books, Ledger* ledger, JobTotals* totals, Failures* failures,
          Forgetting::Shards committed);
  Leasing(const Leasing&) = delete;
  Leasing& operator=(const Leasing&) = delete;

  const LeaseTable& table() const { return table_; }
  const GracePeriod& grace() const { return grace_; }
  GracePeriod& grace() { return grace_; }
  const Forgetting& forgetting() const { return forgetting_; }
  Forgetting& forgetting() { return forgetting_; }
  /// The smallest token of any outstanding training lease, or the next token.
  LeaseToken Floor() const;
  /// From now on, tells what can be forgotten. There is nothing new in the grace period.
  void TellFloor();

  /// A token for work that is leased to nobody. Larger than every token before.
  LeaseToken NewToken();
  /// In a job with a group: tokens below this are in use no longer.
  void SetFloorOfSteps(LeaseToken floor) { floor_of_steps_ = floor; }
  /// What a worker needs to read the shard of a dataset that grows. The shell knows the layout of
  /// the others.
  ShardWork WorkOf(const ShardId& shard) const;

  /// A worker process is heard for the first time. All functions below that take a worker require
  /// this call, except EndOf().
  void Join(const WorkerKey& worker, TimePoint now);
  /// Forgets a worker process that was silent for too long. Requires that it holds nothing.
  void Leave(const WorkerKey& worker);

  /// Takes the leases that the process lists in its newest call. `lost`: those that it must drop.
  void TakeHeld(const WorkerExchangeRequest& request, const WorkerKey& worker, StepTime at,
                std::vector<LeaseToken>* lost);
  /// Takes the leases that the process hands back. `directive` is what it was told to do: if it was
  /// told to leave, a shard that it leaves is no failure. If the job cannot continue, returns why,
  /// and does not take the rest.
  std::optional<std::string> TakeReturned(const WorkerExchangeRequest& request,
                                          const WorkerKey& worker, JobDirective directive,
                                          StepTime at);
  struct Allowance {
    /// Most grants in one answer, repeated or new.
    uint32_t shards = 0;
    /// False if memory allows no new grants.
    bool with_new = true;
  };
  /// Repeats grants that the process has not seen, then grants the next shards.
  void Grant(const WorkerExchangeRequest& request, const WorkerKey& worker, Allowance allowance,
             StepTime at, WorkerExchangeReply* reply);

  /// True if the done was accepted before. Requires: its shard is valid.
  bool WasAccepted(const DoneReport& done, const WorkerKey& worker) const;
  /// The lease under which the process reports the shard as done; the report may re-assert it. The
  /// shard must be valid. nullptr if there is no lease. Valid until the next call.
  const Lease* LeaseOfDone(const DoneReport& done, const WorkerKey& worker, StepTime at);
  /// The process is told to verify its pushes again. That counts as progress once per restore.
  /// Requires a lease.
  void Reverify(LeaseToken token, TimePoint now);
  /// The done of the lease is accepted. The caller changes the state of the shard. Requires a
  /// lease.
  void Finish(LeaseToken token, TimePoint now);

  /// Why an unfinished lease ends; its shard is TODO again.
  enum class EndCause : uint8_t { kReturned, kDropped, kNodeFailure, kTrainerFailure };
  void EndOf(const WorkerKey& worker, EndCause cause);
  /// Ends all of them.
  void EndAll();
  /// The job is over: ends all leases, and accepts no re-assertion from now on.
  void Close();
  /// Ends the evaluate leases whose weights lack shards that are replayed now; returns how many.
  size_t EndOutdatedEvaluations(const std::vector<DoneShard>& replayed);
  /// Ends the leases that have made no progress for the largest age of a lease.
  void ExpireStuck(StepTime at);
  /// The run of a lease that a process of the worker had when it died, after this many minibatches.
  /// None if it is not known.
  std::optional<Failures::Run> RunOf(LeaseToken token, const std::string& worker,
                                     uint32_t minibatches_started);

  /// Partitions are restored.
  void OnRestored(TimePoint now);
  /// Time passed that is no worker's fault.
  void Forgive(std::chrono::nanoseconds gap, TimePoint now);

 private:
  /// Near a moment at which shards must be waited for, a worker holds fewer, down to one, so that
  /// no worker has a queue while others have nothing. Source: Polychronopoulos and Kuck, "Guided
  /// self-scheduling", IEEE Transactions on Computers, 1987, with half of the share.
  bool MayHoldMore(const WorkerKey& worker) const;
  /// The state of one worker process.
  struct Holder {
    /// When any of its leases last changed; shards in its queue age from here.
    TimePoint progress_at;
    /// Tokens whose done was accepted, which the process may not know yet.
    absl::flat_hash_set<LeaseToken> accepted;
    /// A shortage of its node was reported since it last finished a shard.
    bool shortage_told = false;
  };

  LeaseToken NextToken() const;
  /// True if a lease that the master does not know may continue, and a done of it count.
  bool MayReassert(const HeldLease& held) const;
  /// The floor that partitions may use; none: it does not change now.
  std::optional<LeaseToken> FloorToTell() const;

  /// The shard is leased in the queue.
  void Begin(Lease lease);
  Lease* Reassert(const HeldLease& held, const WorkerKey& worker, StepTime at);
  /// Makes it a lease, unless another worker rightly has the shard; then nullptr.
  Lease* Adopt(const HeldLease& held, const WorkerKey& worker, StepTime at);
  void Update(const HeldLease& held, const Lease& lease, TimePoint now);
  void End(LeaseToken token, EndCause cause);
  void TellShortage(const ReturnedLease& returned, const WorkerKey& worker, StepTime at);

  const Books* const books_;
  Ledger* const ledger_;
  JobTotals* const totals_;
  Failures* const failures_;
  LeaseTable table_;
  Forgetting forgetting_;
  GracePeriod grace_;
  std::map<WorkerKey, Holder> holders_;
  uint64_t token_count_ = 0;
  bool closed_ = false;
  /// None: tokens of an earlier master may be in use.
  std::optional<LeaseToken> floor_of_steps_;
};

}  // namespace muster
