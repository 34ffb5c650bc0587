#include "worker_sdk/member/member_desk.h"

#include <algorithm>

#include "worker_sdk/session/waiting.h"

namespace muster::internal {
namespace {

/// The trainer's thread looks at what nobody tells the desk, for example whether it is to leave.
constexpr std::chrono::milliseconds kLookEvery{250};

}  // namespace

void MemberDesk::Open(Listeners listeners) {
  MutexLock lock(&mutex_);
  listeners_ = std::move(listeners);
  Settle();
}

void MemberDesk::Close() {
  MutexLock lock(&mutex_);
  listeners_ = Listeners();
}

void MemberDesk::Settle() {
  const bool over = contents_.over();
  if (!contents_.failure.ok() && !std::exchange(told_failure_, true)) {
    on_failure_(contents_.failure);
  }
  if (!listeners_.post) return;
  bool work = over || contents_.HasWorkForSums();
  if (contents_.core.has_value()) {
    const sdk::StepRunNumber run = contents_.core->run();
    if (std::exchange(told_run_, run) != run) listeners_.on_run(run);
    sdk::MemberEffects effects = contents_.core->TakeEffects(clock_.Now());
    if (effects.sums) {
      contents_.wanted = contents_.core->WantedSums();
      contents_.share = contents_.wanted.has_value() ? sdk::MinibatchesOf(contents_.wanted->share)
                                                     : IntervalSet();
    }
    contents_.core_again = effects.again;
    effects_.Add(std::move(effects));
    work = work || std::exchange(contents_.look_soon, false) || effects_.call || effects_.ring ||
           effects_.sums || effects_.stop_transfer || effects_.transfer.has_value() ||
           effects_.capture.has_value() || effects_.digest.has_value() ||
           (effects_.again.has_value() && *effects_.again < contents_.looks_at);
  }
  const bool wakes = (waits_ == Waits::kTask && effects_.task) ||
                     (waits_ == Waits::kReads && contents_.reads == 0) ||
                     (waits_ != Waits::kNothing && over);
  if (wakes) changed_.SignalAll();
  if (work && !posted_) {
    posted_ = true;
    listeners_.post();
  }
}

MemberDesk::Orders MemberDesk::TakeOrders() {
  MutexLock lock(&mutex_);
  posted_ = false;
  Orders orders;
  orders.effects = std::exchange(effects_, {});
  orders.filled = std::exchange(contents_.filled, {});
  orders.all_blocks = std::exchange(contents_.look_at_blocks, false);
  orders.over = contents_.over();
  return orders;
}

void MemberDesk::Fail(absl::Status status) {
  Tell([&](DeskContents& desk) { desk.Fail(std::move(status)); });
}

bool MemberDesk::Await(Waits what, const std::function<bool(DeskContents&)>& done,
                       std::optional<TimePoint> until) {
  MutexLock lock(&mutex_);
  bool holds = false;
  const std::chrono::nanoseconds look_every = ask_ ? sdk::kAskEvery : kLookEvery;
  sdk::WaitingAsks asks(clock_.Now());
  while (true) {
    holds = done(contents_);
    // `done` may have asked the core for a task.
    Settle();
    const TimePoint now = clock_.Now();
    if (holds || contents_.over() || (until.has_value() && now >= *until)) return holds;
    waits_ = what;
    changed_.WaitFor(&mutex_, until.has_value() ? std::min(*until - now, look_every) : look_every);
    waits_ = Waits::kNothing;
    if (!ask_ || !asks.Due(clock_.Now())) continue;
    mutex_.Unlock();
    absl::Status told = ask_();
    mutex_.Lock();
    if (!told.ok()) contents_.Fail(std::move(told));
  }
}

bool MemberDesk::BeginRun(sdk::StepRunNumber run, std::optional<TimePoint> until) {
  return Await(
      Waits::kReads,
      [run](DeskContents& desk) {
        const bool free = desk.gradients->run() == run || desk.reads == 0;
        if (free) desk.gradients->Begin(run);
        return free;
      },
      until);
}

bool MemberDesk::StartMinibatch(sdk::StepRunNumber run, MinibatchIndex minibatch,
                                std::optional<TimePoint> until) {
  bool started = false;
  Await(
      Waits::kReads,
      [&](DeskContents& desk) {
        if (desk.reads > 0) return false;
        started = !desk.over() && desk.core->StartMinibatch(run, minibatch);
        return true;
      },
      until);
  return started;
}

}  // namespace muster::internal
