#include "kubernetes/pods/call_threads.h"

#include <utility>

namespace muster::kubernetes {

CallThreads::CallThreads(size_t threads) {
  for (size_t i = 0; i < threads; ++i) {
    threads_.emplace_back([this](const std::stop_token& stop) { Run(stop); });
  }
}

CallThreads::~CallThreads() {
  for (std::jthread& thread : threads_) thread.request_stop();
  {
    const MutexLock lock(&mutex_);
    changed_.SignalAll();
  }
  for (std::jthread& thread : threads_) thread.join();
}

void CallThreads::Post(Call call) {
  const MutexLock lock(&mutex_);
  waiting_.push_back(std::move(call));
  changed_.SignalAll();
}

void CallThreads::Run(const std::stop_token& stop) {
  while (true) {
    Call call;
    {
      const MutexLock lock(&mutex_);
      while (waiting_.empty() && !stop.stop_requested()) changed_.Wait(&mutex_);
      if (stop.stop_requested()) return;
      call = std::move(waiting_.front());
      waiting_.pop_front();
    }
    call(stop);
  }
}

}  // namespace muster::kubernetes
