#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/execution.hpp>
#include <boost/asio/post.hpp>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "base/mutex.h"
#include "worker_sdk/core/pooled.h"

namespace muster::sdk::net_internal {

/// Runs tasks one at a time: on its own thread, an event loop's, or on the threads that bring them.
/// Who finds that it is another's turn leaves its task to that one and goes on; nobody waits. What
/// tasks touch needs no lock. A task that throws ends the process, as a handler of the event loop
/// does. Thread-safe.
class Turns {
 public:
  using Task = absl::AnyInvocable<void()>;

  /// `home`: runs what is posted to it on the own thread.
  explicit Turns(boost::asio::any_io_executor home) : home_(std::move(home)) {}

  /// Runs `task`, now or when the turn that is under way (also of this thread) has ended. For other
  /// threads: it may run here what has come meanwhile, but no more than that.
  template <typename Function>
  void Run(Function&& task) noexcept {
    if (!BeginOrLeave(std::forward<Function>(task))) return;
    task();
    End(Thread::kOther);
  }
  /// Runs `task` now, or not at all: it is another's turn. For other threads.
  template <typename Function>
  bool TryRun(Function&& task) noexcept {
    if (!Begin()) return false;
    task();
    End(Thread::kOther);
    return true;
  }
  /// As Run, for the own thread: it runs all that others leave.
  template <typename Function>
  void RunAtHome(Function&& task) noexcept {
    if (!BeginOrLeave(std::forward<Function>(task))) return;
    task();
    End(Thread::kOwn);
  }

  const boost::asio::any_io_executor& home() const { return home_; }

 private:
  enum class Thread { kOwn, kOther };

  /// Takes the turn. False: it is another's.
  bool Begin() {
    MutexLock lock(&mutex_);
    return !std::exchange(taken_, true);
  }
  /// The same, but then `task` is left to that one.
  template <typename Function>
  bool BeginOrLeave(Function&& task) {
    MutexLock lock(&mutex_);
    if (!std::exchange(taken_, true)) return true;
    left_.emplace_back(std::forward<Function>(task));
    return false;
  }
  void End(Thread thread) {
    PooledVector<Task> tasks;
    for (bool first = true;; first = false) {
      tasks.clear();
      {
        MutexLock lock(&mutex_);
        if (left_.empty()) {
          taken_ = false;
          return;
        }
        // Else a thread that only wanted to send might do the work of the own one for ever.
        if (thread == Thread::kOther && !first) break;
        tasks.swap(left_);
      }
      for (Task& task : tasks) task();
    }
    boost::asio::post(home_, [this]() noexcept { End(Thread::kOwn); });  // the turn is still taken
  }

  const boost::asio::any_io_executor home_;
  Mutex mutex_;
  bool taken_ MUSTER_GUARDED_BY(mutex_) = false;
  PooledVector<Task> left_ MUSTER_GUARDED_BY(mutex_);
};

/// An executor of Asio that runs handlers as tasks of `turns`, at home, so that they and the tasks
/// of other threads come one at a time. `Inner`: the event loop's. It is small enough for Asio's
/// any_io_executor to hold it without memory of its own.
template <typename Inner>
class TurnsExecutor {
 public:
  TurnsExecutor(Inner inner, Turns* turns) : inner_(std::move(inner)), turns_(turns) {}

  template <typename Function>
  void execute(Function function) const {
    inner_.execute([turns = turns_, function = std::move(function)]() mutable {
      turns->RunAtHome(std::move(function));
    });
  }
  // Properties are those of `inner_`.
  template <typename Property>
    requires boost::asio::can_query_v<const Inner&, Property>
  decltype(auto) query(const Property& property) const {
    return boost::asio::query(inner_, property);
  }
  template <typename Property>
    requires boost::asio::can_require_v<const Inner&, Property>
  auto require(const Property& property) const {
    return Over(boost::asio::require(inner_, property));
  }
  template <typename Property>
    requires boost::asio::can_prefer_v<const Inner&, Property>
  auto prefer(const Property& property) const {
    return Over(boost::asio::prefer(inner_, property));
  }
  friend bool operator==(const TurnsExecutor& a, const TurnsExecutor& b) noexcept {
    return a.inner_ == b.inner_ && a.turns_ == b.turns_;
  }

 private:
  template <typename Other>
  TurnsExecutor<Other> Over(Other inner) const {
    return {std::move(inner), turns_};
  }

  Inner inner_;
  Turns* turns_;
};

}  // namespace muster::sdk::net_internal
