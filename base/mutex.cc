#include "base/mutex.h"

#ifndef MUSTER_STD_MUTEX
#include "absl/time/time.h"
#endif

namespace muster {

#ifdef MUSTER_STD_MUTEX

void CondVar::Wait(Mutex* mutex) MUSTER_NO_THREAD_SAFETY_ANALYSIS {
  std::unique_lock<std::mutex> lock(mutex->mutex_, std::adopt_lock);
  condition_.wait(lock);
  lock.release();
}

bool CondVar::WaitFor(Mutex* mutex,
                      std::chrono::nanoseconds timeout) MUSTER_NO_THREAD_SAFETY_ANALYSIS {
  std::unique_lock<std::mutex> lock(mutex->mutex_, std::adopt_lock);
  // wait_until on the system clock: ThreadSanitizer of GCC 12 does not intercept the steady one.
  const auto deadline = std::chrono::system_clock::now() +
                        std::chrono::duration_cast<std::chrono::system_clock::duration>(timeout);
  const bool signalled = condition_.wait_until(lock, deadline) == std::cv_status::no_timeout;
  lock.release();
  return signalled;
}

void CondVar::SignalAll() {
  condition_.notify_all();
}

#else

void CondVar::Wait(Mutex* mutex) MUSTER_NO_THREAD_SAFETY_ANALYSIS {
  condition_.Wait(&mutex->mutex_);
}

bool CondVar::WaitFor(Mutex* mutex,
                      std::chrono::nanoseconds timeout) MUSTER_NO_THREAD_SAFETY_ANALYSIS {
  return !condition_.WaitWithTimeout(&mutex->mutex_, absl::FromChrono(timeout));
}

void CondVar::SignalAll() {
  condition_.SignalAll();
}

#endif

}  // namespace muster
