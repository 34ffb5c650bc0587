#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "base/descriptors.h"
#include "base/mutex.h"

namespace muster::scaler {

/// Lets other threads run calls on the thread that owns the queue. Thread-safety: Run() may be
/// called by any thread but the owner; RunWaiting() belongs to the owner.
class CallQueue {
 public:
  CallQueue() = default;
  CallQueue(const CallQueue&) = delete;
  CallQueue& operator=(const CallQueue&) = delete;

  /// Blocks until the owner has run `call`. Errors: kDeadlineExceeded if the call has not begun in
  /// time, and kUnavailable if the queue was closed. In both cases the call never runs, and nothing
  /// has happened.
  absl::Status Run(std::function<void()> call, std::chrono::milliseconds deadline);

  /// This descriptor is readable while calls wait.
  int wake_fd() const { return wake_.get(); }
  /// Runs the waiting calls in order.
  void RunWaiting();
  /// From now on, no call is run any more.
  void Close();

 private:
  enum class State { kWaiting, kRunning, kOver };
  struct Call {
    std::function<void()> body;
    State state = State::kWaiting;
  };

  const WakeFd wake_;
  Mutex mutex_;
  CondVar changed_;
  bool closed_ MUSTER_GUARDED_BY(mutex_) = false;
  std::deque<std::shared_ptr<Call>> calls_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster::scaler
