#pragma once

#include <chrono>

// Under ThreadSanitizer the standard mutex is used: the sanitizer does not see inside Debian's
// Abseil and reports false races there.
#if defined(__SANITIZE_THREAD__)
#define MUSTER_STD_MUTEX 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define MUSTER_STD_MUTEX 1
#endif
#endif

#ifdef MUSTER_STD_MUTEX
#include <condition_variable>
#include <mutex>
#else
#include "absl/synchronization/mutex.h"
#endif

#if defined(__clang__)
#define MUSTER_THREAD_ATTRIBUTE(x) __attribute__((x))
#else
#define MUSTER_THREAD_ATTRIBUTE(x)
#endif
#define MUSTER_CAPABILITY(x) MUSTER_THREAD_ATTRIBUTE(capability(x))
#define MUSTER_SCOPED_CAPABILITY MUSTER_THREAD_ATTRIBUTE(scoped_lockable)
/// The member may be touched only with the named mutex held.
#define MUSTER_GUARDED_BY(x) MUSTER_THREAD_ATTRIBUTE(guarded_by(x))
/// The function must be called with the named mutex held.
#define MUSTER_REQUIRES(...) MUSTER_THREAD_ATTRIBUTE(requires_capability(__VA_ARGS__))
/// The function must be called without it.
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
#ifdef MUSTER_STD_MUTEX
  void Lock() MUSTER_ACQUIRE() { mutex_.lock(); }
  void Unlock() MUSTER_RELEASE() { mutex_.unlock(); }
#else
  void Lock() MUSTER_ACQUIRE() MUSTER_NO_THREAD_SAFETY_ANALYSIS { mutex_.Lock(); }
  void Unlock() MUSTER_RELEASE() MUSTER_NO_THREAD_SAFETY_ANALYSIS { mutex_.Unlock(); }
#endif

 private:
  friend class CondVar;
#ifdef MUSTER_STD_MUTEX
  std::mutex mutex_;
#else
  absl::Mutex mutex_;
#endif
};

/// Holds a Mutex for the length of a scope.
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
#ifdef MUSTER_STD_MUTEX
  std::condition_variable condition_;
#else
  absl::CondVar condition_;
#endif
};

}  // namespace muster
