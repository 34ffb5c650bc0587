#pragma once

#include "master/core/books.h"
#include "master/core/group_job/group_job.h"
#include "master/core/job_life.h"
#include "master/core/nodes/drains.h"
#include "master/core/nodes/node_report.h"
#include "master/core/workers/failures.h"
#include "master/core/workers/leasing.h"
#include "master/core/workers/worker_sessions.h"

namespace muster {

/// Takes the supervisor's reports on processes: that a process started, or ended, and how; that a
/// start has no process yet, and why. A report may come late, after the node's next process was
/// heard.
///
/// Owns nothing: the node table owns the records. Decides if an exit is a failure of the trainer,
/// or of the node, which counts for no shard. Pure; not thread-safe.
class NodeReports {
 public:
  /// All of them outlive it.
  NodeReports(const Books* books, NodeTable* nodes, Failures* failures, Leasing* leasing,
              JobLife* life, Drains* drains, const WorkerSessions* sessions, GroupJob* group)
      : books_(books),
        nodes_(nodes),
        failures_(failures),
        leasing_(leasing),
        life_(life),
        drains_(drains),
        sessions_(sessions),
        group_(group) {}

  /// As MasterCore::ReportNode.
  void Take(const NodeReport& report, StepTime at);

 private:
  void Started(const NodeReport& report, Node* node, StepTime at);
  void Exited(const NodeReport& report, Node* node, StepTime at);
  /// A wait is one event, however often it is reported.
  void Held(const NodeReport& report, Node* node, StepTime at);
  void Resized(const NodeReport& report, const Node& node, StepTime at);
  bool IsClusterAway() const;
  /// Where in its shard the trainer was, for people: the minibatch, from 1. Later runs of a shard
  /// have only some of its minibatches, so nothing is said of those.
  std::string PlaceText(const NodeReport& report, const ShardId& shard) const;
  /// Ends the leases of the process, and counts a failure of the shard in which it crashed.
  void WorkerExited(const NodeReport& report, const NodeRecord& record, StepTime at);

  const Books* const books_;
  NodeTable* const nodes_;
  Failures* const failures_;
  Leasing* const leasing_;
  JobLife* const life_;
  Drains* const drains_;
  const WorkerSessions* const sessions_;
  GroupJob* const group_;
};

}  // namespace muster
