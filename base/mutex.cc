#include "base/mutex.h"

#include <algorithm>

namespace muster {
namespace {

/// The longest single sleep. A longer wait wakes up in between, so adding it to the time never
/// overflows.
constexpr std::chrono::nanoseconds kSleepMax = std::chrono::hours(1);

}  // namespace

void CondVar::Wait(Mutex* mutex) MUSTER_NO_THREAD_SAFETY_ANALYSIS {
  std::unique_lock<std::mutex> lock(mutex->mutex_, std::adopt_lock);
  condition_.wait(lock);
  lock.release();
}

bool CondVar::WaitFor(Mutex* mutex,
                      std::chrono::nanoseconds timeout) MUSTER_NO_THREAD_SAFETY_ANALYSIS {
  std::unique_lock<std::mutex> lock(mutex->mutex_, std::adopt_lock);
#ifdef __SANITIZE_THREAD__
  // ThreadSanitizer of GCC 12 does not intercept a wait by the steady clock, so this uses the
  // system clock.
  const auto now = std::chrono::system_clock::now();
#else
  const auto now = std::chrono::steady_clock::now();
#endif
  const auto left = std::chrono::ceil<std::chrono::microseconds>(std::min(timeout, kSleepMax));
  const bool signalled = condition_.wait_until(lock, now + left) == std::cv_status::no_timeout;
  lock.release();
  return signalled || timeout > kSleepMax;
}

void CondVar::SignalAll() {
  condition_.notify_all();
}

}  // namespace muster
