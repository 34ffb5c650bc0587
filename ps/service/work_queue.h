#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <thread>

#include "base/mutex.h"

namespace muster::ps {

/// One background thread that runs tasks in order. What is posted is bounded by the posters: a
/// load per partition, a few images. Thread-safe, except Stop().
class WorkQueue {
 public:
  enum class Priority : uint8_t {
    kNormal,
    /// Lanes and workers come first where they want all cores. It still gets about a third of what
    /// one of their threads does: whatever the machine does, its tasks come to their end.
    kLow,
  };
  explicit WorkQueue(const std::string& name, Priority priority = Priority::kNormal);
  /// Stops.
  ~WorkQueue();
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  /// Runs `task` after those posted before; dropped after Stop().
  void Post(std::function<void()> task);
  /// Lets the task under way end, drops the rest, joins. Idempotent.
  void Stop();

 private:
  void Run(Priority priority);

  Mutex mutex_;
  CondVar changed_;
  bool stopped_ MUSTER_GUARDED_BY(mutex_) = false;
  std::deque<std::function<void()>> tasks_ MUSTER_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace muster::ps
