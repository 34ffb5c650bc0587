#pragma once

#include "master/core/books.h"
#include "master/core/job_life.h"
#include "master/core/nodes/drains.h"
#include "master/core/nodes/node_report.h"
#include "master/core/workers/failures.h"
#include "master/core/workers/leasing.h"
#include "master/core/workers/worker_sessions.h"

namespace muster {

/// What the supervisor says of the processes of nodes: that they were started, that they have
/// ended, and how. It may come late, after the node's next process has been heard.
///
/// Owns nothing: the records are the node table's. Decides whether an exit is the trainer's own
/// doing or the node's, which is charged to nobody. Pure; not thread-safe.
class NodeReports {
 public:
  /// All of them outlive it.
  NodeReports(Books* books, Failures* failures, Leasing* leasing, JobLife* life, Drains* drains,
              WorkerSessions* sessions)
      : books_(books),
        failures_(failures),
        leasing_(leasing),
        life_(life),
        drains_(drains),
        sessions_(sessions) {}

  /// As MasterCore::ReportNode.
  void Take(const NodeReport& report, StepTime at);

 private:
  void Started(const NodeReport& report, Node* node, StepTime at);
  void Exited(const NodeReport& report, Node* node, StepTime at);
  /// Ends what the process held, and charges the shard that it crashed in.
  void WorkerExited(const NodeReport& report, const NodeRecord& record, StepTime at);

  Books* const books_;
  Failures* const failures_;
  Leasing* const leasing_;
  JobLife* const life_;
  Drains* const drains_;
  WorkerSessions* const sessions_;
};

}  // namespace muster
