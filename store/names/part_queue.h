#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>

#include "absl/status/status.h"
#include "store/names/retry.h"

namespace muster {

/// What a caller of PartQueue::Next must do. If neither is set, nothing is left to begin.
struct PartTurn {
  std::optional<size_t> part;                    // send or read this part, and then report it
  std::optional<std::chrono::nanoseconds> wait;  // ask again after this time
};

/// Decides which part of an object is sent or read next, for several callers at once. If a part
/// failed for a reason that may pass, it is tried again after a pause. No other part begins during
/// that pause, because a busy service wants fewer requests. A failure that does not pass ends
/// everything. Pure; not thread-safe.
class PartQueue {
 public:
  /// Parts 0 to `count` - 1. Each part has `limits` of its own.
  PartQueue(RetryLimits limits, uint64_t seed, size_t count);
  /// There are more parts than were known before.
  void GrowTo(size_t count) { count_ = count; }
  PartTurn Next(TimePoint now);
  void Done(size_t part);
  /// kUnavailable may pass. `asked` is the pause that the service asked for; 0: none.
  void Failed(size_t part, const absl::Status& status, std::chrono::nanoseconds asked,
              TimePoint now, TryTime time = TryTime::kCounts);
  /// Until then, no part begins.
  void PauseUntil(TimePoint time);
  bool AllDone() const { return done_ == count_; }
  /// Why it ended; OK if it did not.
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
