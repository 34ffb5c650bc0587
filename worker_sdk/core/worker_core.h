#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "proto/messages/control.h"
#include "worker_sdk/core/confirmed_parts.h"
#include "worker_sdk/core/held_rows.h"
#include "worker_sdk/core/lease_pace.h"
#include "worker_sdk/core/part_sender.h"
#include "worker_sdk/core/step_pushes.h"

namespace muster::sdk {

/// Why a shard is given up.
struct ShardFailure {
  std::string reason;
  /// No retry can help: the job fails with it.
  bool fatal = false;
  /// The node lacks something that comes back (file descriptors, memory, disk), and the shard is
  /// not to blame: it is handed back, and no failure.
  bool shortage = false;
};

/// A shard given to the trainer: everything about its run.
struct ShardRun {
  ShardGrant grant;
  RunNumber run;
  /// The minibatches that a restore has undone, ascending: only these run again. Empty: all of
  /// them.
  std::vector<MinibatchIndex> minibatches{};

  bool Has(MinibatchIndex minibatch) const {
    return minibatches.empty() || std::ranges::binary_search(minibatches, minibatch);
  }
};

/// The worker's half of docs/protocol.md: leases, runs, parts, dones. Pure: events are its methods,
/// effects are what BeginExchange and Flush return. Not thread-safe.
///
/// A lease is queued (granted), computing (a trainer's thread is in its loop), pushing (the loop
/// has left it, parts or the verdict on its done are outstanding), or gone. A done names the R of
/// the map whose owners are known to have every part; after a restore the partitions concerned are
/// asked, and only the minibatches that they lack run again, under the same token. Everything held
/// is listed in every exchange, which is also how it is re-asserted after a restart of the master.
class WorkerCore {
 public:
  struct Options {
    std::string worker;
    uint64_t incarnation = 0;
    /// Shards to hold besides those in loops, at least: LeasePace. 0: none.
    uint32_t shards_ahead = 2;
    std::chrono::milliseconds heartbeat_interval{500};
  };
  explicit WorkerCore(Options options)
      : options_(std::move(options)), pace_(options_.shards_ahead) {}

  // ---- the trainer's loops ----

  /// The next shard to compute, if one is queued: a re-run before everything else.
  std::optional<ShardRun> TakeShard();
  /// The shards among the next `most` that were not returned here before, in order. Their records
  /// may be fetched.
  std::vector<ShardWork> TakeSoon(size_t most);
  /// How many loops wait for a shard.
  void SetWaiting(uint32_t loops) { waiting_loops_ = loops; }
  /// The lease is held and in this run.
  bool Holds(LeaseToken token, RunNumber run) const {
    const auto held = held_.find(token);
    return step_pushes_.Is(run) || (held != held_.end() && held->second.run == run);
  }
  /// The lease is held, and what the run has pulled has every push that was DONE at its grant.
  bool SawAllPushes(LeaseToken token, RunNumber run) const;
  /// The loop gets its next minibatch. False: the lease is lost.
  bool StartMinibatch(LeaseToken token, RunNumber run);
  /// The loop commits a minibatch; a batch without parts counts as acknowledged. Returns false, and
  /// sends nothing, when the lease is lost. `born`: when its records were made, as far as that is
  /// known. Their delays are counted when the last part is acknowledged.
  bool CommitMinibatch(LeaseToken token, RunNumber run, MinibatchIndex minibatch,
                       std::shared_ptr<const RowBatch> batch, TimePoint now,
                       PooledVector<TimePoint> born = {});
  /// The loop has committed every minibatch of its run: the done follows when every part is in the
  /// rows. The metrics of the first run count, later ones are of a part of the shard. Returns a
  /// text for the user, or an empty one: it names minibatches that ran again for a partition that
  /// had lost their part, but pushed nothing there.
  std::string CompleteShard(LeaseToken token, RunNumber run, ShardMetrics metrics);
  /// The loop gives the shard up: it failed, or (no `failure`) was left before its end.
  void GiveUp(LeaseToken token, RunNumber run, std::optional<ShardFailure> failure = {});
  /// A member of a group works on this run of a step, which has no lease. Holds is true of it, and
  /// nothing waits for the pushes of earlier runs any more. 0: it works on none.
  void BeginStepRun(RunNumber run);
  /// The step's loop commits a minibatch. Returns false, and sends nothing, if the run is over.
  bool CommitStepMinibatch(const PushIdentity& push, std::shared_ptr<const RowBatch> batch,
                           TimePoint now);
  const StepPushes& step_pushes() const { return step_pushes_; }
  /// Shards cannot be read here for a while. Requests none before `until`.
  void RestUntil(TimePoint until) { rest_until_ = std::max(rest_until_, until); }

