#pragma once

#include <cstdint>
#include <vector>

#include "base/words/limits.h"
#include "base/words/types.h"
#include "proto/messages/worker_control.h"

/// The data of a step of a synchronous group. Each struct is the message of its name in
/// proto/control.proto.
namespace muster {

/// Minibatches [first, first + count) of a shard.
struct MinibatchSpan {
  MinibatchIndex first;
  uint32_t count = 0;
  static void Fields(auto& f, auto& s) { f(1, "first", s.first), f(2, "count", s.count); }
  friend bool operator==(const MinibatchSpan&, const MinibatchSpan&) = default;
};

/// The minibatches of one member in one attempt of a step. All members together have every
/// minibatch.
struct StepShare {
  std::vector<MinibatchSpan> spans;
  static void Fields(auto& f, auto& s) { f(1, "spans", s.spans, {.most = most::kMembers}); }
  friend bool operator==(const StepShare&, const StepShare&) = default;
};

/// The data of a step is one shard, whose minibatches are divided among the members.
struct StepWork {
  StepNumber step;
  ShardId shard;
  LeaseToken token;  // of this attempt
  ShardWork work;
  /// Of the member that is told.
  StepShare share;
  /// The step of this shard has happened, and what it pushed to tables is pushed again. There are
  /// no sums, and `step` does not happen by it.
  bool replay = false;
  LeaseToken begun;  // of the first attempt: it names the replay
  /// Pushes need a map at least as new as this.
  RestoreEpoch restore_epoch;
  /// The vote comes with a digest of the state before the step.
  bool check = false;
  static void Fields(auto& f, auto& s) {
    f(1, "step", s.step), f(2, "shard", s.shard), f(3, "token", s.token), f(4, "work", s.work);
    f(5, "share", s.share);
    f(6, "replay", s.replay), f(7, "begun", s.begun), f(8, "restore_epoch", s.restore_epoch);
    f(9, "check", s.check);
  }
  friend bool operator==(const StepWork&, const StepWork&) = default;
};

}  // namespace muster
