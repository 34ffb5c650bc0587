#pragma once

#include <algorithm>
#include <chrono>

#include "base/clock.h"

namespace muster::sdk {

/// Nothing waits longer than this without a line on stderr that says for what.
inline constexpr std::chrono::seconds kWaitingLineAfter{2};
/// Later lines of the same wait come at growing distances, at most this.
inline constexpr std::chrono::seconds kWaitingLineEveryMax{60};

/// When the lines of one wait are due. For one thread.
class WaitingLines {
 public:
  explicit WaitingLines(TimePoint begin) : begin_(begin) {}
  /// Whether a line is due; the next one then comes later.
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
