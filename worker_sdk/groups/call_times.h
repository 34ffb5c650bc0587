#pragma once

#include <algorithm>
#include <chrono>

#include "base/clock.h"
#include "base/words/types.h"

namespace muster::sdk {

/// When a process of a group calls the master. A member that has just got an answer is quiet until
/// its vote, which is then its only call of the step: what it could hear in the middle of a step
/// does not change what it adds. Pure. Not thread-safe.
class CallTimes {
 public:
  /// A quiet time is twice as long as the last step, within these limits and at most the heartbeat
  /// interval.
  static constexpr std::chrono::milliseconds kQuietMin{10};
  static constexpr std::chrono::milliseconds kQuietMax{200};
  static constexpr std::chrono::milliseconds kPauseAfterError{100};

  /// The master has answered; `step`: the newest one that has happened.
  void OnAnswer(StepNumber step, std::chrono::milliseconds heartbeat_interval, TimePoint now);
  /// A call has failed.
  void OnError(TimePoint now) { no_call_before_ = now + kPauseAfterError; }

  /// False: no call begins now, whatever there is to say.
  bool MayCall(TimePoint now) const { return now >= no_call_before_; }
  /// A call that only waits for news would be too early.
  bool IsQuiet(TimePoint now) const { return now < quiet_until_; }
  /// From then on, neither holds a call back.
  TimePoint next() const { return std::max(no_call_before_, quiet_until_); }

 private:
  StepNumber step_;
  TimePoint stepped_at_{};
  std::chrono::nanoseconds quiet_{kQuietMin};
  TimePoint quiet_until_{};
  TimePoint no_call_before_{};
};

}  // namespace muster::sdk
