#pragma once

#include <algorithm>
#include <chrono>

#include "base/backoff.h"
#include "base/clock.h"

namespace muster::sdk {

/// What a worker does if it hands shards back because something is short that comes back (the
/// process or its machine is out of descriptors, memory or disk; the place of outputs is away): how
/// long it pauses, and which failures it prints on stderr. No server waits for the end of a pause,
/// so it is not spread. Pure. Not thread-safe.
class ShortageBackoff {
 public:
  static constexpr std::chrono::milliseconds kPauseMin{100};
  static constexpr std::chrono::milliseconds kPauseMax{5'000};
  /// The time between two lines. It doubles, and starts again after this long without a failure.
  static constexpr std::chrono::seconds kLineEveryMin{2};
  static constexpr std::chrono::seconds kLineEveryMax{60};

  struct Step {
    std::chrono::milliseconds pause{0};
    bool say = false;
    /// Failures since the last line, without this one.
    uint64_t unsaid = 0;
  };
  Step Failed(TimePoint now) {
    failures_ += failures_ < UINT32_MAX ? 1 : 0;
    const auto pause = std::chrono::duration_cast<std::chrono::milliseconds>(
        PauseAfter(failures_, {.first = kPauseMin, .longest = kPauseMax}));
    const bool fresh = !failed_before_ || now - last_failure_ > kLineEveryMax;
    failed_before_ = true;
    last_failure_ = now;
    if (fresh) distance_ = kLineEveryMin;
    if (!fresh && now < next_line_) {
      ++unsaid_;
      return {pause, false, unsaid_};
    }
    next_line_ = now + distance_;
    distance_ = std::min(distance_ * 2, kLineEveryMax);
    const Step step{pause, true, unsaid_};
    unsaid_ = 0;
    return step;
  }
  /// It worked. The next failure pauses like the first one.
  void Succeeded() { failures_ = 0; }

 private:
  uint32_t failures_ = 0;  // in a row
  bool failed_before_ = false;
  TimePoint last_failure_{};
  TimePoint next_line_{};
  std::chrono::seconds distance_ = kLineEveryMin;
  uint64_t unsaid_ = 0;
};

}  // namespace muster::sdk
