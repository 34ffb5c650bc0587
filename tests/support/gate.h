#pragma once

#include "base/mutex.h"

namespace muster::testing {

/// A gate that one thread opens for others. Thread-safe.
class Gate {
 public:
  void Open() {
    MutexLock lock(&mutex_);
    open_ = true;
    changed_.SignalAll();
  }
  void Wait() {
    MutexLock lock(&mutex_);
    while (!open_) changed_.Wait(&mutex_);
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  bool open_ MUSTER_GUARDED_BY(mutex_) = false;
};

}  // namespace muster::testing
