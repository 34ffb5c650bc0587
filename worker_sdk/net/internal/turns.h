#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/execution.hpp>
#include <deque>
#include <type_traits>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "base/mutex.h"

namespace muster::sdk::net_internal {

/// Runs tasks one at a time, on the threads that bring them. Who finds that it is another's turn
/// leaves its task to that one and goes on; nobody waits. What tasks touch needs no lock.
/// Thread-safe.
class Turns {
 public:
  using Task = absl::AnyInvocable<void()>;

  /// Runs `task`, now or when the turn that is under way (also of this thread) has ended.
  void Run(Task task) {
    {
      MutexLock lock(&mutex_);
      if (taken_) return tasks_.push_back(std::move(task));
      taken_ = true;
    }
    task();
    End();
  }
  /// Runs `task` now, or not at all: it is another's turn.
  template <typename Function>
  bool TryRun(Function&& task) {
    {
      MutexLock lock(&mutex_);
      if (std::exchange(taken_, true)) return false;
    }
    task();
    End();
    return true;
  }

 private:
  /// Runs what others have left.
  void End() {
    std::deque<Task> left;
    while (true) {
      {
        MutexLock lock(&mutex_);
        if (tasks_.empty()) {
          taken_ = false;
          return;
        }
        left.swap(tasks_);
      }
      for (Task& task : left) task();
      left.clear();
    }
  }

  Mutex mutex_;
  bool taken_ MUSTER_GUARDED_BY(mutex_) = false;
  std::deque<Task> tasks_ MUSTER_GUARDED_BY(mutex_);
};

/// An executor of Asio that runs handlers of `inner` as tasks of `turns`, so that they and the
/// tasks of other threads come one at a time.
class TurnsExecutor {
 public:
  TurnsExecutor(boost::asio::any_io_executor inner, Turns* turns)
      : inner_(std::move(inner)), turns_(turns) {}

  template <typename Function>
  void execute(Function function) const {
    inner_.execute([turns = turns_, function = std::move(function)]() mutable {
      turns->Run(std::move(function));
    });
  }
  // Properties are those of `inner`.
  template <typename Property>
    requires boost::asio::can_query_v<const boost::asio::any_io_executor&, Property>
  decltype(auto) query(const Property& property) const {
    return boost::asio::query(inner_, property);
  }
  template <typename Property>
    requires boost::asio::can_require_v<const boost::asio::any_io_executor&, Property>
  TurnsExecutor require(const Property& property) const {
    return {boost::asio::require(inner_, property), turns_};
  }
  template <typename Property>
    requires boost::asio::can_prefer_v<const boost::asio::any_io_executor&, Property>
  TurnsExecutor prefer(const Property& property) const {
    return {boost::asio::prefer(inner_, property), turns_};
  }
  friend bool operator==(const TurnsExecutor& a, const TurnsExecutor& b) noexcept {
    return a.inner_ == b.inner_ && a.turns_ == b.turns_;
  }

 private:
  boost::asio::any_io_executor inner_;
  Turns* turns_;
};

}  // namespace muster::sdk::net_internal
