#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"

namespace muster {

/// Threads for work that need not run on the owner's thread: encoding answers and deleting files.
/// Tasks begin in the order in which they were posted; with one thread, they also end in this
/// order. Thread-safe.
class TaskThreads {
 public:
  struct Options {
    /// The name of the threads, for people who inspect the process.
    std::string name;
    uint32_t threads = 1;
    /// The most waiting tasks.
    size_t waiting_max = 1'000;
  };
  explicit TaskThreads(const Options& options);
  /// Stops.
  ~TaskThreads();
  TaskThreads(const TaskThreads&) = delete;
  TaskThreads& operator=(const TaskThreads&) = delete;

  /// Runs `task` on a thread. While too many tasks wait, the caller waits, too, and runs it itself
  /// after Stop().
  void Post(std::function<void()> task);
  /// Lets all posted tasks end, and then joins. Idempotent.
  void Stop();

 private:
  void Run();

  const size_t waiting_max_;
  Mutex mutex_;
  /// A task has begun.
  CondVar begun_;
  bool stopped_ MUSTER_GUARDED_BY(mutex_) = false;
  /// Of the threads that wait for a task, or for stopped_.
  std::vector<CondVar*> idle_ MUSTER_GUARDED_BY(mutex_);
  std::deque<std::function<void()>> tasks_ MUSTER_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_;
};

}  // namespace muster
