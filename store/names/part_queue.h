#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>

#include "absl/status/status.h"
#include "store/names/retry.h"

namespace muster {

/// What a caller of PartQueue::Next does. Neither: nothing is left to begin.
struct PartTurn {
  std::optional<size_t> part;                    // send or read it, then report it
  std::optional<std::chrono::nanoseconds> wait;  // ask again after this time
};

/// Which part of an object is sent or read next, by several callers at once. A part whose try
/// failed for a reason that may pass is tried again after a pause, and no other part begins in that
/// pause, because a busy service wants fewer requests. A failure that does not pass ends all. Pure;
/// not thread-safe.
class PartQueue {
 public:
  /// Parts 0 to `count` - 1. Each part has `limits` of its own.
  PartQueue(RetryLimits limits, uint64_t seed, size_t count);
  /// There are more parts than were known.
  void GrowTo(size_t count) { count_ = count; }
  PartTurn Next(TimePoint now);
  void Done(size_t part);
  /// kUnavailable may pass. `asked`: the pause that the service asked for; 0: none.
  void Failed(size_t part, const absl::Status& status, std::chrono::nanoseconds asked,
              TimePoint now, TryTime time = TryTime::kCounts);
  /// No part begins until then.
  void PauseUntil(TimePoint time);
  bool AllDone() const { return done_ == count_; }
  /// Why it ended; OK: it did not.
  const absl::Status& failure() const { return failure_; }

 private:
  RetryLimits limits_;
  uint64_t seed_;
  size_t count_;
  size_t next_ = 0;  // the first part that never began
  size_t done_ = 0;
  std::deque<size_t> again_;
  std::map<size_t, Retries> retries_;  // of parts that have begun and are not done
  TimePoint paused_until_;
  absl::Status failure_;
};

}  // namespace muster
