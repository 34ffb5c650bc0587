#include "scaler/service/call_queue.h"

#include <algorithm>
#include <utility>

namespace muster::scaler {

absl::Status CallQueue::Run(std::function<void()> body, std::chrono::milliseconds deadline) {
  const auto call = std::make_shared<Call>(Call{.body = std::move(body)});
  const auto until = std::chrono::steady_clock::now() + deadline;
  MutexLock lock(&mutex_);
  if (!closed_) calls_.push_back(call);
  wake_.Wake();
  while (call->state != State::kOver) {
    if (call->state == State::kWaiting && closed_) {
      return absl::UnavailableError("the scaler is ending, so it did nothing");
    }
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    if (call->state == State::kWaiting && left.count() <= 0) {
      std::erase(calls_, call);
      return absl::DeadlineExceededError("the scaler is busy and did nothing; try again");
    }
    // It waits for a running call without a limit, because it must know how the call ends.
    changed_.WaitFor(&mutex_, std::max(left, std::chrono::milliseconds(1)));
  }
  return absl::OkStatus();
}

void CallQueue::RunWaiting() {
  wake_.Clear();
  while (true) {
    std::shared_ptr<Call> call;
    {
      MutexLock lock(&mutex_);
      if (calls_.empty()) return;
      call = calls_.front();
      calls_.pop_front();
      call->state = State::kRunning;
    }
    call->body();
    MutexLock lock(&mutex_);
    call->state = State::kOver;
    changed_.SignalAll();
  }
}

void CallQueue::Close() {
  MutexLock lock(&mutex_);
  closed_ = true;
  calls_.clear();
  changed_.SignalAll();
}

}  // namespace muster::scaler
