#include "ps/service/work_queue.h"

#include <pthread.h>

#include <utility>

namespace muster::ps {

WorkQueue::WorkQueue(const std::string& name) : thread_([this] { Run(); }) {
  pthread_setname_np(thread_.native_handle(), name.substr(0, 15).c_str());
}

WorkQueue::~WorkQueue() {
  Stop();
}

void WorkQueue::Post(std::function<void()> task) {
  MutexLock lock(&mutex_);
  if (stopped_) return;
  tasks_.push_back(std::move(task));
  changed_.SignalAll();
}

void WorkQueue::Stop() {
  std::deque<std::function<void()>> dropped;
  {
    MutexLock lock(&mutex_);
    stopped_ = true;
    dropped.swap(tasks_);
    changed_.SignalAll();
  }
  if (thread_.joinable()) thread_.join();
}

void WorkQueue::Run() {
  while (true) {
    std::function<void()> task;
    {
      MutexLock lock(&mutex_);
      while (tasks_.empty() && !stopped_) changed_.Wait(&mutex_);
      if (stopped_) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    task();
  }
}

}  // namespace muster::ps
