#pragma once

#include <chrono>

namespace muster {

/// A reading of a monotonic clock: time since an arbitrary start. Comparable only within one
/// process.
using TimePoint = std::chrono::time_point<std::chrono::steady_clock, std::chrono::nanoseconds>;
/// Wall time since the Unix epoch, for people. No decision is ever based on it.
using WallTime = std::chrono::microseconds;

/// The source of time. Pure code takes `now` as an argument; shells get a Clock in their
/// constructor. Every implementation is thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual TimePoint Now() const = 0;
  virtual WallTime Wall() const = 0;
};

/// The machine's clocks.
class SystemClock final : public Clock {
 public:
  TimePoint Now() const override;
  WallTime Wall() const override;
};

/// Blocks the calling thread. Only shells may call it, and only if there is no event to wait for.
void SleepFor(std::chrono::nanoseconds duration);

}  // namespace muster
