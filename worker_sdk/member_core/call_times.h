#pragma once

#include <algorithm>
#include <array>
#include <chrono>

#include "base/clock.h"
#include "base/words/types.h"

namespace muster::sdk {

/// Decides when a process of a group calls the master. A member that has just got an answer does
/// not call until it votes. The vote is then its only call of the step: what the member could hear
/// while it computes, it can also hear afterwards. A member that waits for the sums of others calls
/// soon, because another member may have died. Pure. Not thread-safe.
class CallTimes {
 public:
  /// A member that computes is quiet for twice the time of the last step, within these limits and
  /// at most for the heartbeat interval. A member that waits is quiet for the shortest time.
  static constexpr std::chrono::milliseconds kQuietMin{10};
  static constexpr std::chrono::milliseconds kQuietMax{200};
  static constexpr std::chrono::milliseconds kPauseAfterError{100};

  /// The master has answered. `step` is the newest step that has happened.
  void OnAnswer(StepNumber step, std::chrono::milliseconds heartbeat_interval, TimePoint now);
  /// The member has computed its share.
  void OnComputed(TimePoint now) { quiet_until_[kWaits] = now + kQuietMin; }
  /// A call has failed.
  void OnError(TimePoint now) { no_call_before_ = now + kPauseAfterError; }

  /// If false, no call may begin now, whatever there is to say.
  bool MayCall(TimePoint now) const { return now >= no_call_before_; }
  /// True if it is too early for a call that only waits for news.
  bool IsQuiet(bool computes, TimePoint now) const { return now < quiet_until_[computes]; }
  /// From this time on, neither of the two holds a call back.
  TimePoint Next(bool computes) const { return std::max(no_call_before_, quiet_until_[computes]); }

 private:
  static constexpr bool kWaits = false, kComputes = true;

  StepNumber step_;
  TimePoint stepped_at_{};
  std::chrono::nanoseconds quiet_{kQuietMin};
  std::array<TimePoint, 2> quiet_until_{};
  TimePoint no_call_before_{};
};

}  // namespace muster::sdk
