#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "collectives/listener.h"
#include "collectives/reducer.h"
#include "collectives/state_client.h"
#include "collectives/state_provider.h"
#include "muster/group.h"
#include "worker_sdk/groups/call_times.h"
#include "worker_sdk/groups/gradient_sums.h"
#include "worker_sdk/groups/group_tensors.h"
#include "worker_sdk/groups/member_core.h"
#include "worker_sdk/groups/step_sums.h"
#include "worker_sdk/groups/thread_watch.h"
#include "worker_sdk/session/group_memory.h"
#include "worker_sdk/session/session_impl.h"
#include "worker_sdk/session/step_reader.h"
#include "worker_sdk/session/stored_stripes.h"
#include "worker_sdk/session/sum_sources.h"
#include "worker_sdk/session/summed_step.h"

namespace muster::internal {

class GroupStepImpl;

/// A process's part in the group of its job: what the trainer has registered, and the shell of the
/// MemberCore.
///
/// Threads: the trainer's; two that make exchanges, so that a call with news does not wait for the
/// one that the master keeps; one that gives buckets to the Reducer, unless they are small: then
/// the trainer's does; one that copies the state, its own for others and others' into it, and reads
/// the next shard; the StripeStorer's; the Listener's. One mutex guards the core and the sums, and
/// `giving_` the Reducer. Nothing is sent, read or copied under the first, apart from gradients
/// that are added.
///
/// Registering, status() and HasFinalState() are thread-safe; NextStep and what a step calls belong
/// to the trainer's thread, apart from Add.
class GroupImpl final : private collectives::StateProvider {
 public:
  /// `session` outlives it, and has given its group to this one (TakeGroup). Without one, it only
  /// registers. `store` has the stored state.
  /// `backend` adds the buckets; absent: the members' own ring.
  explicit GroupImpl(SessionImpl* session = nullptr, std::unique_ptr<ObjectStore> store = nullptr,
                     std::shared_ptr<collectives::Backend> backend = nullptr);
  /// Joins the threads.
  ~GroupImpl() override;
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

  SessionImpl& session() const { return *session_; }
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
  /// Errors as of GradientSums::Add.
  absl::Status Add(const sdk::TrainerTask& task, MinibatchIndex minibatch, uint32_t bucket,
                   std::span<const float> gradient);
  /// `gradient` and `stream` are the device's. Errors as of GradientSums::Add, or the device's.
  absl::Status AddDevice(const sdk::TrainerTask& task, MinibatchIndex minibatch, uint32_t bucket,
                         const float* gradient, uint64_t elements, void* stream);
  /// Errors as of GradientSums::Put.
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
  std::shared_ptr<SummedStep> SumsOf(const sdk::TrainerTask& task);
  /// The step of a kApply or kReplay is in the state.
  void Applied(const std::shared_ptr<SummedStep>& sums);
  /// `apply` has thrown: the state is half changed, and is copied anew.
  void ApplyFailed();
  void EnterApply(bool enter) { in_apply_ = enter; }
  /// A call that can never work: group and session fail with it.
  void ProgramError(std::string message);
  /// This process cannot go on, for a reason that the next one may not have.
  void Fail(absl::Status status);

 private:
  // ---- group_impl.cc: the trainer's thread ----
  absl::Status Begin();
  /// Room on the device for the buckets that are there.
  absl::Status AllocateBuckets() MUSTER_REQUIRES(mutex_);
  collectives::Gpu* device() const { return backend_ == nullptr ? nullptr : backend_->device(); }
  collectives::ListenerOptions ListenerOptionsHere() const;
  std::unique_ptr<GroupStepImpl> BeginStep(const sdk::TrainerTask& task);
  void ReadFailed(const sdk::TrainerTask& task, const absl::Status& why);
  /// Room for the gradients of this run.
  void BeginRun(const sdk::TrainerTask& task);
  void SayFarewell();
  void FailLocked(absl::Status status) MUSTER_REQUIRES(mutex_);
  bool OverLocked() const MUSTER_REQUIRES(mutex_) { return stopping_ || !failure_.ok(); }
  /// For the types and sizes of the buckets, which never change.
  const sdk::GradientSums& layout() const MUSTER_NO_THREAD_SAFETY_ANALYSIS { return *gradients_; }
  /// Something has happened.
  void Signal() MUSTER_REQUIRES(mutex_);
  /// Holds the mutex while something happens, and wakes threads after that, because they would wait
  /// for the mutex at once. `gives`: the trainer's thread may have completed buckets.
  class MUSTER_SCOPED_CAPABILITY Change {
   public:
    explicit Change(GroupImpl* group, bool gives = false) MUSTER_ACQUIRE(group->mutex_)
        : group_(group), gives_(gives) {
      group_->mutex_.Lock();
    }
    ~Change() MUSTER_RELEASE() { group_->UnlockAndWake(gives_); }
    Change(const Change&) = delete;
    Change& operator=(const Change&) = delete;

