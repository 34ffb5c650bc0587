#include "master/service/task_threads.h"

#include <pthread.h>

#include <utility>

namespace muster {

TaskThreads::TaskThreads(const Options& options) : waiting_max_(options.waiting_max) {
  for (uint32_t i = 0; i < options.threads; ++i) {
    threads_.emplace_back([this] { Run(); });
    pthread_setname_np(threads_.back().native_handle(), options.name.substr(0, 15).c_str());
  }
}

TaskThreads::~TaskThreads() {
  Stop();
}

void TaskThreads::Post(std::function<void()> task) {
  {
    MutexLock lock(&mutex_);
    while (tasks_.size() >= waiting_max_ && !stopped_) begun_.Wait(&mutex_);
    if (!stopped_) {
      tasks_.push_back(std::move(task));
      if (idle_.empty()) return;
      // The next task is for another thread.
      CondVar* const thread = idle_.back();
      idle_.pop_back();
      thread->SignalAll();
      return;
    }
  }
  task();
}

void TaskThreads::Stop() {
  {
    MutexLock lock(&mutex_);
    stopped_ = true;
    for (CondVar* const thread : idle_) thread->SignalAll();
    begun_.SignalAll();
  }
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

void TaskThreads::Run() {
  CondVar posted;
  while (true) {
    std::function<void()> task;
    {
      MutexLock lock(&mutex_);
      while (tasks_.empty() && !stopped_) {
        idle_.push_back(&posted);
        posted.Wait(&mutex_);
        std::erase(idle_, &posted);
      }
      if (tasks_.empty()) return;
      if (tasks_.size() == waiting_max_) begun_.SignalAll();
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    task();
  }
}

}  // namespace muster
