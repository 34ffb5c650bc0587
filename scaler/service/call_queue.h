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

  /// Blocks until the owner has run `call`. kDeadlineExceeded when it had not begun to in time, and
  /// kUnavailable when the queue was closed: then it is never run, and nothing has happened.
  absl::Status Run(std::function<void()> call, std::chrono::milliseconds deadline);

  /// Readable while calls wait.
  int wake_fd() const { return wake_.get(); }
  /// Runs those that wait, in order.
  void RunWaiting();
  /// No call is run any more.
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
