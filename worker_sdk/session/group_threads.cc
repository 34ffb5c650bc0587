// The threads of a group that make exchanges with the master, and that sum with other members.
#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <utility>

#include "base/failpoint.h"
#include "base/status.h"
#include "worker_sdk/control/control_client.h"
#include "worker_sdk/readers/data_root.h"
#include "worker_sdk/session/group_impl.h"

namespace muster::internal {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kCallTimeoutMin{2'000};
constexpr milliseconds kLookAgain{250};
/// To make numbers of so few bytes takes the Listener's thread less time than to wake another.
constexpr size_t kSmallBytes = size_t{32} << 10;

}  // namespace

void GroupImpl::StartThreads() {
  storer_.emplace(store_.get());
  const auto start = [this](const char* name, std::function<void()> run) {
    threads_.emplace_back(std::move(run));
    pthread_setname_np(threads_.back().native_handle(), name);
  };
  start("muster-group-a", [this] { RunExchanges(&call_due_[0]); });
  start("muster-group-b", [this] { RunExchanges(&call_due_[1]); });
  start("muster-sums", [this] { RunSums(); });
  start("muster-copies", [this] { RunCopies(); });
}

/// The threads that have something to do now. A thread that is at work looks again before it
/// waits.
struct GroupImpl::Wakes {
  bool trainer = false, sums = false, copies = false;
  std::array<CondVar*, 2> calls{};
};

void GroupImpl::Signal() {
  Wake(Due());
}

GroupImpl::Wakes GroupImpl::Due() {
  ++events_;
  if (core_.has_value()) {
    session_->BeginStepRun(RunNumber(static_cast<uint32_t>(core_->run())));
  }
  const bool over = OverLocked();
  Wakes wakes;
  wakes.trainer = !trainer_waits_ || over || core_->HasTask();
  if (!core_.has_value()) return wakes;
  wakes.sums = over || SumsDue();
  wakes.copies = over || CopiesDue();
  // One thread is enough for a call.
  const bool call = !idle_.empty() && CallDue(clock_.Now());
  // The one that has just ended a call: its memory is in the cache.
  const size_t first = over || idle_.empty() ? 0 : idle_.size() - 1;
  for (size_t i = first; i < idle_.size() && (over || call); ++i) wakes.calls[i] = idle_[i];
  return wakes;
}

void GroupImpl::Wake(const Wakes& wakes) {
  if (wakes.trainer) changed_.SignalAll();
  if (wakes.sums) sums_due_.SignalAll();
  if (wakes.copies) copies_due_.SignalAll();
  for (CondVar* const due : wakes.calls) {
    if (due != nullptr) due->SignalAll();
  }
}

void GroupImpl::UnlockAndWake(bool gives) {
  Wakes wakes = Due();
  const bool here = gives && gives_here_ && wakes.sums && !OverLocked() && !digest_.has_value() &&
                    core_->WantsRing(ring_);
  wakes.sums = wakes.sums && !here;
  mutex_.Unlock();
  Wake(wakes);
  if (!here) return;
  while (GiveBuckets()) {
  }
  // What has come meanwhile is for the thread.
  MutexLock lock(&mutex_);
  if (SumsDue()) sums_due_.SignalAll();
}

bool GroupImpl::AwaitNews(CondVar* due, uint64_t* seen, std::optional<TimePoint> until) {
  MutexLock lock(&mutex_);
  while (!OverLocked() && events_ == *seen) {
    const TimePoint now = clock_.Now();
    if (until.has_value() && now >= *until) break;
    due->WaitFor(&mutex_, until.has_value()
                              ? std::min<std::chrono::nanoseconds>(*until - now, kLookAgain)
                              : kLookAgain);
  }
  *seen = events_;
  return !OverLocked();
}

// ---- exchanges ----

bool GroupImpl::CallDue(TimePoint now) const {
  if (!call_times_.MayCall(now) || calls_ > 1) return false;
  if (calls_ == 0 && (!call_times_.IsQuiet(core_->computes(), now) || !core_->NextCallIsVote()))
    return true;
  return core_->request_changed();
}

void GroupImpl::RunExchanges(CondVar* due) {
  sdk::ControlClient client(session_->options().master_address, session_->options().worker_name,
                            JobOf(session_->job()), session_->tls().master);
  while (true) {
    GroupExchangeRequest request;
    milliseconds timeout = kCallTimeoutMin;
    {
      MutexLock lock(&mutex_);
      if (OverLocked()) return;
      if (session_->leaving()) core_->Leave();
      const TimePoint now = clock_.Now();
      if (!CallDue(now)) {
        const TimePoint next = call_times_.Next(core_->computes());
        idle_until_ = next > now && calls_ == 0 ? next : now + kLookAgain;
        idle_.push_back(due);
        due->WaitFor(&mutex_, idle_until_ - now);
        std::erase(idle_, due);
        continue;
      }
      request = core_->Request();
      Watch(now, &request);
      ++calls_;
      timeout = std::max(timeout, 4 * core_->view().heartbeat_interval);
    }
    if (request.sum.has_value()) MUSTER_FAILPOINT("group.before-vote");
    absl::StatusOr<GroupExchangeReply> reply = client.ExchangeGroup(request, timeout);
    if (request.sum.has_value()) MUSTER_FAILPOINT("group.after-vote");
    OnExchanged(std::move(reply));
  }
}

void GroupImpl::Watch(TimePoint now, GroupExchangeRequest* request) {
  request->moved = moved_ + listener_->moved();
  request->written = storer_->written() + copied_.load(std::memory_order_relaxed);
  request->stuck = std::max(listener_watch_.SilentFor(now), sums_watch_.SilentFor(now));
  if (const std::optional<uint64_t> question = listener_watch_.Ask(now)) {
    listener_->Ping([this, question] {
      MutexLock lock(&mutex_);
      listener_watch_.Answered(*question);
    });
  }
  sums_watch_.Ask(now);
}

void GroupImpl::OnExchanged(absl::StatusOr<GroupExchangeReply> reply) {
  const absl::Status away = session_->JudgeAbsence(reply.status());
  const std::string& root = session_->options().data_root;
  if (reply.ok() && !root.empty()) {
    if (reply->work.has_value()) {
      reply->work->work.path = sdk::PathHere(root, reply->work->work.path);
    }
    if (reply->ahead.has_value()) reply->ahead->path = sdk::PathHere(root, reply->ahead->path);
  }
  Change change(this);
  --calls_;
  if (reply.ok()) {
    core_->OnReply(*reply);
    const GroupExchangeReply& view = core_->view();
    call_times_.OnAnswer(view.step, view.heartbeat_interval, clock_.Now());
    trouble_.clear();
    PruneKept();
  } else if (sdk::IsPermanent(reply.status())) {
    FailLocked(Annotate(reply.status(), "the master refuses this member"));
  } else if (!away.ok()) {
    FailLocked(away);
  } else if (!absl::IsAlreadyExists(reply.status())) {
    trouble_ = Message(reply.status());
    call_times_.OnError(clock_.Now());
  }
}

// ---- sums ----

void GroupImpl::RunSums() {
  uint64_t seen = 0;
  while (AwaitNews(&sums_due_, &seen, clock_.Now() + kLookAgain)) {
    while (FollowRing() || GiveBuckets() || FinishSums()) {
    }
    MutexLock lock(&mutex_);
    sums_watch_.Answered();
  }
  MutexLock giving(&giving_);
  reducer_.reset();
}

bool GroupImpl::SumsDue() const {
  if (digest_.has_value() || !core_->WantsRing(ring_)) return true;
  return BucketsDue();
}

bool GroupImpl::BucketsDue() const {
  const std::optional<sdk::WantedSum> wanted = core_->WantedSums();
  if (!wanted.has_value() || !ring_.has_value()) return false;
  if (gradients_->run() == wanted->run) return begun_.CanBegin(wanted, *gradients_);
  // The trainer's thread begins a run of which it has minibatches.
  return wanted->share.empty() && pending_ == 0;
}

bool GroupImpl::FollowRing() {
  MutexLock giving(&giving_);
  std::optional<sdk::GroupRing> ring;
  {
    MutexLock lock(&mutex_);
    if (OverLocked() || core_->WantsRing(ring_)) return false;
    ring_ = ring = core_->WantedRing();
    sums_run_ = 0;
    digest_.reset();
  }
  // Waits for callbacks, which take the mutex.
  reducer_.reset();
  if (!ring.has_value()) return true;
  collectives::ReducerOptions options;
  options.lineage = ring->lineage;
  options.attempt = ring->attempt;
  options.rank = ring->rank;
  options.members = ring->members;
  options.listener = listener_.get();
  options.backend = backend_;
  options.buckets = layout().size();
  for (uint32_t i = 0; i < layout().size(); ++i) options.on_device |= layout().elsewhere(i);
  reducer_ = collectives::Reducer::Start(std::move(options),
                                         [this, attempt = ring->attempt](SuspectedMember member) {
                                           Change change(this);
                                           core_->OnSumFailed(attempt, std::move(member));
                                         });
  return true;
}

absl::Status GroupImpl::NewSums(const sdk::WantedSum& wanted) {
  MUSTER_ASSIGN_OR_RETURN(sums_, SummedStep::Create(*gradients_));
  sums_->attempt = wanted.attempt;
  sums_->after = {core_->view().lineage, wanted.step};
  sums_->facts.epoch = core_->view().work->shard.epoch.value();
  sums_run_ = wanted.run;
  digest_.reset();
  return sums_->Allocate(*gradients_, device());
}

struct GroupImpl::GivenBucket {
  uint32_t bucket = 0;
  GroupDtype dtype = GroupDtype::kInt64;
  std::span<const std::byte> in;
  std::shared_ptr<collectives::GpuBucket> on_device;
};

absl::StatusOr<GroupImpl::GivenBucket> GroupImpl::Give(uint32_t bucket) {
  GivenBucket given{.bucket = bucket, .dtype = gradients_->tensor(bucket).dtype};
  if (gradients_->elsewhere(bucket)) {
    given.on_device = device_buckets_[bucket];
    if (gradients_->zero(bucket)) MUSTER_RETURN_IF_ERROR(given.on_device->Clear());
  } else {
    MUSTER_ASSIGN_OR_RETURN(given.in, gradients_->Encoded(bucket));
  }
  return given;
}

bool GroupImpl::GiveBuckets() {
  MutexLock giving(&giving_);
  std::vector<GivenBucket> ready;
  std::shared_ptr<SummedStep> sums;
  StepNumber step;
  sdk::StepRunNumber run = 0;
  {
    MutexLock lock(&mutex_);
    const std::optional<sdk::WantedSum> wanted = core_->WantedSums();
    if (OverLocked() || !wanted.has_value() || !ring_.has_value() ||
        ring_->attempt != wanted->attempt) {
      return false;
    }
    // A member without minibatches adds zeros. Sums of an earlier run may still be read.
    if (gradients_->run() != wanted->run && pending_ > 0) return false;
    gradients_->Begin(wanted->run);
    const bool same = sums_ != nullptr && sums_run_ == wanted->run &&
                      sums_->attempt == wanted->attempt && sums_->after.step == wanted->step;
    if (!same) FailLocked(NewSums(*wanted));
    if (OverLocked()) return false;
    step = wanted->step;
    run = wanted->run;
    sums = sums_;
    for (const uint32_t bucket : begun_.Begin(wanted, *gradients_)) {
      const absl::StatusOr<GivenBucket> given = Give(bucket);
      if (absl::IsOutOfRange(given.status())) {
        core_->OnTrainerFailed(wanted->run, std::string(Message(given.status())), /*fatal=*/false);
        Signal();
        // Those before it are not given either.
        pending_ -= static_cast<uint32_t>(ready.size());
        return true;
      }
      FailLocked(given.status());
      if (!given.ok()) return false;
      ++pending_;
      ready.push_back(*given);
    }
  }
  for (const GivenBucket& given : ready) {
    const auto done = [this, sums, bucket = given.bucket, run = run](const absl::Status& status,
                                                                     uint32_t digest) {
      OnBucket(sums, bucket, run, status, digest);
    };
    if (given.on_device != nullptr) {
      reducer_->SumOnDevice(
          step, given.bucket,
          {given.on_device, sums->device_encoded(given.bucket), sums->device_floats(given.bucket)},
          done);
    } else {
      reducer_->Sum(step, given.bucket, given.dtype, given.in, sums->encoded(given.bucket), done);
    }
  }
  return !ready.empty();
}

void GroupImpl::OnBucket(const std::shared_ptr<SummedStep>& sums, uint32_t bucket,
                         sdk::StepRunNumber run, const absl::Status& status, uint32_t digest) {
  std::optional<uint32_t> all;
  {
    Change change(this);
    --pending_;
    if (absl::IsOutOfRange(status)) {
      // A device finds out here what Add and Decode find out of buckets in this process.
      gradients_->MarkBad(run, bucket);
      core_->OnTrainerFailed(run,
                             fmt::format("the gradient of bucket \"{}\": {}",
                                         gradients_->tensor(bucket).name, Message(status)),
                             /*fatal=*/false);
    } else if (!status.ok() && !absl::IsAborted(status)) {
      // Nothing is wrong with the data: this process cannot add any more, but the next one may.
      FailLocked(status);
    }
    if (status.ok()) ++moved_;
    if (!status.ok() || sums != sums_) return;
    all = begun_.OnBucket(sums->attempt, sums->after.step, bucket, digest);
    run = sums_run_;
    if (sums->bytes() > kSmallBytes) digest_ = std::exchange(all, std::nullopt);
  }
  if (all.has_value()) Finish(sums, run, *all);
}

bool GroupImpl::FinishSums() {
  std::shared_ptr<SummedStep> sums;
  sdk::StepRunNumber run = 0;
  uint32_t digest = 0;
  {
    MutexLock lock(&mutex_);
    if (OverLocked() || !digest_.has_value()) return false;
    digest = *std::exchange(digest_, std::nullopt);
    sums = sums_;
    run = sums_run_;
  }
  Finish(sums, run, digest);
  return true;
}

void GroupImpl::Finish(const std::shared_ptr<SummedStep>& sums, sdk::StepRunNumber run,
                       uint32_t digest) {
  const absl::Status decoded = sums->Decode(layout());
  MUSTER_FAILPOINT("group.after-sum");
  Change change(this);
  if (decoded.ok()) {
    core_->OnSum(sums->attempt, sums->after.step, digest);
  } else {
    core_->OnTrainerFailed(run, std::string(Message(decoded)), /*fatal=*/false);
  }
}

}  // namespace muster::internal