   private:
    GroupImpl* const group_;
    const bool gives_;
  };
  static constexpr bool kGives = true;
  void UnlockAndWake(bool gives) MUSTER_RELEASE(mutex_);

  // ---- group_threads.cc: exchanges and sums ----
  void StartThreads();
  struct Wakes;
  Wakes Due() MUSTER_REQUIRES(mutex_);
  void Wake(const Wakes& wakes);
  void RunExchanges(CondVar* due);
  bool CallDue(TimePoint now) const MUSTER_REQUIRES(mutex_);
  /// Whether the process gets on, for the master. Asks the threads again.
  void Watch(TimePoint now, GroupExchangeRequest* request) MUSTER_REQUIRES(mutex_);
  void OnExchanged(absl::StatusOr<GroupExchangeReply> reply);
  void RunSums();
  bool SumsDue() const MUSTER_REQUIRES(mutex_);
  bool BucketsDue() const MUSTER_REQUIRES(mutex_);
  /// Each does one thing, if it is due; false: nothing is.
  bool FollowRing(), GiveBuckets(), FinishSums();
  void Finish(const std::shared_ptr<SummedStep>& sums, sdk::StepRunNumber run, uint32_t digest);
  absl::Status NewSums(const sdk::WantedSum& wanted) MUSTER_REQUIRES(mutex_);
  /// A bucket to add with the other members: its values, or on the device.
  struct GivenBucket;
  absl::StatusOr<GivenBucket> Give(uint32_t bucket) MUSTER_REQUIRES(mutex_);
  void OnBucket(const std::shared_ptr<SummedStep>& sums, uint32_t bucket, sdk::StepRunNumber run,
                const absl::Status& status, uint32_t digest);
  /// Waits until something has happened since `seen`, and `due` says so; false: the group ends.
  bool AwaitNews(CondVar* due, uint64_t* seen, std::optional<TimePoint> until = {});

  // ---- group_copies.cc: captures, states and sums of others ----
  /// A piece of the state that was copied between two steps.
  struct Capture;
  /// Requests to members that are under way.
  struct Fetches;
  void RunCopies();
  bool CopiesDue() const MUSTER_REQUIRES(mutex_);
  bool ReadAhead();
  /// Of the stripe that a member would copy now; 0: it is none.
  uint64_t StripeBytes() const MUSTER_REQUIRES(mutex_);
  bool PrepareCapture();
  bool TakeCapture();
  bool TakeDigest();
  void StoreCapture(const std::shared_ptr<const Capture>& capture);
  bool TakeTransfer(std::optional<TimePoint>* again);
  /// `unreadable`: the stored pieces that could not be read.
  absl::Status CopyState(const StateSource& source, UnreadableState* unreadable);
  void FetchStripes(const StateSource& source, Fetches* fetches);
  absl::Status ReadStripes(const StateSource& source, UnreadableState* unreadable);
  /// kNotFound: no holder has it.
  absl::StatusOr<std::shared_ptr<SummedStep>> FetchSums(const sdk::GroupTransfer& transfer);
  absl::StatusOr<std::shared_ptr<SummedStep>> FetchSumsFrom(const sdk::GroupTransfer& transfer,
                                                            const GroupMember& holder);
  /// Until all are answered; kAborted: the transfer is not wanted any more.
  absl::Status AwaitFetches(Fetches* fetches, std::optional<TimePoint> limit = {});
  absl::Status AwaitSum(Fetches* fetches, const GroupMember& holder, bool soon);
  collectives::StateClient::Done Counted(Fetches* fetches);
  void PruneKept() MUSTER_REQUIRES(mutex_);
  absl::StatusOr<collectives::LentBytes> Stripe(StateLabel label, uint32_t stripe) override;
  absl::StatusOr<collectives::LentBytes> KeptSum(LineageNumber lineage, StepNumber step,
                                                 uint32_t bucket) override;

  SessionImpl* const session_;
  const std::unique_ptr<ObjectStore> store_;
  const std::shared_ptr<collectives::Backend> backend_;
  std::shared_ptr<const void> own_memory_;
  const SystemClock clock_;

