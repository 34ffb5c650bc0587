#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "base/mutex.h"
#include "collectives/listener.h"
#include "muster/group.h"
#include "worker_sdk/member/attempt_sums.h"
#include "worker_sdk/member/master_exchanges.h"
#include "worker_sdk/member/member_copies.h"
#include "worker_sdk/member/member_desk.h"
#include "worker_sdk/member/step_reader.h"
#include "worker_sdk/member/step_totals.h"
#include "worker_sdk/member_core/group_tensors.h"
#include "worker_sdk/member_core/own_gradients.h"
#include "worker_sdk/session/member_session.h"

namespace muster::internal {

class GroupStepImpl;

/// A process's part in the group of its job: what the trainer has registered, what the trainer's
/// thread does, and the parts that do the rest. They meet at the MemberDesk:
///
///   trainer's threads (this class) ---> desk <--- loop: MasterExchanges, AttemptSums
///                                        ^------- thread for copies: MemberCopies
///
/// The loop is the Listener's thread, which also serves the connections to other members.
///
/// Registering, status() and HasFinalState() are thread-safe; NextStep and what a step calls belong
/// to the trainer's thread, apart from Add.
class GroupImpl final {
 public:
  /// `session` outlives it, and has given its group to this one (TakeGroup). Without one, it only
  /// registers. `store` has the stored state.
  /// `backend` adds the buckets; absent: the members' own ring.
  explicit GroupImpl(MemberSession* session = nullptr, std::unique_ptr<ObjectStore> store = nullptr,
                     std::shared_ptr<collectives::Backend> backend = nullptr);
  /// Joins the threads.
  ~GroupImpl();
  GroupImpl(const GroupImpl&) = delete;
  GroupImpl& operator=(const GroupImpl&) = delete;

  /// The number of the bucket; 0 if the group has failed.
  uint32_t AddBucket(std::string_view name, uint64_t elements, const SumOptions& options);
  /// Of training with local steps: its values are Put after the loop.
  uint32_t AddWholeBucket(std::string_view name, uint64_t elements, const SumOptions& options);
  void AddState(std::string_view name, GroupDtype dtype, uint64_t elements,
                std::span<std::byte> memory);
  /// The memory of registered state that is not the trainer's stays as long as the group.
  /// False: the group has such memory already.
  bool KeepMemory(std::shared_ptr<const void> memory);
  absl::Status status() const;
  /// See Group::HasFinalState.
  bool HasFinalState() const;
  /// A copy of what is registered.
  sdk::GroupTensors tensors() const;

  /// See Group::NextStep.
  std::unique_ptr<GroupStepImpl> NextStep();

  // ---- for the step in the trainer's hands ----

  MemberSession& session() const { return *session_; }
  /// What the trainer's thread does next, never kWait: blocks, and says on stderr for what.
  sdk::TrainerTask AwaitTask();
  /// AwaitTask returns it again.
  void PutBack(sdk::TrainerTask task) { put_back_ = std::move(task); }
  /// False: the loop ends.
  bool StartMinibatch(const sdk::TrainerTask& task, MinibatchIndex minibatch);
  /// `metrics`: of all minibatches of the run.
  void EndMinibatch(const sdk::TrainerTask& task, MinibatchIndex minibatch,
                    const ShardMetrics& metrics);
  /// The loop is over.
  void EndLoop(const sdk::TrainerTask& task);
  void FailStep(const sdk::TrainerTask& task, std::string reason, bool fatal);
  /// Errors as of OwnGradients::Add.
  absl::Status Add(const sdk::TrainerTask& task, MinibatchIndex minibatch, uint32_t bucket,
                   std::span<const float> gradient);
  /// `gradient` and `stream` are the device's. Errors as of OwnGradients::Add, or the device's.
  absl::Status AddDevice(const sdk::TrainerTask& task, MinibatchIndex minibatch, uint32_t bucket,
                         const float* gradient, uint64_t elements, void* stream);
  /// Errors as of OwnGradients::Put.
  absl::Status Put(const sdk::TrainerTask& task, uint32_t bucket, std::span<const float> values,
                   std::string_view what);
  absl::Status CheckPut(const sdk::TrainerTask& task);
  /// With LocalSGD or DiLoCo.
  bool trains_locally() const;
  /// Of the state, which a step in the trainer's hands begins with.
  LineageNumber lineage() const;
  /// Whether the state has been copied from another process since the last call.
  bool TakeStateCopied();
  /// The sums of a kApply or kReplay; facts included.
  std::shared_ptr<StepTotals> SumsOf(const sdk::TrainerTask& task);
  /// The step of a kApply or kReplay is in the state.
  void Applied(const std::shared_ptr<StepTotals>& sums);
  /// `apply` has thrown: the state is half changed, and is copied anew.
  void ApplyFailed();
  void EnterApply(bool enter) { in_apply_ = enter; }
  /// A call that can never work: group and session fail with it.
  void ProgramError(std::string message);
  /// This process cannot go on, for a reason that the next one may not have.
  void Fail(absl::Status status);

