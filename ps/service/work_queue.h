#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"

namespace muster::ps {

/// Background threads, mostly one, that begin tasks in order. The posters bound the number of
/// tasks: a load per partition, and a few images. Thread-safe, except Stop().
class WorkQueue {
 public:
  enum class Priority : uint8_t {
    kNormal,
    /// Lanes and workers have priority if they want all cores. This thread still gets about a third
    /// of the time of one of their threads, so its tasks always end.
    kLow,
  };
  explicit WorkQueue(const std::string& name, Priority priority = Priority::kNormal,
                     uint32_t threads = 1);
  /// Stops.
  ~WorkQueue();
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  /// Begins `task` after all tasks posted before. After Stop(), it is dropped.
  void Post(std::function<void()> task);
  /// Lets the running tasks end, drops the rest, and joins. Idempotent.
  void Stop();

 private:
  void Run(Priority priority);

  Mutex mutex_;
  CondVar changed_;
  bool stopped_ MUSTER_GUARDED_BY(mutex_) = false;
  std::deque<std::function<void()>> tasks_ MUSTER_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_;
};

}  // namespace muster::ps