  Mutex giving_;  // taken before mutex_, to use reducer_
  mutable Mutex mutex_;
  CondVar changed_, sums_due_, copies_due_;  // the first for the trainer's thread
  std::array<CondVar, 2> call_due_;          // of each thread for exchanges
  uint64_t events_ MUSTER_GUARDED_BY(mutex_) = 0;
  absl::Status failure_ MUSTER_GUARDED_BY(mutex_);
  sdk::GroupTensors tensors_ MUSTER_GUARDED_BY(mutex_);
  std::map<uint32_t, sdk::GradientSums::Giving> givings_ MUSTER_GUARDED_BY(mutex_);
  std::vector<uint32_t> buckets_on_device_ MUSTER_GUARDED_BY(mutex_);
  bool stopping_ MUSTER_GUARDED_BY(mutex_) = false;

  // Made by the first NextStep; from then on, these two stay where they are.
  std::optional<sdk::MemberCore> core_ MUSTER_GUARDED_BY(mutex_);
  std::optional<sdk::GradientSums> gradients_ MUSTER_GUARDED_BY(mutex_);
  /// By bucket; null: it is in the memory of this process.
  std::vector<std::shared_ptr<collectives::GpuBucket>> device_buckets_ MUSTER_GUARDED_BY(mutex_);
  GroupMemory memory_;
  sdk::ThreadWatch listener_watch_ MUSTER_GUARDED_BY(mutex_);
  sdk::ThreadWatch sums_watch_ MUSTER_GUARDED_BY(mutex_);
  /// Buckets that were added, and pieces of a state that were read from the store.
  uint64_t moved_ MUSTER_GUARDED_BY(mutex_) = 0;
  std::unique_ptr<collectives::Listener> listener_;

  // Exchanges.
  uint32_t calls_ MUSTER_GUARDED_BY(mutex_) = 0;          // that are not answered
  std::vector<CondVar*> idle_ MUSTER_GUARDED_BY(mutex_);  // of threads that wait for a call
  TimePoint idle_until_ MUSTER_GUARDED_BY(mutex_){};      // when the last of them looks again
  sdk::CallTimes call_times_ MUSTER_GUARDED_BY(mutex_);
  std::string trouble_ MUSTER_GUARDED_BY(mutex_);  // of the master, for waiting lines
  /// The trainer's thread is inside of AwaitTask.
  bool trainer_waits_ MUSTER_GUARDED_BY(mutex_) = false;

  // Sums.
  std::optional<sdk::GroupRing> ring_ MUSTER_GUARDED_BY(mutex_);  // of reducer_
  std::unique_ptr<collectives::Reducer> reducer_ MUSTER_GUARDED_BY(giving_);
  bool gives_here_ MUSTER_GUARDED_BY(mutex_) = false;  // the trainer's thread does
  /// Of the attempt and step that the members sum, or that is to be applied.
  std::shared_ptr<SummedStep> sums_ MUSTER_GUARDED_BY(mutex_);
  sdk::StepRunNumber sums_run_ MUSTER_GUARDED_BY(mutex_) = 0;
  sdk::StepSums begun_ MUSTER_GUARDED_BY(mutex_);
  /// Every bucket of sums_ is there.
  std::optional<uint32_t> digest_ MUSTER_GUARDED_BY(mutex_);
  /// Sums that the reducer still reads and writes.
  uint32_t pending_ MUSTER_GUARDED_BY(mutex_) = 0;
  std::shared_ptr<SummedStep> fetched_ MUSTER_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<SummedStep>> kept_ MUSTER_GUARDED_BY(mutex_);

  // Copies.
  bool fetching_ MUSTER_GUARDED_BY(mutex_) = false;
  SumSources sum_sources_;    // of the thread for copies
  bool copy_failed_ = false;  // the last copy of a state; of the thread for copies
  std::optional<StripeStorer> storer_;
  std::atomic<uint64_t> copied_ = 0;  // bytes, for captures
  std::shared_ptr<const Capture> capture_ MUSTER_GUARDED_BY(mutex_);
  uint64_t prepared_bytes_ MUSTER_GUARDED_BY(mutex_) = 0;
  StripeCopy preparing_;  // of the thread for copies
  const std::shared_ptr<SpareCopy> spare_ = std::make_shared<SpareCopy>();
  bool state_copied_ MUSTER_GUARDED_BY(mutex_) = false;
  StepReader reader_;

  // Of the trainer's thread.
  std::optional<sdk::TrainerTask> put_back_;
  bool in_apply_ = false;
  sdk::StepRunNumber metrics_run_ = 0;
  ShardMetrics metrics_;
  TimePoint minibatch_began_{};

  std::vector<std::thread> threads_;
};

}  // namespace muster::internal
