#pragma once

#include <chrono>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "master/core/books.h"
#include "master/core/group_job/group_job.h"
#include "master/core/job_life.h"
#include "master/core/workers/leasing.h"

namespace muster {

/// Drains single nodes before their processes end. A worker is told to leave and gets no more
/// shards. A server takes snapshots of its partitions until they contain everything that was DONE
/// when the drain began, and continues to serve. Both drains end after a timeout at the latest.
///
/// Owns Node::drain. Only this class changes it, except that NodeTable ends it with the process. It
/// is not journaled, because safety does not depend on a drain (docs/architecture.md). Pure; not
/// thread-safe.
class Drains {
 public:
  /// All of them outlive it.
  Drains(const Books* books, NodeTable* nodes, Leasing* leasing, const JobLife* life,
         GroupJob* group)
      : books_(books), nodes_(nodes), leasing_(leasing), life_(life), group_(group) {}

  /// As MasterCore::DrainNode and ResumeNode.
  absl::StatusOr<NodeDrain> Drain(const std::string& name, std::chrono::milliseconds timeout,
                                  StepTime at);
  absl::Status Resume(const std::string& name, StepTime at);
  /// What the node's process must do: the same as all others, or leave.
  JobDirective DirectiveOf(const std::string& name) const;

  /// The worker gets its directive. `fresh`: its call lists what it holds now.
  void WorkerTold(const std::string& name, bool fresh, StepTime at);
  /// The server has reported what it has; `leaving`: it asks to be drained.
  void ServerHeard(Node* node, bool leaving, StepTime at);
  /// The process of the node has ended.
  void Exited(Node* node, StepTime at);
  void Tick(StepTime at);

 private:
  void Begin(Node* node, std::chrono::milliseconds timeout, StepTime at);
  /// Counts what is left, and ends the drain if nothing is left.
  void Advance(Node* node, StepTime at);
  void End(Node* node, StepTime at);
  /// Leases, or its place in the group, or partitions whose snapshots are behind.
  uint32_t CountLeft(const Node& node) const;

  const Books* const books_;
  NodeTable* const nodes_;
  Leasing* const leasing_;
  const JobLife* const life_;
  GroupJob* const group_;
};

}  // namespace muster
