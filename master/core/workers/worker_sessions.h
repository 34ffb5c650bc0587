#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "master/core/books.h"
#include "master/core/nodes/node_report.h"
#include "master/core/streams/streams.h"
#include "master/core/workers/leasing.h"

namespace muster {

/// The worker processes that this master knows: which of them speaks for its node, its last report,
/// and when it counts as dead.
///
/// Owns one session per process. Enforces docs/protocol.md, section 4: the leases of a process end
/// when another process replaces it, or when it is silent for the duration of a lease. Pure; not
/// thread-safe.
class WorkerSessions {
 public:
  /// All of them outlive it.
  WorkerSessions(const Books* books, NodeTable* nodes, JobTotals* totals, Leasing* leasing,
                 Streams* streams)
      : books_(books), nodes_(nodes), totals_(totals), leasing_(leasing), streams_(streams) {}

  /// As MasterCore::HelloWorker.
  absl::Status Begin(const WorkerKey& worker, StartNumber start, StepTime at);
  enum class Call : uint8_t {
    kNewest,
    kOvertaken,  // by a newer one of the process: it says nothing about what the worker holds now
  };
  /// A call of a process: it is alive, and reports what it measured. kFailedPrecondition if another
  /// process now has its name.
  absl::StatusOr<Call> Hear(const WorkerExchangeRequest& request, StepTime at);
  /// A call of a member of a group. Errors as Hear.
  absl::Status HearMember(const WorkerKey& worker, StepTime at);
  /// The processes that a report of an exit may mean, as far as is known.
  std::vector<WorkerKey> ProcessesOf(const NodeReport& report, const NodeRecord& record) const;
  /// Ends the leases of silent processes, and reports lost nodes.
  void Tick(StepTime at);
  /// Time passed in which no worker could be heard.
  void Forgive(std::chrono::nanoseconds gap, TimePoint now);

 private:
  /// One worker process as this master knows it.
  struct Session {
    uint64_t sequence = 0;
    TimePoint last_seen;
    /// As in MasterCore::HelloWorker.
    StartNumber start;
    /// Another process took over its node name.
    bool superseded = false;
    bool silent = false;
    /// Its last report about each server.
    std::map<ServerId, PeerTimes> peers;
    std::map<DatasetId, DelayHistogram> delays;
  };

  absl::Status CheckNotSuperseded(const WorkerKey& worker, const Session& session) const;
  Session& Touch(const WorkerKey& worker, StepTime at);
  /// The process has called. `newest`: the call, whose figures count; nullptr: they do not, or
  /// there are none.
  void HearNode(const WorkerKey& worker, const WorkerExchangeRequest* newest, StepTime at);
  void TakePeers(const WorkerExchangeRequest& request, Session* session);
  /// Keeps which servers the worker cannot reach now.
  void TakeUnreachable(const WorkerExchangeRequest& request, StepTime at);
  /// Keeps since when the worker cannot write outputs.
  void TakeUnwritten(const WorkerExchangeRequest& request, StepTime at);
  void TakeDelays(const WorkerExchangeRequest& request, TimePoint now, Session* session);
  /// True if the report of an exit is about this session's process. Requires that the process is of
  /// the report's node.
  static bool IsOf(const NodeReport& report, const NodeRecord& record, const WorkerKey& worker,
                   const Session& session);

  const Books* const books_;
  NodeTable* const nodes_;
  JobTotals* const totals_;
  Leasing* const leasing_;
  Streams* const streams_;
  std::map<WorkerKey, Session> sessions_;
  /// Names of servers that a worker cannot reach.
  std::set<std::string> unreachable_;
};

}  // namespace muster
