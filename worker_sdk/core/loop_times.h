#pragma once

#include <cstdint>

#include "base/clock.h"
#include "proto/messages/control.h"

namespace muster::sdk {

/// The time that any number of threads spent in something, including the threads that are still in
/// it. A value; not thread-safe. Every `now` must be at least as late as the one before.
class TimeSum {
 public:
  void Enter(TimePoint now) {
    sum_ -= Ticks(now);
    ++inside_;
  }
  void Leave(TimePoint now) {
    sum_ += Ticks(now);
    --inside_;
  }
  uint64_t nanoseconds(TimePoint now) const { return sum_ + inside_ * Ticks(now); }

 private:
  /// Intermediate sums may wrap around, but the result does not.
  static uint64_t Ticks(TimePoint now) {
    return static_cast<uint64_t>(now.time_since_epoch().count());
  }
  uint64_t sum_ = 0;
  uint64_t inside_ = 0;
};

/// What a worker's loops do, as running totals; WorkerTimes in proto/control.proto has the
/// definitions. A loop that waits for rows or for acknowledgements is also in `loop`. Pure: time is
/// an argument. Not thread-safe.
struct LoopTimes {
  TimeSum wait_shard;
  TimeSum loop;
  TimeSum wait_pull;
  TimeSum wait_push;
  uint64_t minibatches_begun = 0;
  uint64_t minibatches_finished = 0;
  uint64_t records_trained = 0;
  uint64_t records_evaluated = 0;

  WorkerTimes At(TimePoint now, TimePoint process_began) const {
    const uint64_t waits = wait_pull.nanoseconds(now) + wait_push.nanoseconds(now);
    const uint64_t in_loops = loop.nanoseconds(now);
    const auto total = static_cast<uint64_t>((now - process_began).count());
    return {.total_us = total / 1'000,
            .wait_shard_us = wait_shard.nanoseconds(now) / 1'000,
            .wait_pull_us = wait_pull.nanoseconds(now) / 1'000,
            .wait_push_us = wait_push.nanoseconds(now) / 1'000,
            // A minibatch that outlives its loop may still wait, outside of the loop.
            .compute_us = in_loops > waits ? (in_loops - waits) / 1'000 : 0,
            .minibatches_begun = minibatches_begun,
            .minibatches_finished = minibatches_finished,
            .records_trained = records_trained,
            .records_evaluated = records_evaluated};
  }
};

}  // namespace muster::sdk
