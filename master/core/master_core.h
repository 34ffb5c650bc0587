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
#include "master/core/job_life.h"
#include "master/core/nodes/drains.h"
#include "master/core/nodes/node_report.h"
#include "master/core/nodes/node_reports.h"
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
/// the state at once and leaves behind what must be journaled and which snapshot files may go; the
/// caller takes both, journals the mutations (synced, all or nothing) and only then lets any answer
/// of these steps leave. Several steps may share one sync.
///
/// It is made of parts, each with its own state, rules and tests; what several of them keep is in
/// the Books. This class takes a step apart and hands the pieces to them, in the order in which
/// they build on one another: a part calls only those that stand above it in the list of members.
///
/// Never reads a clock; ids from the network are checked here. Not thread-safe: one owner.
class MasterCore {
 public:
  static constexpr uint32_t kGrantsPerCallMax = Leasing::kGrantsPerCallMax;

  /// Whether `options` can go on from `state`; the error says what to do.
  static absl::Status CheckFits(const CoreOptions& options, const DurableState& state);
  /// Starts the next master incarnation from the journal's state. Requires CheckFits().ok().
  MasterCore(CoreOptions options, DurableState state, StepTime at);
  /// Shows the journal's state as it is: for views of a job that does not run. No step may follow.
  struct AsFound {};
  MasterCore(CoreOptions options, DurableState state, AsFound);

  // Workers.
  /// A worker process begins. Another process of the same node that is known from before is taken
  /// for dead. kResourceExhausted when too many nodes have not ended.
  ///
  /// `start`: which process of the node it is; 0 = not known. One that is older than the newest
  /// heard of is dead: kFailedPrecondition, nothing changes.
  absl::Status HelloWorker(const WorkerKey& worker, StartNumber start, StepTime at);
  /// The table's id. kAlreadyExists shows both specs when they differ; kInvalidArgument names a
  /// senseless field. A spec with a warm start and without its hash asks for a table that is known
  /// already; kNotFound when it is not: the hash must be given.
  absl::StatusOr<TableId> RegisterTable(const TableSpec& table, StepTime at);
  /// Heartbeat, leases, dones. Grants come without `work`: the caller fills it in, and the map is
  /// TellMap's. kFailedPrecondition for a process whose name another one has taken.
  absl::StatusOr<WorkerExchangeReply> ExchangeWorker(const WorkerExchangeRequest& request,
                                                     StepTime at);
  /// What the answer to an exchange is to say of the map, in the same step; null: nothing.
  std::shared_ptr<const MapNews> TellMap(const WorkerExchangeRequest& request) {
    return map_teller_.For(request.map_version, request.map_base);
  }

  // Servers.
  /// Gives the process its incarnation. kFailedPrecondition when another process has taken its
  /// place since, or when the job has no such server.
  absl::StatusOr<RegisterServerReply> RegisterServer(const RegisterServerRequest& request,
                                                     StepTime at);
  ServerExchangeReply ExchangeServer(const ServerExchangeRequest& request, StepTime at);

  // Streams.
  /// Takes in a look, and cuts what is due. A look at what is no stream is ignored.
  void TakeLook(const StreamLook& look, StepTime at);

  // Operators and the supervisor.
  void ReportNode(const NodeReport& report, StepTime at);
  /// FAILED -> TODO for `shards`, or for all of them when it is empty; returns how many.
  absl::StatusOr<uint64_t> RetryShards(const std::vector<ShardId>& shards, StepTime at);
  void Drain(StepTime at);
  /// Empties one worker or server (AdminService.DrainNode says how); a repeat changes nothing.
  /// Returns how far it is. `timeout` 0: the job's drain timeout. kNotFound, kInvalidArgument (the
  /// master), kFailedPrecondition (no process, the job is over).
  absl::StatusOr<NodeDrain> DrainNode(const std::string& name, std::chrono::milliseconds timeout,
                                      StepTime at);
  /// Takes the drain of a server back. kFailedPrecondition for a worker that has heard of its own.
  absl::Status ResumeNode(const std::string& name, StepTime at);
  using CancelOptions = JobLife::CancelOptions;
  /// Ends the job; a repeat changes nothing. kFailedPrecondition when it has ended otherwise, but
  /// not for `as_failed`: who gives up a job that is over has nothing left to do.
  absl::Status Cancel(const CancelOptions& options, StepTime at);

  /// Expiry, lost nodes, the end of the grace period, forgetting. To be called every 50 ms or so.
  void Tick(StepTime at);

  /// What must be in the journal before any answer of the steps so far may leave.
  std::vector<Mutation> TakeMutations();
  /// Snapshot files (relative names) that no manifest names any more; to be deleted after the sync.
  std::vector<std::string> TakeUnusedFiles() { return snapshots_.TakeUnusedFiles(); }

  // Views; every one is valid until the next step.
  MasterIncarnation incarnation() const { return books_.incarnation; }
  JobState state() const { return life_.state(); }
  const std::string& reason() const { return life_.reason(); }
  bool in_grace_period() const { return leasing_.grace().on(); }
  /// This start began a new run of the supervisor: no process of an older one lives.
  bool new_run() const { return new_run_; }
  const Ledger& ledger() const { return books_.ledger; }
  const LeaseTable& leases() const { return leasing_.table(); }
  const PartitionTable& partitions() const { return books_.partitions; }
  const NodeTable& nodes() const { return books_.nodes; }
  const EventLog& events() const { return books_.events; }
  const std::map<TableId, TableSpec>& tables() const { return tables_.tables(); }
  const JobTotals& totals() const { return books_.totals; }
  /// What is known of the topic of a dataset; null: nothing yet, or it is none.
  const StreamTold* ToldOf(DatasetId dataset) const { return streams_.ToldOf(dataset); }
  const ForgetState& forget_state() const { return leasing_.forgetting().state(); }
  const CoreOptions& options() const { return books_.options; }
  TimePoint started_at() const { return started_at_; }
  /// For how long the job has run at `at`, all runs together; of one that is over, or is shown as
  /// found: until it was last heard of.
  std::chrono::milliseconds RunningFor(StepTime at) const;

 private:
  MasterCore(CoreOptions options, MasterIncarnation incarnation, DurableState&& state, StepTime at);
  void Begin(const std::optional<MetaRecord>& meta, StepTime at);
  void BeginRun(StepTime at);
  void GoOn(const MetaRecord& meta, StepTime at);
  /// This process stood still: nobody else is to blame for the silence.
  void ForgiveOwnPause(TimePoint now);
  MetaRecord Meta() const;
  /// When the newest event was told.
  std::optional<WallTime> LastWord() const;
  /// Aborts unless a shard is leased exactly when it has a lease, and nothing shrinks that must not
  /// (docs/protocol.md): `meta` is what the journal is to have next.
  void CheckBooks(const MetaRecord& meta) const;

  Books books_;
  TableRegistry tables_;
  Failures failures_;
  Leasing leasing_;
  Dones dones_;
  JobLife life_;
  Snapshots snapshots_;
  Drains drains_;
  Streams streams_;
  WorkerSessions sessions_;
  Servers servers_;
  MapTeller map_teller_;
  NodeReports reports_;

  bool new_run_ = false;
  RunClock run_clock_;
  TimePoint started_at_;
  /// The meta record as it was last told to the journal, and when.
  std::optional<MetaRecord> collected_;
  TimePoint meta_at_;
  TimePoint now_;
  TimePoint ticked_at_;
};

}  // namespace muster
