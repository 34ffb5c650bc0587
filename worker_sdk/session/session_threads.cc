// The threads of a session: what the control thread does, what the data client reports, and how it
// ends.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "base/failpoint.h"
#include "base/status.h"
#include "worker_sdk/readers/data_root.h"
#include "worker_sdk/session/session_impl.h"

namespace muster::internal {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kGoodbyeMax{5'000};

}  // namespace

SessionImpl::Effects SessionImpl::TakeEffects() {
  Effects effects;
  effects.requests = core_.Flush(clock_.Now());
  effects.timer = core_.NextFlush();
  if (!core_.failure().empty()) FailLocked(absl::InternalError(core_.failure()));
  WakeControl();
  return effects;
}

void SessionImpl::WakeControl() {
  if (core_.NextExchange(clock_.Now()) < control_waits_until_) control_wake_.SignalAll();
}

void SessionImpl::CarryOut(Effects effects) {
  if (!effects.requests.empty()) MUSTER_FAILPOINT("request.before-send");
  data_->Send(std::move(effects.requests));
  if (effects.timer) data_->SetTimer(*effects.timer);
}

bool SessionImpl::OnReply(const sdk::SendRequest& request, std::span<const wire::PartReply> parts,
                          const sdk::ReceivedRows& rows, std::string_view text) {
  if (request.push.has_value()) MUSTER_FAILPOINT("push.after-reply");
  if (!request.push.has_value()) {
    // The rows may have megabytes, so they are copied without the mutex.
    sdk::RowMoves moves;
    {
      MutexLock lock(&mutex_);
      moves = core_.PlaceRows(request.id, parts, rows);
    }
    sdk::MoveRows(moves, rows.check);
    if (rows.check != nullptr && !rows.check->Finish()) return false;
  }
  Effects effects;
  {
    MutexLock lock(&mutex_);
    core_.OnReply(request, parts, rows, text, clock_.Now());
    last_trouble_.clear();
    effects = TakeEffects();
    changed_.SignalAll();
  }
  CarryOut(std::move(effects));
  return true;
}

void SessionImpl::OnUnanswered(sdk::RequestId id, std::string_view why) {
  Effects effects;
  {
    MutexLock lock(&mutex_);
    last_trouble_ = why;
    core_.OnUnanswered(id, clock_.Now());
    effects = TakeEffects();
  }
  CarryOut(std::move(effects));
}

void SessionImpl::OnRefused(const sdk::SendRequest& request, std::string_view text) {
  Effects effects;
  {
    MutexLock lock(&mutex_);
    last_trouble_ = text;
    core_.OnRefused(request, text, clock_.Now());
    effects = TakeEffects();
    changed_.SignalAll();
  }
  CarryOut(std::move(effects));
}

void SessionImpl::OnConnected(const sdk::LaneAddress& lane) {
  MutexLock lock(&mutex_);
  unreachable_.OnConnected(lane);
}

void SessionImpl::OnCannotConnect(const sdk::LaneAddress& lane, std::string_view why) {
  MutexLock lock(&mutex_);
  unreachable_.OnCannotConnect(lane, why, clock_.Now());
}

void SessionImpl::OnTimer() {
  Effects effects;
  {
    MutexLock lock(&mutex_);
    effects = TakeEffects();
  }
  CarryOut(std::move(effects));
}

absl::Status SessionImpl::AskInterrupted() {
  const bool ends = options_.interrupted && options_.interrupted();
  MutexLock lock(&mutex_);
  if (ends) FailLocked(absl::CancelledError("interrupted: a wait was told to end"));
  return failure_;
}

void SessionImpl::AwaitChange(std::chrono::nanoseconds max, sdk::WaitingAsks* asks) {
  if (!options_.interrupted) {
    changed_.WaitFor(&mutex_, max);
    return;
  }
  changed_.WaitFor(&mutex_, std::min<std::chrono::nanoseconds>(max, sdk::kAskEvery));
  if (!asks->Due(clock_.Now())) return;
  mutex_.Unlock();  // what is asked may call the session
  (void)AskInterrupted();
  mutex_.Lock();
}

void SessionImpl::WaitUntil(absl::FunctionRef<bool()> done, std::string_view what,
                            sdk::TimeSum* time) {
  TimePoint begin = clock_.Now();
  time->Enter(begin);
  sdk::WaitingLines lines(begin);
  sdk::WaitingAsks asks(begin);
  while (!done()) {
    AwaitChange(sdk::kWaitingLineAfter, &asks);
    TimePoint now = clock_.Now();
    if (done() || !lines.Due(now)) continue;
    std::fprintf(stderr, "muster: waiting for %s (%lld s)%s%s\n", std::string(what).c_str(),
                 lines.seconds(now),
                 last_trouble_.empty() ? "" : "; last trouble: ", last_trouble_.c_str());
  }
  time->Leave(clock_.Now());
}

void SessionImpl::WaitForAnswers(absl::FunctionRef<bool()> done, std::string_view what,
                                 sdk::TimeSum* time) {
  TimePoint began;
  std::chrono::nanoseconds budget{0};
  {
    MutexLock lock(&mutex_);
    if (done()) return;
    began = clock_.Now();
    time->Enter(began);
    budget = spin_budget_.budget();
  }
  data_->Spin(
      [&] {
        MutexLock lock(&mutex_);
        return done();
      },
      budget);
  MutexLock lock(&mutex_);
  sdk::TimeSum counted_already;
  if (!done()) WaitUntil(done, what, &counted_already);
  const TimePoint now = clock_.Now();
  time->Leave(now);
  spin_budget_.Waited(now - began);
}

void SessionImpl::RunControl() {
  sdk::ControlClient client(options_.master_address, options_.worker_name, JobOf(hello_),
                            tls_.master);
  // Several calls fit into a lease, so that one hanging call does not lose it.
  auto timeout = milliseconds(std::clamp<uint64_t>(hello_.lease_duration_ms / 4, 500, 2'000));
  while (true) {
    WorkerExchangeRequest request;
    {
      MutexLock lock(&mutex_);
      if (stopping_) return;
      TimePoint now = clock_.Now(), next = core_.NextExchange(now);
      if (next > now) {
        control_waits_until_ = next;
        control_wake_.WaitFor(
            &mutex_, std::min<std::chrono::nanoseconds>(next - now, std::chrono::seconds(10)));
        control_waits_until_ = TimePoint();
        continue;
      }
      request = core_.BeginExchange(times_.At(now, started_), now);
      request.unreachable = unreachable_.Report(now);
      request.unwritten = unwritten_.Text(now);
    }
    request.usage = usage_meter_.Read(clock_.Now());
    OnExchanged(client.Exchange(request, timeout));
  }
}

absl::Status SessionImpl::JudgeAbsence(const absl::Status& answer) {
  const TimePoint now = clock_.Now();
  const milliseconds max(options_.master_away_max_ms);
  MutexLock lock(&mutex_);
  if (answer.ok() || answered_at_ == TimePoint()) answered_at_ = now;
  if (max.count() == 0 || now - answered_at_ < max) return absl::OkStatus();
  return absl::UnavailableError(fmt::format("the master has not answered for {} s: {}",
                                            max / std::chrono::seconds(1), Message(answer)));
}

void SessionImpl::OnExchanged(const absl::StatusOr<WorkerExchangeReply>& reply) {
  const absl::Status away = JudgeAbsence(reply.status());
  std::shared_ptr<const PartitionMap> fresh;
  Effects effects;
  {
    MutexLock lock(&mutex_);
    if (!away.ok()) FailLocked(away);
    if (reply.ok()) {
      if (options_.data_root.empty()) {
        core_.OnExchangeReply(*reply, clock_.Now());
      } else {
        WorkerExchangeReply here = *reply;
        for (ShardGrant& grant : here.grants) {
          sdk::MoveHere(options_.data_root, &grant.work);
        }
        core_.OnExchangeReply(here, clock_.Now());
      }
      last_trouble_.clear();
      bool stop = reply->directive != JobDirective::kWork && core_.draining();
      // The slot file says so before a loop can see it, so an exit right after it counts as
      // correct.
      if (stop && !told_to_stop_) slot_.End();
      told_to_stop_ |= stop;
    } else {
      last_trouble_ = Message(reply.status());
      core_.OnExchangeFailed(clock_.Now());
      if (sdk::IsPermanent(reply.status())) {
        FailLocked(Annotate(reply.status(), "the master refuses this worker"));
      }
    }
    if (core_.map() && core_.map()->version > order_version_) {
      if (core_.map()->partitions.size() == hello_.partition_count) {
        fresh = core_.map();
        unreachable_.OnServers(fresh->servers);
        order_ = std::make_shared<const std::vector<PartitionId>>(sdk::SendingOrder(*fresh));
      } else {
        FailLocked(absl::InternalError(
            fmt::format("the master's map has {} partitions, the job has {}",
                        core_.map()->partitions.size(), hello_.partition_count)));
      }
      order_version_ = core_.map()->version;
    }
    effects = TakeEffects();
    changed_.SignalAll();
  }
  if (fresh) data_->SetServers(fresh->servers);
  CarryOut(std::move(effects));
}

SessionImpl::~SessionImpl() {
  {
    MutexLock lock(&mutex_);
    core_.Abandon();
    WakeControl();
    TimePoint until = clock_.Now() + kGoodbyeMax;
    while (!core_.idle() && !core_.ended() && clock_.Now() < until) {
      changed_.WaitFor(&mutex_, until - clock_.Now());
    }
    stopping_ = true;
    control_wake_.SignalAll();
  }
  if (control_.joinable()) control_.join();
  data_->Stop();
}

sdk::KeepWaiting SessionImpl::WaitingFor(const RunRef& run, std::string what, bool leaving) {
  return [this, run, leaving, what = std::move(what), lines = sdk::WaitingLines(clock_.Now()),
          asks = sdk::WaitingAsks(clock_.Now())](std::string_view trouble) mutable {
    const TimePoint now = clock_.Now();
    if (asks.Due(now)) (void)AskInterrupted();
    if (lines.Due(now)) {
      std::fprintf(stderr, "muster: waiting for %s (%lld s)%s%s\n", what.c_str(),
                   lines.seconds(now),
                   trouble.empty() ? "" : "; last trouble: ", std::string(trouble).c_str());
    }
    MutexLock lock(&mutex_);
    const bool holds = hello_.group || core_.Holds(run.token, run.run);
    return failure_.ok() && (leaving || !told_to_stop_) && holds;
  };
}

int SessionImpl::Finish() {
  const int code = FinishWork();
  if (JobIsOver()) outputs_.RemoveUnfinished();
  return code;
}

bool SessionImpl::JobIsOver() {
  MutexLock lock(&mutex_);
  return core_.ended();
}

int SessionImpl::FinishWork() {
  MutexLock lock(&mutex_);
  const bool left_early = !told_to_stop_ && failure_.ok();
  // The caller runs no loop any more, so a wait for shards that are still in a loop would never
  // end.
  const std::vector<LeaseToken> loops = core_.EndLoops();
  for (const LeaseToken token : loops) slot_.Leave(token);
  changed_.SignalAll();
  WakeControl();
  sdk::TimeSum ignored;
  WaitUntil(
      [&]() MUSTER_NO_THREAD_SAFETY_ANALYSIS {
        return finished_.has_value() || !failure_.ok() || core_.ended() || core_.idle();
      },
      "the master to take what was reported", &ignored);
  if (finished_.has_value()) return *finished_;
  finished_ = failure_.ok() && !left_early ? 0 : 1;
  if (left_early && failure_.ok()) {
    std::fprintf(stderr,
                 "muster: the trainer left its loop before the job was over; what it held was "
                 "handed back%s\n",
                 loops.empty()
                     ? ""
                     : fmt::format(" (shards that were in a loop: {})", loops.size()).c_str());
  }
  return *finished_;
}

}  // namespace muster::internal
