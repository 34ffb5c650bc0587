#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#if defined(__clang__)
#define MUSTER_THREAD_ATTRIBUTE(x) __attribute__((x))
#else
#define MUSTER_THREAD_ATTRIBUTE(x)
#endif
#define MUSTER_CAPABILITY(x) MUSTER_THREAD_ATTRIBUTE(capability(x))
#define MUSTER_SCOPED_CAPABILITY MUSTER_THREAD_ATTRIBUTE(scoped_lockable)
/// The member may be accessed only while the named mutex is held.
#define MUSTER_GUARDED_BY(x) MUSTER_THREAD_ATTRIBUTE(guarded_by(x))
/// The function must be called while the named mutex is held.
#define MUSTER_REQUIRES(...) MUSTER_THREAD_ATTRIBUTE(requires_capability(__VA_ARGS__))
/// The function must be called while the named mutex is not held.
#define MUSTER_EXCLUDES(...) MUSTER_THREAD_ATTRIBUTE(locks_excluded(__VA_ARGS__))
#define MUSTER_ACQUIRE(...) MUSTER_THREAD_ATTRIBUTE(acquire_capability(__VA_ARGS__))
#define MUSTER_RELEASE(...) MUSTER_THREAD_ATTRIBUTE(release_capability(__VA_ARGS__))
#define MUSTER_NO_THREAD_SAFETY_ANALYSIS MUSTER_THREAD_ATTRIBUTE(no_thread_safety_analysis)

namespace muster {

/// The only mutex of the project. Not recursive.
class MUSTER_CAPABILITY("mutex") Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;
  void Lock() MUSTER_ACQUIRE() { mutex_.lock(); }
  void Unlock() MUSTER_RELEASE() { mutex_.unlock(); }

 private:
  friend class CondVar;
  std::mutex mutex_;
};

/// Holds a Mutex until the end of a scope.
class MUSTER_SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex* mutex) MUSTER_ACQUIRE(mutex) : mutex_(mutex) { mutex_->Lock(); }
  ~MutexLock() MUSTER_RELEASE() { mutex_->Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex* mutex_;
};

/// A condition variable for Mutex. Wakes may be spurious: wait in a loop over the condition.
class CondVar {
 public:
  void Wait(Mutex* mutex) MUSTER_REQUIRES(mutex);
  /// Returns false when `timeout` passed without a signal.
  bool WaitFor(Mutex* mutex, std::chrono::nanoseconds timeout) MUSTER_REQUIRES(mutex);
  void SignalAll();

 private:
  std::condition_variable condition_;
};

}  // namespace muster
