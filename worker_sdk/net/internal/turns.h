#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/execution.hpp>
#include <boost/asio/post.hpp>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "base/mutex.h"

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
  void Run(Task task) noexcept {
    if (!Begin(&task)) return;
    task();
    End(Thread::kOther);
  }
  /// Runs `task` now, or not at all: it is another's turn. For other threads.
  template <typename Function>
  bool TryRun(Function&& task) noexcept {
    if (!Begin(nullptr)) return false;
    task();
    End(Thread::kOther);
    return true;
  }
  /// As Run, for the own thread: it runs all that others leave.
  void RunAtHome(Task task) noexcept {
    if (!Begin(&task)) return;
    task();
    End(Thread::kOwn);
  }

  const boost::asio::any_io_executor& home() const { return home_; }

 private:
  enum class Thread { kOwn, kOther };

  /// Takes the turn. False: it is another's, and `*task`, if there is one, is left to it.
  bool Begin(Task* task) {
    MutexLock lock(&mutex_);
    if (!std::exchange(taken_, true)) return true;
    if (task != nullptr) left_.push_back(std::move(*task));
    return false;
  }
  void End(Thread thread) {
    std::vector<Task> tasks;
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
  std::vector<Task> left_ MUSTER_GUARDED_BY(mutex_);
};

/// An executor of Asio that runs handlers as tasks of `turns`, at home, so that they and the tasks
/// of other threads come one at a time.
class TurnsExecutor {
 public:
  explicit TurnsExecutor(Turns* turns) : TurnsExecutor(turns->home(), turns) {}

  template <typename Function>
  void execute(Function function) const {
    inner_.execute([turns = turns_, function = std::move(function)]() mutable {
      turns->RunAtHome(std::move(function));
    });
  }
  // Properties are those of `inner_`.
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
  TurnsExecutor(boost::asio::any_io_executor inner, Turns* turns)
      : inner_(std::move(inner)), turns_(turns) {}

  boost::asio::any_io_executor inner_;
  Turns* turns_;
};

}  // namespace muster::sdk::net_internal
