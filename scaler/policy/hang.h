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

/// For a node that lives but makes no progress: first writes its stacks into the log, then restarts
/// it.
///
/// - A worker that holds work and finishes no minibatch. One that waits for others is not hung:
///   while a server is away or restores, no worker's time counts, and where all of them stand still
///   and none computes, the time is longer.
/// - A member of a synchronous group whose part of a step the group awaits. The others wait for it,
///   so their standing still is no excuse, and they are never hung themselves. Also one whose
///   thread for sums does not answer, a process that gets nothing of the state that the group
///   offers it, and one that runs and has not joined the group.
/// - A server that answers nothing while workers wait for rows or acknowledgements and none makes
///   progress. Where several are silent, it is the one that burns CPU, or else the one that fell
///   silent first; the next one's turn comes when that did not help, and then the workers'.
/// - A process that the master does not hear of, and a server that does not get on with its
/// restore:
///   whose partitions and memory stay as they are.
/// While the master is away, no node's time counts. A node whose heartbeats are missing is the
/// keeper's matter (NodeState::kLost).
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
    uint64_t step = 0;         // of its group, that awaits it
    uint64_t moved = 0;        // to it, by other members
    uint64_t memory_high = 0;  // while it starts: what grows does something
    TimePoint progress_at;
    std::optional<TimePoint> minibatch_at;  // of a worker: the newest one of this life
    TimePoint counted_at;                   // the last step
    std::chrono::nanoseconds silence{0};    // counted while nothing else is to blame
    std::chrono::nanoseconds longest{0};    // of a worker, in all its lives
    std::optional<TimePoint> dumped_at;
    Phase proposed = Phase::kIdle;          // what the newest proposal was for
    uint32_t slow_starts = 0;               // restarts since it last ran
    std::optional<TimePoint> restarted_at;  // for what it did not do while it ran
  };
  void NoteActions(const JobView& view);
  /// Brings the node's silence up to now.
  void Watch(const JobView& view, const NodeView& node, Node* state);
  bool Progresses(const NodeView& node, Node* state) const;
  std::chrono::nanoseconds Allowed(const JobView& view, const NodeView& node,
                                   const Node& state) const;
  /// Of a worker, whatever the others do.
  std::chrono::nanoseconds AllowedAlone(const Node& state) const;
  bool OthersProgress(const JobView& view, const std::string& name,
                      std::chrono::nanoseconds within) const;
  bool OnlyWaits(const JobView& view, const NodeView& node) const;
  /// Workers that have waited for servers for too long; none while any worker makes progress.
  std::vector<const NodeView*> Starved(const JobView& view) const;
  /// It was started again, and no worker has got on since.
  bool WasTried(const Node& state) const;
  /// A server's turn comes, or its restart has yet to show what it helped.
  bool ServersAccused(const JobView& view) const;
  /// Why they wait; nullptr when no server is to blame, or none any more.
  const NodeView* Suspect(const JobView& view) const;
  std::optional<Proposal> JudgeStart(const JobView& view, const NodeView& node) const;
  std::optional<Proposal> JudgeServer(const JobView& view, const NodeView& node,
                                      const std::vector<const NodeView*>& starved) const;
  std::optional<Proposal> JudgeWorker(const JobView& view, const NodeView& node) const;
  /// Stacks, or a restart after them; none while the stacks are being written.
  std::optional<Proposal> Answer(const JobView& view, const NodeView& node, const std::string& what,
                                 std::vector<Evidence> evidence) const;

  Options options_;
  TimePoint went_on_at_;  // a worker finished a minibatch
  std::map<std::string, Node> nodes_;
};

}  // namespace muster::scaler
