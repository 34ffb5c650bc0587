#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/execution.hpp>
#include <boost/asio/post.hpp>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "base/mutex.h"
#include "worker_sdk/core/kept_memory.h"

namespace muster::sdk::net_internal {

/// Runs tasks one at a time, on its own thread (that of an event loop) or on the threads that bring
/// them. If another thread has the turn, a thread leaves its task to that one and continues. No
/// thread waits. Data that only tasks use needs no lock. If a task throws, the process ends, as
/// with a handler of the event loop. Thread-safe.
class Turns {
 public:
  using Task = absl::AnyInvocable<void()>;

  /// `home` runs posted tasks on the own thread.
  explicit Turns(boost::asio::any_io_executor home) : home_(std::move(home)) {}

  /// For threads other than the own one: runs `task` now, or when the present turn (also of this
  /// thread) has ended. Afterwards the thread may run tasks that arrived meanwhile, but only once.
  template <typename Function>
  void Run(Function&& task) noexcept {
    if (!BeginOrLeave(std::forward<Function>(task))) return;
    task();
    End(Thread::kOther);
  }
  /// For threads other than the own one: runs `task` now, or not at all if another thread has the
  /// turn.
  template <typename Function>
  bool TryRun(Function&& task) noexcept {
    if (!Begin()) return false;
    task();
    End(Thread::kOther);
    return true;
  }
  /// The same as Run for the own thread. It runs all tasks that other threads leave.
  template <typename Function>
  void RunAtHome(Function&& task) noexcept {
    if (!BeginOrLeave(std::forward<Function>(task))) return;
    task();
    End(Thread::kOwn);
  }

  const boost::asio::any_io_executor& home() const { return home_; }

 private:
  enum class Thread { kOwn, kOther };

  /// Takes the turn. Returns false if another thread has it.
  bool Begin() {
    MutexLock lock(&mutex_);
    return !std::exchange(taken_, true);
  }
  /// The same, but leaves `task` to the other thread.
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
        // Other threads stop after one round. Otherwise, a thread that only wants to send could do
        // the own thread's work for ever.
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

/// An executor of Asio that runs handlers as tasks of `turns` on the own thread. So handlers and
/// the tasks of other threads run one at a time. `Inner` is the executor of the event loop. This
/// class is so small that Asio's any_io_executor can hold it without an allocation.
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
  // Properties are passed on to `inner_`.
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
