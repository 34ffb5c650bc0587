// What a group needs of its session.
#include <fmt/format.h>

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

absl::StatusOr<SessionImpl::StepRecords> SessionImpl::ReadStep(const ShardWork& work) {
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

void SessionImpl::WaitsForGroup(bool waits) {
  MutexLock lock(&mutex_);
  waits ? times_.wait_shard.Enter(clock_.Now()) : times_.wait_shard.Leave(clock_.Now());
}

void SessionImpl::EndGroup() {
  MutexLock lock(&mutex_);
  if (!told_to_stop_) slot_.End();
  told_to_stop_ = true;
}

}  // namespace muster::internal
