#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <stop_token>
#include <thread>
#include <vector>

#include "base/mutex.h"

namespace muster::kubernetes {

/// Threads that do one call after the other, so that a slow call delays only them. Thread-safe.
class CallThreads {
 public:
  explicit CallThreads(size_t threads);
  /// Asks running calls to stop, waits for them, and drops the others.
  ~CallThreads();
  CallThreads(const CallThreads&) = delete;
  CallThreads& operator=(const CallThreads&) = delete;

  /// The token says when the call must end soon.
  using Call = std::function<void(const std::stop_token& stop)>;
  void Post(Call call);

 private:
  void Run(const std::stop_token& stop);

  Mutex mutex_;
  CondVar changed_;
  std::deque<Call> waiting_ MUSTER_GUARDED_BY(mutex_);
  std::vector<std::jthread> threads_;
};

}  // namespace muster::kubernetes
