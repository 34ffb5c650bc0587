#pragma once

#include <algorithm>
#include <chrono>

#include "base/clock.h"

namespace muster::sdk {

/// A wait that takes longer prints a line on stderr, which says what it waits for.
inline constexpr std::chrono::seconds kWaitingLineAfter{2};
/// The times between later lines of the same wait grow up to this.
inline constexpr std::chrono::seconds kWaitingLineEveryMax{60};

/// When the lines of one wait are due. For one thread.
class WaitingLines {
 public:
  explicit WaitingLines(TimePoint begin) : begin_(begin) {}
  /// True if a line is due. The caller prints it, and the next one is due later.
  bool Due(TimePoint now) {
    if (now - begin_ < next_) return false;
    next_ = std::min(next_ * 2, next_ + kWaitingLineEveryMax);
    return true;
  }
  long long seconds(TimePoint now) const { return (now - begin_) / std::chrono::seconds(1); }

 private:
  const TimePoint begin_;
  std::chrono::seconds next_ = kWaitingLineAfter;
};

/// How often a wait asks SessionOptions::interrupted.
inline constexpr std::chrono::milliseconds kAskEvery{25};

/// When one wait is to ask. For one thread.
class WaitingAsks {
 public:
  explicit WaitingAsks(TimePoint begin) : asked_(begin) {}
  /// True if it is time. The caller asks, and the next time is later.
  bool Due(TimePoint now) {
    if (now - asked_ < kAskEvery) return false;
    asked_ = now;
    return true;
  }

 private:
  TimePoint asked_;
};

}  // namespace muster::sdk
