#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/interval_set.h"
#include "base/words/types.h"
#include "proto/messages/group_control.h"

namespace muster::sdk {

/// Counts the runs of a process; 0 means none. Gradients belong to a run, and are dropped with it.
using StepRunNumber = uint64_t;

/// The minibatches of a share.
IntervalSet MinibatchesOf(std::span<const MinibatchSpan> share);

/// The minibatches of a step that this member has computed. They are kept over the attempts of the
/// step as long as all of them are in the member's share. Otherwise other members compute them,
/// too. Then they are dropped, and a new run begins. Pure. Not thread-safe.
class ComputedShare {
 public:
  /// Which data and which weights the gradients come from.
  struct Key {
    LineageNumber lineage;
    StepNumber step;
    ShardId shard;
    /// The token that names a replay.
    LeaseToken replay{};
    friend bool operator==(const Key&, const Key&) = default;
  };

  /// Sets the step to work on, and the share of this member in the current attempt.
  void Assign(const Key& key, std::span<const MinibatchSpan> share);
  /// Drops what was computed, because it is of no use any more.
  void Drop();

  /// A number that grows whenever computed minibatches are dropped; 0 if there is nothing to
  /// compute.
  StepRunNumber number() const { return key_.has_value() ? number_ : 0; }
  bool Is(StepRunNumber run) const { return run != 0 && run == number(); }
  /// The trainer begins with a minibatch. Returns false if it must not be computed in this run.
  bool Start(StepRunNumber run, MinibatchIndex minibatch);
  /// The trainer has added all of the minibatch's gradients.
  void Computed(StepRunNumber run, MinibatchIndex minibatch);
  /// The trainer has left the minibatch, so the metrics of all computed minibatches are known. What
  /// they pushed since the last report is in the tables. `pushed_under` is explained in HeldSum.
  void Report(StepRunNumber run, ShardMetrics metrics, RestoreEpoch pushed_under);

  /// True if every minibatch of the share is computed.
  bool complete() const { return key_.has_value() && missing_.empty(); }
  /// True if the metrics cover the whole share.
  bool reported() const { return complete() && reported_ == computed_.count(); }
  const ShardMetrics& metrics() const { return metrics_; }
  /// The same as in HeldSum, for the whole run.
  RestoreEpoch pushed_under() const { return pushed_under_; }
  /// The minibatches of the share that are not computed yet, ascending.
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
  uint64_t reported_ = 0;  // how many minibatches are in metrics_
};

}  // namespace muster::sdk
