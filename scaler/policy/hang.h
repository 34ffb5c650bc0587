#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "scaler/policy/policy.h"

namespace muster::scaler {

/// A worker that is alive and holds work, but finishes no minibatch: first its stacks into the log,
/// then a relaunch. One that waits for others is not hung: while a server is away or restores,
/// nobody's time counts, and where all workers stand still and none of them computes, the time is
/// longer. A server that hangs misses its heartbeats, which the master sees (NodeState::kLost).
class HangPolicy final : public Policy {
 public:
  struct Options {
    /// Without a minibatch. Far above any minibatch of a trainer on one machine, far below the 10
    /// to 30 minutes that others wait.
    std::chrono::seconds silence_min{60};
    /// And so many times the longest that this node took from one minibatch to the next, its start
    /// included: a trainer of slow minibatches is not hung.
    double times_longest = 3;
    /// Before its first minibatch: models load, libraries compile.
    std::chrono::seconds first_silence_min{300};
    /// Of a core: a worker that burns as much and finishes nothing loops, whatever the others do.
    double looping_cpus = 0.5;
    /// So many times as long where no other worker makes progress: they may all wait for the same.
    double alone_factor = 3;
    /// From the stacks to the relaunch: to write them.
    std::chrono::seconds dump_grace{5};
  };
  HangPolicy() : HangPolicy(Options{}) {}
  explicit HangPolicy(const Options& options) : options_(options) {}

  std::string name() const override { return "hang"; }
  std::vector<Proposal> Step(const JobView& view) override;

 private:
  struct Node {
    uint32_t start = 0;
    uint64_t minibatches = 0;
    TimePoint progress_at;
    TimePoint counted_at;                 // the last step
    std::chrono::nanoseconds silence{0};  // counted while nothing else is to blame
    std::chrono::nanoseconds longest{0};
    std::optional<TimePoint> dumped_at;
  };
  /// Brings the node's silence up to now.
  void Watch(const JobView& view, const NodeView& node, Node* state) const;
  std::chrono::nanoseconds Allowed(const JobView& view, const NodeView& node,
                                   const Node& state) const;
  bool OthersProgress(const JobView& view, const std::string& name,
                      std::chrono::nanoseconds within) const;

  Options options_;
  std::map<std::string, Node> nodes_;
};

}  // namespace muster::scaler