  // ---- pulls ----

  DeliveryId StartPull(std::shared_ptr<const RowBatch> batch, TimePoint now) {
    return sender_.AddPull(std::move(batch), now);
  }
  bool PullReady(DeliveryId id) const { return sender_.Finished(id); }
  PullRows TakePull(DeliveryId id) { return sender_.TakePull(id); }
  void CancelPull(DeliveryId id) { sender_.Cancel(id); }

  // ---- the data plane ----

  /// `text`: what the server said about a bad request; it fails the shard whose push it was, or is
  /// returned when it was a pull's.
  void OnReply(const SendRequest& request, std::span<const wire::PartReply> parts,
               const ReceivedRows& rows, std::string_view text, TimePoint now);
  /// See PartSender.
  RowMoves PlaceRows(RequestId id, std::span<const wire::PartReply> parts,
                     const ReceivedRows& rows) {
    return sender_.PlaceRows(id, parts, rows);
  }
  void OnUnanswered(RequestId id, TimePoint now) { sender_.OnUnanswered(id, now); }
  /// The server calls the request's frame malformed; `text` is its message. If that happens too
  /// often, the shard fails, or it becomes failure(), as with OnReply's bad request.
  void OnRefused(const SendRequest& request, std::string_view text, TimePoint now);
  SendRequests Flush(TimePoint now) { return sender_.Flush(now); }
  std::optional<TimePoint> NextFlush() const { return sender_.NextDue(); }

  // ---- the control plane ----

  /// When the next exchange is due; TimePoint::max() during an exchange, and after END.
  TimePoint NextExchange(TimePoint now) const;
  /// The request to make now. One exchange at a time: OnExchangeReply or OnExchangeFailed follows.
  WorkerExchangeRequest BeginExchange(const WorkerTimes& times, TimePoint now);
  /// Takes the answer. One from an older master than seen before is ignored.
  void OnExchangeReply(const WorkerExchangeReply& reply, TimePoint now);
  void OnExchangeFailed(TimePoint now);
  /// Takes no more shards, and hands back the queued ones. Shards in loops continue.
  void Leave();
  /// As Leave, but also hands back the shards in loops, and returns their leases. Shards that loops
  /// have completed are still finished.
  std::vector<LeaseToken> EndLoops();
  /// As EndLoops, but also hands back the shards that are not yet acknowledged.
  void Abandon();

  // ---- state ----

  bool ended() const { return ended_; }
  bool draining() const { return leaving_; }
  /// True if nothing is held, no report waits for the master, and no pending answer may bring a
  /// grant.
  bool idle() const { return held_.empty() && returned_.empty() && !exchanging_; }
  size_t outstanding_pushes() const { return sender_.outstanding_pushes(); }
  /// True if a minibatch may begin to gather about so many floats of gradients, beside the
  /// unacknowledged ones. It has waited since `since` (next_delivery() at that time). Later pushes
  /// of other loops do not delay it, because otherwise it could wait without end.
  bool MayGather(uint64_t floats, DeliveryId since) const {
    return MayHold(outstanding_pushes() + 1, outstanding_push_floats() + floats) ||
           !sender_.PushesBefore(since);
  }
  DeliveryId next_delivery() const { return sender_.next_delivery(); }
  uint64_t outstanding_push_floats() const { return sender_.outstanding_push_floats(); }
  const std::shared_ptr<const PartitionMap>& map() const { return map_; }
  /// The first error that no retry helps against: a pull that a server calls a bad request.
  const std::string& failure() const { return failure_; }
  size_t queued() const { return queue_.size(); }

