#include "base/clock.h"

#include <thread>

namespace muster {

TimePoint SystemClock::Now() const {
  return std::chrono::steady_clock::now();
}

WallTime SystemClock::Wall() const {
  return std::chrono::duration_cast<WallTime>(std::chrono::system_clock::now().time_since_epoch());
}

void SleepFor(std::chrono::nanoseconds duration) {
  std::this_thread::sleep_for(duration);
}

}  // namespace muster
