#include "ps/service/work_queue.h"

#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>

#include <cerrno>
#include <utility>

namespace muster::ps {
namespace {

/// Each step of niceness takes a fifth of the share; SCHED_IDLE would starve on a full machine.
constexpr int kNiceSteps = 5;

/// A thread may always lower its own priority, which Linux keeps for each thread. With SCHED_BATCH,
/// it does not preempt another thread when it gets work, for example when a lane hands it an image.
void LowerOwnPriority() {
  errno = 0;
  const int nice = ::getpriority(PRIO_PROCESS, 0);
  if (errno == 0) ::setpriority(PRIO_PROCESS, 0, nice + kNiceSteps);
  const sched_param none{};
  ::sched_setscheduler(0, SCHED_BATCH, &none);
}

}  // namespace

WorkQueue::WorkQueue(const std::string& name, Priority priority, uint32_t threads) {
  for (uint32_t i = 0; i < threads; ++i) {
    threads_.emplace_back([this, priority] { Run(priority); });
    pthread_setname_np(threads_.back().native_handle(), name.substr(0, 15).c_str());
  }
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
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

void WorkQueue::Run(Priority priority) {
  if (priority == Priority::kLow) LowerOwnPriority();
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