 private:
  struct Held {
    ShardGrant grant;
    RunNumber run;
    bool told = false;  // TakeSoon has returned it
    LeasePhase phase = LeasePhase::kQueued;
    uint32_t minibatches_started = 0;
    std::set<DeliveryId, std::less<>, PoolAllocator<DeliveryId>> outstanding;  // pushes not yet OK
    bool completed = false;
    ShardMetrics metrics;
    /// How many minibatches of the first run an earlier lease has pushed.
    uint64_t pushed_before = 0;
    ConfirmedParts confirmed;
    /// R of the map whose owners have every part: the done is reported.
    std::optional<RestoreEpoch> settled_under;
    bool done() const { return settled_under.has_value(); }
  };
  struct Returned {
    ReturnedLease lease;
    bool told = false;  // in the present exchange
  };

  static std::vector<MinibatchIndex> ToRunAgain(const Held& held);
  bool KnowsOwnersSince(RestoreEpoch epoch) const;
  Held* Find(LeaseToken token, RunNumber run);
  DeliveryId AddPush(const PushIdentity& push, std::shared_ptr<const RowBatch> batch,
                     PooledVector<TimePoint> born, TimePoint now);
  void Drop(LeaseToken token);
  void Return(LeaseToken token, std::optional<ShardFailure> failure = {});
  /// Lets go of the lease, and tells the master so.
  void HandBackLease(ReturnedLease lease);
  void CountDelays(DatasetId dataset, const PooledVector<TimePoint>& born, TimePoint now);
  void Confirm(const PushIdentity& push, const PartSender::Outcome& outcome);
  void TakeMap(PartitionMap map, TimePoint now);
  void TakeChanges(const PartitionMapChanges& changes, TimePoint now);
  /// Checks if the owners of the newest map have every part of a completed run. Asks them, lets
  /// minibatches run again, or allows the done.
  void Settle(LeaseToken token);
  void Ask(LeaseToken token, const ConfirmedParts::Minibatch& doubted);
  void RunAgain(LeaseToken token);
  void OnVerdict(const DoneVerdict& verdict);
  void OnGrant(const ShardGrant& grant);
  void OnBadRequest(const SendRequest& request, std::string_view text);
  /// Hands back shards that other workers would begin sooner.
  void ReturnSurplus();
  uint32_t Wanted(TimePoint now) const;
  std::chrono::nanoseconds UrgentSpacing() const;

  Options options_;
  PartSender sender_;
  std::shared_ptr<const PartitionMap> map_;
  /// Changes have arrived that cannot be applied to it.
  bool wants_whole_map_ = false;
  std::map<LeaseToken, Held> held_;
  std::deque<LeaseToken> queue_;
  std::vector<Returned> returned_;
  struct Push {
    LeaseToken token;
    PooledVector<TimePoint> born;
  };
  absl::flat_hash_map<DeliveryId, Push> pushes_;
  StepPushes step_pushes_;
  std::map<DatasetId, DelayHistogram> delays_;  // since the process began
  LeasePace pace_;
  uint32_t waiting_loops_ = 0;
  MasterIncarnation master_;
  LeaseToken newest_grant_;
  uint64_t sequence_ = 0;
  bool exchanging_ = false;
  bool urgent_ = true;  // there is news or a request for the master
  uint32_t failures_ = 0;
  TimePoint last_exchange_{};
  TimePoint rest_until_{};
  TimePoint peers_due_{};                // when the figures of servers are due again
  std::optional<ServerId> newest_peer_;  // the last one told
  bool leaving_ = false;
  bool ended_ = false;
  std::string failure_;
};

}  // namespace muster::sdk
