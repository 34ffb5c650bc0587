#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "scaler/policy/policy.h"
#include "scaler/policy/window.h"

namespace muster::scaler {

struct StragglerOptions {
  /// What a cost is taken over: long against one slow minibatch, one snapshot, one scheduling
  /// delay.
  std::chrono::seconds window{10};
  /// Of slow work: the window is doubled until it holds `work_min`, up to this, which needs a
  /// fifth.
  std::chrono::seconds window_max{160};
  /// Minibatches or requests that a cost needs.
  uint64_t work_min = 5;
  /// After a start, and after anything but training and evaluation: caches are cold, connections
  /// new.
  std::chrono::seconds settle{10};
  /// After an evaluation: a reading may lag behind what the master says by so much.
  std::chrono::milliseconds resettle{1'000};
  /// Slow = so many times the cost of its peers. Neighbours on one machine differ by up to 1.4 from
  /// one window to the next. A process held to half of the CPU that it wants takes twice as long
  /// for the whole, and less than that for its parts: what it waits for catches up meanwhile.
  double slow_ratio = 1.7;
  /// Once slow, it is so until it is better than this.
  double clear_ratio = 1.35;
  /// For one without peers: its data may have become heavier, too.
  double alone_ratio = 3.0;
  /// How long it must be slow without a break, beyond the window. More than a window, so that two
  /// say so which have nothing in common: one long stall alone makes nobody slow.
  std::chrono::seconds hold{12};
  /// Less than so much more per unit of work does not hold anybody up.
  std::chrono::microseconds excess_min{200};
  /// Own history, for those with fewer than two peers: at least and at most so many windows.
  size_t history_min = 2;
  size_t history_max = 60;
  /// CPU helps whoever was held back by its quota for so much of a second of wall time.
  double throttled_min = 0.1;
  /// More CPU: so many times the limit.
  double cpu_factor = 2.0;
  double cpu_gain_min = 1.1;
  /// Using less than this share of its limit while being throttled, another quota than ours is in
  /// force: ours is written again.
  double foreign_quota = 0.7;
  /// What was done has so long to help before more is done.
  std::chrono::seconds grace{20};
  /// Relaunches of one node that did not help; then it is left alone until it has been well for
  /// `forgive`.
  uint32_t relaunches_max = 2;
  std::chrono::seconds forgive{600};
};

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
  /// So many times as much as usual must it be to count as slow.
  double ratio_factor = 1;
  /// Something must have been finished in so much of the newest training: who stands still hangs,
  /// which is not judged here. 0 = always.
  std::chrono::seconds fresh{0};
};

/// What workers and servers have in common: finds those that are slow against the median of their
/// peers for the same work, of the same size where that is known; with fewer than two peers,
/// against their own past, and against what they used to take compared with a single peer, so that
/// what slows both down blames neither. First more CPU where the quota holds it back, then a
/// relaunch. Evaluations are left out of the windows, which go on after them; anything else that is
/// no training begins them anew.
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
    uint32_t relaunches = 0;
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
