#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "job/policy_options.h"
#include "scaler/policy/policy.h"

namespace muster::scaler {

/// For a node that lives but makes no progress. The policy first has the stacks of the node written
/// into its log, and then restarts it. These nodes hang:
///
/// - A worker that holds work and finishes no minibatch. A worker that waits for others does not
///   hang. While a server is away or restores, no time of a worker counts. If all workers stand
///   still and none computes, they are allowed more time.
/// - A member of a synchronous group whose part of a step the group waits for. That the other
///   members stand still is no excuse for it, because they wait for it. They never hang themselves.
///   Three more cases count like this: a member whose thread for sums does not answer, a process
///   that gets nothing of the state that the group offers it, and a process that runs and has not
///   joined the group.
/// - A server that answers nothing while workers wait for rows or acknowledgements and no worker
///   makes progress. If several servers are silent, the policy takes one that burns CPU, or else
///   the one that fell silent first. If that did not help, it takes the next server, and after the
///   servers the workers.
/// - A process that the master does not hear of, or a server whose restore makes no progress. Its
///   number of partitions and its memory stay the same.
///
/// While the master is away, no node's time counts. The keeper takes care of nodes without
/// heartbeats (NodeState::kLost).
class HangPolicy final : public Policy {
 public:
  using Options = HangOptions;
  explicit HangPolicy(const Options& options = {}) : options_(options) {}

  std::string name() const override { return "hang"; }
  std::vector<Proposal> Step(const JobView& view) override;

 private:
  /// What progress means to a node.
  enum class Phase : uint8_t { kIdle, kStarting, kWorking };
  struct Node {
    uint32_t start = 0;
    Phase phase = Phase::kIdle;
    uint64_t progress = 0;     // minibatches, requests, or partitions restored
    uint64_t step = 0;         // the step of its group that waits for it
    uint64_t moved = 0;        // what other members have sent it
    uint64_t memory_high = 0;  // while it starts: growing memory is a sign of progress
    TimePoint progress_at;
    std::optional<TimePoint> minibatch_at;  // of a worker: the newest one of this life
    TimePoint counted_at;                   // the time of the last Watch()
    std::chrono::nanoseconds silence{
        0};  // time without progress for which nothing else is to blame
    std::chrono::nanoseconds longest{0};  // the longest silence of a worker, in all its lives
    std::optional<TimePoint> dumped_at;
    Phase proposed = Phase::kIdle;          // what the newest proposal was for
    uint32_t slow_starts = 0;               // restarts since it last ran
    std::optional<TimePoint> restarted_at;  // because it made no progress while it ran
  };
  void NoteActions(const JobView& view);
  /// Brings the node's silence up to now.
  void Watch(const JobView& view, const NodeView& node, Node* state);
  bool Progresses(const NodeView& node, Node* state) const;
  std::chrono::nanoseconds Allowed(const JobView& view, const NodeView& node,
                                   const Node& state) const;
  /// The silence that is allowed to a worker without regard to the other nodes.
  std::chrono::nanoseconds AllowedAlone(const Node& state) const;
  bool OthersProgress(const JobView& view, const std::string& name,
                      std::chrono::nanoseconds within) const;
  bool OnlyWaits(const JobView& view, const NodeView& node) const;
  /// Workers that have waited for servers for too long. Empty while any worker makes progress.
  std::vector<const NodeView*> Starved(const JobView& view) const;
  /// True if the node was restarted and no worker has made progress since.
  bool WasTried(const Node& state) const;
  /// True if a silent server is the next to be acted on, or if a restarted server still has time to
  /// show whether that helped.
  bool ServersAccused(const JobView& view) const;
  /// The server that is most likely to blame for starved workers. nullptr if no server is, or if
  /// all were tried.
  const NodeView* Suspect(const JobView& view) const;
  std::optional<Proposal> JudgeStart(const JobView& view, const NodeView& node) const;
  std::optional<Proposal> JudgeServer(const JobView& view, const NodeView& node,
                                      const std::vector<const NodeView*>& starved) const;
  std::optional<Proposal> JudgeWorker(const JobView& view, const NodeView& node) const;
  /// Proposes to write the stacks, or a restart after that. None while the stacks are being
  /// written.
  std::optional<Proposal> Answer(const JobView& view, const NodeView& node, const std::string& what,
                                 std::vector<Evidence> evidence) const;

  Options options_;
  TimePoint went_on_at_;  // when a worker last finished a minibatch
  std::map<std::string, Node> nodes_;
};

}  // namespace muster::scaler
