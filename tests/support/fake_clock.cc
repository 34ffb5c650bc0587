#include "tests/support/fake_clock.h"

namespace muster::testing {

TimePoint FakeClock::Now() const {
  MutexLock lock(&mutex_);
  return now_;
}

WallTime FakeClock::Wall() const {
  return std::chrono::duration_cast<WallTime>(Now().time_since_epoch());
}

void FakeClock::Advance(std::chrono::nanoseconds by) {
  MutexLock lock(&mutex_);
  now_ += by;
}

}  // namespace muster::testing
