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

/// Work that was done, and the time that went into it.
struct Effort {
  std::chrono::microseconds time{0};
  uint64_t work = 0;
  uint64_t bytes = 0;  // of that work; 0: its size is of no account, or not known
};

/// What one kind of work costs a node.
struct CostKind {
  std::string name;  // "computing time per minibatch"
  std::function<Effort(const Span& span)> effort;
  /// Whether one without any peer may be judged by it. Not where others can make it slow.
  bool alone = true;
  /// Without peers, it must be so many times as slow as others that have none: its work may have
  /// become heavier, and a mistake is dear.
  double alone_factor = 1;
  /// So many times as much as usual must it be to count as slow.
  double ratio_factor = 1;
  /// Something must have been finished in so much of the newest training: who stands still hangs,
  /// which is not judged here. 0 = always.
  std::chrono::seconds fresh{0};
};

/// The common part for workers and servers. It finds nodes that are slow compared with the median
/// of their peers for the same work (of the same size, if that is known). With fewer than two
/// peers, it compares a node with its own past, and with its former ratio to a single peer, so a
/// cause that slows both blames neither. A slow node first gets more CPU if its quota holds it
/// back, and then a restart. Windows leave out evaluations and continue after them; anything else
/// that is not training starts the windows again.
class StragglerJudge {
 public:
  StragglerJudge(std::string policy, NodeRole role, std::vector<CostKind> costs,
                 const StragglerOptions& options);

  std::vector<Proposal> Step(const JobView& view);

 private:
  /// Of one kind of work, over one window.
  struct Cost {
    double microseconds = 0;         // a unit
    double bytes = 0;                // a unit; 0: of no account
    std::chrono::seconds window{0};  // of training
    /// The most that a unit of the size of `other`'s costs a node that is as fast as this one. A
    /// larger unit costs more, in proportion. A smaller one costs as much, because a part of the
    /// cost is the same for every unit.
    double For(const Cost& other) const;
  };
  /// The job trained from `begin` to `end` without a break.
  struct Stretch {
    TimePoint begin;
    TimePoint end;
  };
  /// What was done in the newest training of a given length.
  struct Measured {
    Effort effort;
    TimePoint::duration time{0};
    bool full = false;  // false: there was no more
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
  /// One kind of cost of one node, while it was well.
  struct Past {
    std::deque<Cost> costs;
    std::deque<double> of_peer;  // the same as multiples of what its single peer took
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
  /// What the others took at the same time for work of its size.
  static std::vector<double> Peers(const Costs& costs, const std::string& name, size_t kind);
  /// What is usual for one with fewer than two peers; nothing while its past is too short.
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
