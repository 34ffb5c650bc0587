#pragma once

#include <algorithm>
#include <chrono>

#include "base/clock.h"

namespace muster::sdk {

/// A longer wait prints a line on stderr that says what it waits for.
inline constexpr std::chrono::seconds kWaitingLineAfter{2};
/// The time between later lines of the same wait grows up to this.
inline constexpr std::chrono::seconds kWaitingLineEveryMax{60};

/// When the lines of one wait are due. For one thread.
class WaitingLines {
 public:
  explicit WaitingLines(TimePoint begin) : begin_(begin) {}
  /// True if a line is due; then the next one comes later.
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

}  // namespace muster::sdk
