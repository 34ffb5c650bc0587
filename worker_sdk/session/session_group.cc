// SessionImpl as a MemberSession: what a group needs of it.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "store/object_store.h"
#include "worker_sdk/readers/data_root.h"
#include "worker_sdk/session/session_impl.h"

namespace muster::internal {

absl::StatusOr<std::unique_ptr<ObjectStore>> SessionImpl::OpenGroupStore() const {
  if (!hello_.group) {
    return absl::FailedPreconditionError(
        "this job has no group: give it spec.group, or train with Session::NextShard");
  }
  return OpenStore(sdk::PathHere(options_.data_root, hello_.group_directory));
}

absl::StatusOr<StepRecords> SessionImpl::ReadStep(const ShardWork& work) {
  MUSTER_ASSIGN_OR_RETURN(sdk::ShardReader * reader, readers_.Of(work));
  MUSTER_ASSIGN_OR_RETURN(
      sdk::ShardRecords records,
      reader->Read(work, WaitingFor({}, reader->NameOf(work), /*leaving=*/true)));
  return StepRecords{reader, std::make_shared<const sdk::ShardRecords>(std::move(records))};
}

bool SessionImpl::StartStepMinibatch(LeaseToken token) {
  {
    MutexLock lock(&mutex_);
    if (!failure_.ok()) return false;
    ++times_.minibatches_begun;
  }
  slot_.Minibatch(token);
  return true;
}

void SessionImpl::EndStepMinibatch(size_t records, bool evaluate) {
  MutexLock lock(&mutex_);
  ++times_.minibatches_finished;
  (evaluate ? times_.records_evaluated : times_.records_trained) += records;
}

void SessionImpl::BeginStepRun(RunNumber run) {
  MutexLock lock(&mutex_);
  core_.BeginStepRun(run);
  changed_.SignalAll();
}

void SessionImpl::PushOfStep(const sdk::PushIdentity& push,
                             std::shared_ptr<const sdk::RowBatch> batch) {
  Effects effects;
  {
    MutexLock lock(&mutex_);
    if (!failure_.ok()) return;
    core_.CommitStepMinibatch(push, std::move(batch), clock_.Now());
    effects = TakeEffects();
  }
  CarryOut(std::move(effects));
  WaitForAnswers(
      [&]() MUSTER_NO_THREAD_SAFETY_ANALYSIS {
        return !failure_.ok() || core_.ended() || !core_.step_pushes().Is(push.run) ||
               (core_.outstanding_pushes() <= hello_.unacknowledged_minibatches_max &&
                sdk::MayHold(core_.outstanding_pushes(), core_.outstanding_push_floats()));
      },
      "the servers to acknowledge pushes", &times_.wait_push);
}

std::optional<RestoreEpoch> SessionImpl::AwaitStepPushes(RunNumber run) {
  WaitForAnswers(
      [&]() MUSTER_NO_THREAD_SAFETY_ANALYSIS {
        return !failure_.ok() || core_.ended() || !core_.step_pushes().Is(run) ||
               core_.step_pushes().all_answered();
      },
      "the servers to acknowledge pushes", &times_.wait_push);
  MutexLock lock(&mutex_);
  const sdk::StepPushes& pushes = core_.step_pushes();
  if (!failure_.ok() || !pushes.Is(run) || !pushes.all_answered()) return std::nullopt;
  return pushes.pushed_under();
}

absl::Status SessionImpl::MayHaveTables() const {
  if (!hello_.group || hello_.group_has_servers) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "this job has no parameter servers for tables: set spec.replicaSpecs.ps.replicas");
}

void SessionImpl::WaitsForGroup(bool waits) {
  MutexLock lock(&mutex_);
  waits ? times_.wait_shard.Enter(clock_.Now()) : times_.wait_shard.Leave(clock_.Now());
}

void SessionImpl::EndGroup() {
  MutexLock lock(&mutex_);
  if (!told_to_stop_) slot_.End();
  told_to_stop_ = true;
}

absl::Status SessionImpl::TakeGroup() {
  MutexLock lock(&mutex_);
  if (std::exchange(has_group_, true)) {
    return absl::FailedPreconditionError(
        "this process has a muster::Group already, and may have only one at a time: use it, or "
        "destroy it before Session::Group is called again");
  }
  return absl::OkStatus();
}

void SessionImpl::ReturnGroup(uint64_t calls) {
  MutexLock lock(&mutex_);
  has_group_ = false;
  // The master takes no call that is older than the newest of this process.
  group_calls_ = std::max(group_calls_, calls);
}

uint64_t SessionImpl::group_calls() {
  MutexLock lock(&mutex_);
  return group_calls_;
}

MemberSession& MemberSessionOf(SessionImpl& session) {
  return session;
}

}  // namespace muster::internal
