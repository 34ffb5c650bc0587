#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "master/core/books.h"
#include "master/core/core_options.h"
#include "master/core/durable_state.h"
#include "master/core/epoch_ends.h"
#include "master/core/group_job/group_job.h"
#include "master/core/group_job/group_shards.h"
#include "master/core/job_life.h"
#include "master/core/nodes/drains.h"
#include "master/core/nodes/node_report.h"
#include "master/core/nodes/node_reports.h"
#include "master/core/nodes/standstill.h"
#include "master/core/run_clock.h"
#include "master/core/servers/map_teller.h"
#include "master/core/servers/servers.h"
#include "master/core/servers/snapshots.h"
#include "master/core/streams/stream_look.h"
#include "master/core/streams/streams.h"
#include "master/core/table_registry.h"
#include "master/core/workers/dones.h"
#include "master/core/workers/failures.h"
#include "master/core/workers/leasing.h"
#include "master/core/workers/worker_sessions.h"
#include "proto/messages/control.h"

namespace muster {

/// The master as a deterministic state machine: docs/protocol.md sections 2 to 5 and 7 for the
/// master's side, without moves. Every public method that is not const is one step. A step changes
/// the state at once, and keeps the mutations to journal and the names of snapshot files to delete.
/// The caller takes both, journals the mutations (synced, all or nothing), and only then sends the
/// answers of these steps. Several steps may share one sync.
///
/// It consists of parts, each with its own state, rules and tests. State that several parts use is
/// in the Books. This class splits a step and passes the pieces to the parts. A part calls only
/// parts that are above it in the list of members.
///
/// It never reads a clock, and checks ids from the network. Not thread-safe: it has one owner.
class MasterCore {
 public:
  static constexpr uint32_t kGrantsPerCallMax = Leasing::kGrantsPerCallMax;

  /// Checks that `options` can continue from `state`; the error says what to do.
  static absl::Status CheckFits(const CoreOptions& options, const DurableState& state);
  /// Starts the next master incarnation from the journal's state. Requires CheckFits().ok().
  MasterCore(CoreOptions options, DurableState state, StepTime at);
  /// Shows the journal's state as it is: for views of a job that does not run. No step may follow.
  struct AsFound {};
  MasterCore(CoreOptions options, DurableState state, AsFound);

  // Workers.
  /// A worker process begins. An earlier process of the same node counts as dead.
  /// kResourceExhausted if too many nodes are live.
  ///
  /// `start` is the start number of the process; 0: not known. If a newer process of the node is
  /// known, this one is dead: kFailedPrecondition, and nothing changes.
  absl::Status HelloWorker(const WorkerKey& worker, StartNumber start, StepTime at);
  /// Returns the table's id. kAlreadyExists shows both specs if they differ. kInvalidArgument names
  /// an invalid field. A spec with a warm start but without its hash asks for a table that is
  /// already known; kNotFound means that it is not known, and that the hash must be given. Any
  /// other refusal ends the job as FAILED if nobody trains: the trainer would only be restarted
  /// until it counts as a crash loop. While others train, a single wrong process is refused alone.
  absl::StatusOr<TableId> RegisterTable(const TableSpec& table, StepTime at);
  /// Heartbeat, leases, dones. Grants have no `work`, which the caller adds; TellMap adds the map.
  /// kFailedPrecondition for a process whose name another process now has.
  absl::StatusOr<WorkerExchangeReply> ExchangeWorker(const WorkerExchangeRequest& request,
                                                     StepTime at);
  /// What the answer to an exchange says about the map, in the same step; null: nothing.
  std::shared_ptr<const MapNews> TellMap(const WorkerExchangeRequest& request) {
    return map_teller_.For(request.map_version, request.map_base);
  }

  // Members of a synchronous group.
  /// A call of a member (GroupCore::Exchange). kFailedPrecondition if the job has no group, or for
  /// a process whose name another process now has.
  absl::Status ExchangeGroup(const GroupExchangeRequest& request, StepTime at);
  /// The number of the newest answer for the process; 0: the process is not known.
  uint64_t GroupNewsFor(const WorkerKey& worker) const;
  /// Whether a call that was taken at `since` is to be answered now: there is news for the process,
  /// it has sent a newer call, or the longest time between two calls is over.
  bool IsGroupCallDue(const GroupExchangeRequest& call, TimePoint since, TimePoint now) const;
  /// The answer to a call, in the step after which it may leave. Of a dataset of files, `work.work`
  /// is empty: the caller describes the shard, and the one of `GroupAhead`.
  GroupExchangeReply GroupReplyFor(const WorkerKey& worker) const;
  std::optional<ShardId> GroupAhead() const;
  /// nullptr: the job has no group.
  const GroupCore* group() const { return group_.on() ? &group_.core() : nullptr; }
  /// Nothing is wrong in a job without a group.
  const GroupStores& group_stores() const { return group_.stores(); }

  // Servers.
  /// Gives the process its incarnation. kFailedPrecondition if another process has replaced it, or
  /// if the job has no such server.
  absl::StatusOr<RegisterServerReply> RegisterServer(const RegisterServerRequest& request,
                                                     StepTime at);
  ServerExchangeReply ExchangeServer(const ServerExchangeRequest& request, StepTime at);

