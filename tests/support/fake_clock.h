#pragma once

#include "base/clock.h"
#include "base/mutex.h"

namespace muster::testing {

/// A clock that moves only when told to. Thread-safe.
class FakeClock final : public Clock {
 public:
  TimePoint Now() const override;
  WallTime Wall() const override;
  void Advance(std::chrono::nanoseconds by);

 private:
  mutable Mutex mutex_;
  TimePoint now_ MUSTER_GUARDED_BY(mutex_){std::chrono::seconds(1000)};
};

}  // namespace muster::testing
