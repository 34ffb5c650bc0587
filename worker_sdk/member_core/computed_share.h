#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/interval_set.h"
#include "base/words/types.h"
#include "proto/messages/group_control.h"

namespace muster::sdk {

/// Counts the runs of a process; 0: none. Gradients belong to a run, and go with it.
using StepRunNumber = uint64_t;

/// The minibatches of a share.
IntervalSet MinibatchesOf(std::span<const MinibatchSpan> share);

/// The minibatches of a step that this member has computed. They stay over the attempts of the step
/// as long as its share has all of them. Otherwise others compute them, too, and a new run begins
/// with nothing. Pure. Not thread-safe.
class ComputedShare {
 public:
  /// Of which data, and from which weights, the gradients are.
  struct Key {
    LineageNumber lineage;
    StepNumber step;
    ShardId shard;
    /// Of a replay: the token that names it.
    LeaseToken replay{};
    friend bool operator==(const Key&, const Key&) = default;
  };

  /// The step to work on, and the share of this member in the current attempt.
  void Assign(const Key& key, std::span<const MinibatchSpan> share);
  /// What was computed is of no use any more.
  void Drop();

  /// Grows whenever what was computed is dropped; 0: there is nothing to compute.
  StepRunNumber number() const { return key_.has_value() ? number_ : 0; }
  bool Is(StepRunNumber run) const { return run != 0 && run == number(); }
  /// The trainer begins with a minibatch. False: it is not to be computed in this run.
  bool Start(StepRunNumber run, MinibatchIndex minibatch);
  /// The trainer has added all of the minibatch's gradients.
  void Computed(StepRunNumber run, MinibatchIndex minibatch);
  /// The trainer has left the minibatch, and the metrics of all computed ones are known. What they
  /// pushed since the last report is in the tables; `pushed_under`: as in HeldSum.
  void Report(StepRunNumber run, ShardMetrics metrics, RestoreEpoch pushed_under);

  /// Every minibatch of the share is computed.
  bool complete() const { return key_.has_value() && missing_.empty(); }
  /// The metrics are those of the whole share.
  bool reported() const { return complete() && reported_ == computed_.count(); }
  const ShardMetrics& metrics() const { return metrics_; }
  /// Of the whole run, as in HeldSum.
  RestoreEpoch pushed_under() const { return pushed_under_; }
  /// What the share has besides the computed ones, ascending.
  std::vector<MinibatchSpan> Missing() const;
  const std::vector<MinibatchSpan>& share() const { return share_; }

 private:
  std::optional<Key> key_;
  StepRunNumber number_ = 0;
  std::vector<MinibatchSpan> share_;
  IntervalSet computed_, missing_;
  std::optional<MinibatchIndex> started_;
  ShardMetrics metrics_;
  RestoreEpoch pushed_under_;
  uint64_t reported_ = 0;  // how many minibatches metrics_ has
};

}  // namespace muster::sdk
