#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "base/clock.h"
#include "base/interval_set.h"
#include "base/mutex.h"
#include "worker_sdk/member/kept_totals.h"
#include "worker_sdk/member/step_totals.h"
#include "worker_sdk/member_core/call_times.h"
#include "worker_sdk/member_core/member_core.h"
#include "worker_sdk/member_core/own_gradients.h"

namespace muster::internal {

/// What lies on the desk of a member: everything that more than one of its threads needs.
struct DeskContents {
  std::optional<sdk::MemberCore> core;  // made by the first NextStep, like the gradients
  std::optional<sdk::OwnGradients> gradients;
  /// How many sums still read gradients: their minibatches must not be added to.
  uint32_t reads = 0;
  /// The sums that the core wants, and the minibatches of its share.
  std::optional<sdk::WantedSum> wanted;
  IntervalSet share;
  /// Blocks of buckets that have come to have the share.
  std::vector<uint32_t> filled;
  /// A run of which this member has no minibatches may begin now.
  bool look_at_blocks = false;
  bool look_soon = false;
  /// Of the newest sum that was made with others and is to be applied, and of one that was fetched.
  std::shared_ptr<StepTotals> sums, fetched;
  KeptTotals kept;
  sdk::CallTimes call_times;
  uint32_t calls = 0;  // to the master, that are not answered
  /// When the loop looks again although nothing has happened.
  TimePoint looks_at{};
  std::optional<TimePoint> core_again;  // MemberEffects::again
  bool state_copied = false;            // since the trainer has asked last
  std::string trouble;                  // with the master or with another member, for waiting lines
  absl::Status failure;
  bool stopping = false;

  bool over() const { return stopping || !failure.ok(); }
  /// The trainer has computed its share: the next call may be due sooner than the loop looks.
  void Computed(TimePoint now) {
    call_times.OnComputed(now);
    look_soon = calls == 0 && call_times.Next(core->computes()) < looks_at;
  }
  /// The block has got something in one of its buckets.
  void Filled(uint32_t block) {
    if (wanted.has_value() && gradients->Complete(wanted->run, block, share)) {
      filled.push_back(block);
    }
    Freed();
  }
  bool HasWorkForSums() const { return !filled.empty() || look_at_blocks; }
  /// Sums have ended, or values are written: zeros of another run may be given now.
  void Freed() {
    const bool zeros = wanted.has_value() && share.empty() && gradients->run() != wanted->run;
    if (zeros && reads == 0 && !gradients->writing()) look_at_blocks = true;
  }
  /// The first failure stays.
  void Fail(absl::Status status) {
    if (failure.ok()) failure = std::move(status);
  }
};

/// The MemberCore and what belongs to it, under one mutex, between the trainer's threads, the loop
/// of the group and the thread for copies. Whoever tells it what has happened need not know who is
/// to act on it: the desk wakes the trainer's thread, and has the loop carry out the rest.
/// Nothing is sent, read, copied or added while it is held. Thread-safe.
class MemberDesk {
 public:
  /// What the loop is to carry out.
  struct Orders {
    sdk::MemberEffects effects;
    std::vector<uint32_t> filled;
    bool all_blocks = false;  // may be to be added, whether they are filled or not
    bool over = false;
  };
  /// What has to hear of the events of the core, besides the loop.
  struct Listeners {
    /// Has the loop take the orders, soon.
    std::function<void()> post;
    /// Gradients of this run are of use, and of no other one.
    std::function<void(sdk::StepRunNumber)> on_run;
  };

  /// `on_failure` is called when the group fails. `ask` is asked at least every 50 ms while the
  /// trainer's thread waits, without the mutex: an error ends the wait, and fails the group.
  explicit MemberDesk(std::function<void(const absl::Status&)> on_failure,
                      std::function<absl::Status()> ask = nullptr)
      : on_failure_(std::move(on_failure)), ask_(std::move(ask)) {}
  /// There is a core. Before it, and after Close, nothing is told to the listeners.
  void Open(Listeners listeners);
  void Close();

  /// Something happens: `act` gets the contents. Returns what it returns.
  template <typename Act>
  auto Tell(Act&& act) MUSTER_EXCLUDES(mutex_) {
    MutexLock lock(&mutex_);
    if constexpr (std::is_void_v<decltype(act(contents_))>) {
      act(contents_);
      Settle();
    } else {
      auto result = act(contents_);
      Settle();
      return result;
    }
  }
  /// A bucket gets something, which happens often: `act` calls Filled, and changes nothing else
  /// that somebody must hear of. So the core is not asked what follows, and the loop is woken only
  /// if it is to add something.
  template <typename Act>
  void TellOfBucket(Act&& act) MUSTER_EXCLUDES(mutex_) {
    MutexLock lock(&mutex_);
    act(contents_);
    if (contents_.HasWorkForSums() && !posted_) Settle();
  }
  /// Nothing happens that somebody must hear of.
  template <typename Act>
  auto Look(Act&& act) const MUSTER_EXCLUDES(mutex_) {
    MutexLock lock(&mutex_);
    return act(contents_);
  }
  /// On the loop.
  Orders TakeOrders() MUSTER_EXCLUDES(mutex_);
  void Fail(absl::Status status) MUSTER_EXCLUDES(mutex_);

  /// What the trainer's thread may wait for.
  enum class Waits : uint8_t { kNothing, kTask, kReads, kTime };
  /// The trainer's thread waits until `done` holds, the group is over, or the time has come. `done`
  /// gets the contents at first, when what it waits for may be there, and now and then. True: it
  /// holds.
  bool Await(Waits what, const std::function<bool(DeskContents&)>& done,
             std::optional<TimePoint> until = {}) MUSTER_EXCLUDES(mutex_);

  /// The trainer's thread begins a run, whose gradients are zero, when no sum reads those of the
  /// run before: its attempt is over, so it soon ends. False: the group, or the time, was over
  /// before.
  bool BeginRun(sdk::StepRunNumber run, std::optional<TimePoint> until = {})
      MUSTER_EXCLUDES(mutex_);
  /// The trainer's thread begins a minibatch, as MemberCore::StartMinibatch, when no sum reads
  /// gradients any more. No bucket is complete without this minibatch, so only sums of an attempt
  /// that is over may still do: what is added now must not change it under them. `until`: as for
  /// Await.
  bool StartMinibatch(sdk::StepRunNumber run, MinibatchIndex minibatch,
                      std::optional<TimePoint> until = {}) MUSTER_EXCLUDES(mutex_);

  TimePoint Now() const { return clock_.Now(); }

 private:
  void Settle() MUSTER_REQUIRES(mutex_);

  const SystemClock clock_;
  mutable Mutex mutex_;
  CondVar changed_;
  const std::function<void(const absl::Status&)> on_failure_;
  const std::function<absl::Status()> ask_;
  Listeners listeners_ MUSTER_GUARDED_BY(mutex_);
  mutable DeskContents contents_ MUSTER_GUARDED_BY(mutex_);
  sdk::MemberEffects effects_ MUSTER_GUARDED_BY(mutex_);
  sdk::StepRunNumber told_run_ MUSTER_GUARDED_BY(mutex_) = 0;
  bool told_failure_ MUSTER_GUARDED_BY(mutex_) = false;
  bool posted_ MUSTER_GUARDED_BY(mutex_) = false;
  Waits waits_ MUSTER_GUARDED_BY(mutex_) = Waits::kNothing;
};

}  // namespace muster::internal