 private:
  // ---- group_registration.cc ----
  absl::StatusOr<uint32_t> Register(std::string_view name, uint64_t elements,
                                    const SumOptions& options) MUSTER_REQUIRES(mutex_);
  collectives::Gpu* device() const { return backend_ == nullptr ? nullptr : backend_->device(); }

  absl::StatusOr<sdk::OwnGradients> MakeGradients() MUSTER_REQUIRES(mutex_);
  absl::StatusOr<std::vector<std::shared_ptr<collectives::GpuBucket>>> MakeDeviceBuckets(
      const sdk::OwnGradients& gradients) MUSTER_REQUIRES(mutex_);

  // ---- group_impl.cc ----
  /// Of the first NextStep.
  absl::Status Begin();
  collectives::ListenerOptions ListenerOptionsHere() const;
  /// On the loop.
  void CarryOut();

  std::unique_ptr<GroupStepImpl> BeginStep(const sdk::TrainerTask& task);
  void ReadFailed(const sdk::TrainerTask& task, const absl::Status& why);
  /// Room for the gradients of this run.
  void BeginRun(const sdk::TrainerTask& task);
  /// The values of a bucket, between what `begin` and `end` do on the desk.
  absl::Status AddValues(
      uint32_t bucket,
      absl::FunctionRef<absl::StatusOr<std::optional<sdk::SumMode>>(sdk::OwnGradients&)> begin,
      absl::FunctionRef<absl::Status(sdk::SumMode)> write,
      absl::FunctionRef<void(sdk::OwnGradients&, bool)> end);

  MemberSession* const session_;
  const std::shared_ptr<collectives::Backend> backend_;
  MemberDesk desk_;
  StepReader reader_;
  MemberCopies copies_;
  std::unique_ptr<collectives::Listener> listener_;
  // Made by the first NextStep, for the loop.
  std::unique_ptr<MasterExchanges> exchanges_;
  std::unique_ptr<AttemptSums> sums_;
  std::vector<std::shared_ptr<collectives::GpuBucket>> device_buckets_;
  sdk::OwnGradients* gradients_ = nullptr;  // on the desk; for Write

  mutable Mutex mutex_;  // of what is registered
  sdk::GroupTensors tensors_ MUSTER_GUARDED_BY(mutex_);
  std::map<uint32_t, sdk::OwnGradients::Giving> givings_ MUSTER_GUARDED_BY(mutex_);
  std::vector<uint32_t> buckets_on_device_ MUSTER_GUARDED_BY(mutex_);
  std::shared_ptr<const void> own_memory_;

  // Of the trainer's thread.
  std::optional<sdk::TrainerTask> put_back_;
  bool in_apply_ = false;
  sdk::StepRunNumber metrics_run_ = 0;
  ShardMetrics metrics_;
  TimePoint minibatch_began_{};
};

}  // namespace muster::internal