  // Streams.
  /// Takes a look at a stream, and cuts the ranges that are due. Other datasets are ignored.
  void TakeLook(const StreamLook& look, StepTime at);

  // Operators and the supervisor.
  void ReportNode(const NodeReport& report, StepTime at);
  /// FAILED -> TODO for `shards`, or for all of them when it is empty; returns how many.
  absl::StatusOr<uint64_t> RetryShards(const std::vector<ShardId>& shards, StepTime at);
  void Drain(StepTime at);
  /// Drains one worker or server (see AdminService.DrainNode); a repeat changes nothing. Returns
  /// how far the drain is. `timeout` 0: the job's drain timeout. kNotFound, kInvalidArgument (the
  /// master), kFailedPrecondition (no process, or the job is over).
  absl::StatusOr<NodeDrain> DrainNode(const std::string& name, std::chrono::milliseconds timeout,
                                      StepTime at);
  /// Cancels the drain of a server. kFailedPrecondition for a worker that has heard of its drain.
  absl::Status ResumeNode(const std::string& name, StepTime at);
  using CancelOptions = JobLife::CancelOptions;
  /// Ends the job; a repeat changes nothing. kFailedPrecondition if the job has ended in another
  /// way. With `as_failed`, a job that is over is no error, because the caller only wants it to
  /// end.
  absl::Status Cancel(const CancelOptions& options, StepTime at);

  /// Handles expiry, lost nodes, the end of the grace period, and forgetting. Call it about every
  /// 50 ms.
  void Tick(StepTime at);

  /// The mutations that must be in the journal before an answer of the steps so far is sent.
  std::vector<Mutation> TakeMutations();
  /// Snapshot files (relative names) that no manifest names any more; delete them after the sync.
  std::vector<std::string> TakeUnusedFiles();

  // Views; every one is valid until the next step.
  MasterIncarnation incarnation() const { return books_.incarnation; }
  JobState state() const { return life_.state(); }
  const std::string& reason() const { return life_.reason(); }
  bool in_grace_period() const { return leasing_.grace().on(); }
  /// True if this start began a new run of the supervisor: no process of an older run lives.
  bool new_run() const { return new_run_; }
  const Ledger& ledger() const { return books_.ledger; }
  const LeaseTable& leases() const { return leasing_.table(); }
  const PartitionTable& partitions() const { return books_.partitions; }
  const KeptEpochs& kept() const { return epoch_ends_.kept(); }
  const EpochEnds& epoch_ends() const { return epoch_ends_; }
  const NodeTable& nodes() const { return books_.nodes; }
  const EventLog& events() const { return books_.events(); }
  const std::map<TableId, TableSpec>& tables() const { return tables_.tables(); }
  const JobTotals& totals() const { return books_.totals; }
  /// What is known of the topic of a dataset; null if nothing is known yet, or if it is no topic.
  const StreamTold* ToldOf(DatasetId dataset) const { return streams_.ToldOf(dataset); }
  const ForgetState& forget_state() const { return leasing_.forgetting().state(); }
  const CoreOptions& options() const { return books_.options; }
  /// Which process may be why the job stands still (Standstill::Text); empty: none is known.
  std::string StandstillText(TimePoint now) const {
    return life_.over() ? "" : standstill_.Text(books_.nodes.nodes(), now);
  }
  TimePoint started_at() const { return started_at_; }
  /// How long the job has run at `at`, all runs together. If the job is over, or is only shown:
  /// until its last news.
  std::chrono::milliseconds RunningFor(StepTime at) const;

 private:
  /// No worker has a shard, and none may have one that the master has not heard of.
  bool NobodyTrains() const;
  MasterCore(CoreOptions options, MasterIncarnation incarnation, DurableState&& state, StepTime at);
  void Begin(const std::optional<MetaRecord>& meta, StepTime at);
  void BeginRun(StepTime at);
  void GoOn(const MetaRecord& meta, StepTime at);
  /// This process stood still, so the silence is no fault of the others.
  void ForgiveOwnPause(TimePoint now);
  MetaRecord Meta() const;
  /// The time of the newest event.
  std::optional<WallTime> LastWord() const;
  /// Aborts unless exactly the leased shards have a lease, and no number shrinks that must not
  /// (docs/protocol.md). `meta` is the next record for the journal.
  void CheckBooks(const MetaRecord& meta) const;

  Books books_;
  TableRegistry tables_;
  Failures failures_;
  Leasing leasing_;
  Dones dones_;
  EpochEnds epoch_ends_;
  JobLife life_;
  Snapshots snapshots_;
  GroupShards group_shards_;
  GroupJob group_;
  Drains drains_;
  Streams streams_;
  WorkerSessions sessions_;
  Servers servers_;
  MapTeller map_teller_;
  NodeReports reports_;
  Standstill standstill_;

  bool new_run_ = false;
  RunClock run_clock_;
  TimePoint started_at_;
  /// The meta record as last journaled, and when.
  std::optional<MetaRecord> collected_;
  TimePoint meta_at_;
  TimePoint now_;
  TimePoint ticked_at_;
};

}  // namespace muster
