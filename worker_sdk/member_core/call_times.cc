#include "worker_sdk/member_core/call_times.h"

#include <algorithm>

namespace muster::sdk {

void CallTimes::OnAnswer(StepNumber step, std::chrono::milliseconds heartbeat_interval,
                         TimePoint now) {
  using std::chrono::nanoseconds;
  if (step != step_) {
    quiet_ = std::clamp<nanoseconds>(2 * (now - stepped_at_), kQuietMin, kQuietMax);
    step_ = step;
    stepped_at_ = now;
  }
  quiet_until_[kWaits] = now + kQuietMin;
  quiet_until_[kComputes] = now + std::min<nanoseconds>(quiet_, heartbeat_interval);
}

}  // namespace muster::sdk
