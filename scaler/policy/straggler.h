#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "job/policy_options.h"
#include "scaler/model/sample_span.h"
#include "scaler/policy/policy.h"

namespace muster::scaler {

/// Work that was done, and the time that it took.
struct Effort {
  std::chrono::microseconds time{0};
  uint64_t work = 0;
  uint64_t bytes = 0;  // size of that work; 0: it does not matter, or is not known
};

/// What one kind of work costs a node.
struct CostKind {
  std::string name;  // "computing time per minibatch"
  std::function<Effort(const Span& span)> effort;
  /// Whether a node without peers may be judged by this cost. Not if other nodes can make it slow.
  bool alone = true;
  /// For a node without peers, that ratio is multiplied by this factor, too. Its work may have
  /// become heavier, and a mistake is expensive.
  double alone_factor = 1;
  /// The ratio at which a node counts as slow is multiplied by this factor.
  double ratio_factor = 1;
  /// The node must have finished something in this much of the newest training. Otherwise it stands
  /// still, and then it hangs, which is not judged here. 0 = it is always judged.
  std::chrono::seconds fresh{0};
};

/// The common part of the policies for workers and servers. It finds nodes that are slow compared
/// with the median of their peers for the same work (of the same size, if that is known). With
/// fewer than two peers, it compares a node with its own past, and with its former ratio to a
/// single peer. So if something slows both, neither is blamed. A slow node first gets more CPU if
/// its quota holds it back, and then a restart. Windows leave out evaluations and continue after
/// them. Any other break of training starts the windows again.
class StragglerJudge {
 public:
  StragglerJudge(std::string policy, NodeRole role, std::vector<CostKind> costs,
                 const StragglerOptions& options);

  std::vector<Proposal> Step(const JobView& view);

 private:
  /// The cost of one kind of work over one window.
  struct Cost {
    double microseconds = 0;         // per unit
    double bytes = 0;                // per unit; 0: size does not matter
    std::chrono::seconds window{0};  // of training
    /// The most that a unit of `other`'s size costs a node that is as fast as this one. A larger
    /// unit costs more, in proportion. A smaller unit costs as much as one of this size, because a
    /// part of the cost is the same for every unit.
    double For(const Cost& other) const;
  };
  /// The job trained from `begin` to `end` without a break.
  struct Stretch {
    TimePoint begin;
    TimePoint end;
  };
  /// What was done in a given time of the newest training.
  struct Measured {
    Effort effort;
    TimePoint::duration time{0};
    bool full = false;  // false: there was less training than that
  };
  /// How slow a node is, by its worst cost.
  struct Verdict {
    size_t kind = 0;
    double ratio = 0;
    double cost_us = 0;
    double bytes = 0;
    double reference_us = 0;
    double needed_ratio = 0;
    std::string against;
    std::chrono::seconds window{0};
  };
  /// One kind of cost of one node, from times when the node was not slow.
  struct Past {
    std::deque<Cost> costs;
    std::deque<double> of_peer;  // the same costs as multiples of its single peer's
  };
  struct Node {
    std::vector<Past> past;  // by kind
    TimePoint history_at;
    std::optional<TimePoint> slow_since;
    std::optional<TimePoint> well_since;
    bool cpu_given = false;
    uint32_t restarts = 0;
    std::optional<TimePoint> acted_at;
  };
  using Costs = std::map<std::string, std::vector<std::optional<Cost>>>;

  void NoteTraining(const JobView& view);
  Costs Measure(const JobView& view) const;
  std::optional<Cost> MeasureOne(const NodeView& node, const CostKind& kind) const;
  Measured Collect(const NodeView& node, const CostKind& kind, std::chrono::seconds window) const;
  std::optional<Verdict> Judge(const Costs& costs, const std::string& name) const;
  /// What work of the node's size cost the other nodes at the same time.
  static std::vector<double> Peers(const Costs& costs, const std::string& name, size_t kind);
  /// The usual cost of a node with fewer than two peers. None while its past is too short.
  std::optional<double> Usual(const std::string& name, size_t kind, const Cost& cost,
                              const std::vector<double>& peers) const;
  void NoteActions(const JobView& view);
  void Remember(const JobView& view, const Costs& costs, const std::string& name, Node* state);
  std::optional<Proposal> Act(const JobView& view, const NodeView& node, const Node& state,
                              const Verdict& verdict) const;
  bool GiveCpu(const JobView& view, const NodeView& node, const Span& span,
               Proposal* proposal) const;

  std::string policy_;
  NodeRole role_;
  std::vector<CostKind> kinds_;
  StragglerOptions options_;
  std::deque<Stretch> stretches_;  // oldest first
  bool in_stretch_ = false;
  std::map<std::string, Node> nodes_;
};

}  // namespace muster::scaler
