#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "collectives/listener.h"
#include "collectives/state_client.h"
#include "collectives/state_provider.h"
#include "worker_sdk/member/group_memory.h"
#include "worker_sdk/member/holder_connections.h"
#include "worker_sdk/member/member_desk.h"
#include "worker_sdk/member/step_reader.h"
#include "worker_sdk/member/stored_stripes.h"

namespace muster::internal {

/// Copies for a member: its state for others and for checkpoints, and what others have into its
/// state. A thread of its own does one thing at a time, in this order: captures, digests,
/// transfers, reading the next shard ahead, and making room for the next capture. The StripeStorer
/// has another one, so that a slow store holds up nothing.
///
/// Thread-safety: CarryOut and what a StateProvider has belong to the loop's thread; memory() is
/// also the trainer's while nothing is copied.
class MemberCopies final : public collectives::StateProvider {
 public:
  struct Options {
    MemberDesk* desk = nullptr;
    StepReader* reader = nullptr;
    std::unique_ptr<ObjectStore> store;
    /// Where fetched sums of buckets on a device go; null: there is none.
    collectives::Gpu* device = nullptr;
  };
  explicit MemberCopies(Options options);
  ~MemberCopies() override { Stop(); }

  /// Starts the thread. `layout`: the types and sizes of the buckets. Both outlive it.
  void Start(GroupMemory memory, const sdk::OwnGradients* layout, collectives::Listener* listener);
  /// Breaks off what it does, and joins the threads. Idempotent.
  void Stop();

  /// `members`: how many the ring has; 0: there is none.
  void CarryOut(const MemberDesk::Orders& orders, uint32_t members);

  const GroupMemory& memory() const { return memory_; }
  /// Bytes that were copied or written, and pieces that were read from the store. By any thread.
  uint64_t written() const { return storer_->written() + copied_.load(std::memory_order_relaxed); }
  uint64_t moved() const { return moved_.load(std::memory_order_relaxed); }

  absl::StatusOr<collectives::LentBytes> Stripe(StateLabel label, uint32_t stripe) override;
  absl::StatusOr<collectives::LentBytes> KeptSum(LineageNumber lineage, StepNumber step,
                                                 uint32_t block) override;

 private:
  /// What the thread is to do; each once, and the newest counts.
  struct Jobs {
    std::optional<sdk::CaptureOrder> capture;
    std::optional<StateLabel> digest;
    std::optional<sdk::GroupTransfer> transfer;
    std::optional<ShardWork> ahead;
    uint64_t room = 0;  // bytes of the next capture
    bool close_sources = false;
  };
  /// A piece of the state that was copied between two steps.
  struct Capture;
  /// Requests to members that are under way.
  struct Fetches;

  void Run();
  /// The next job; false: the thread ends.
  bool Await(Jobs* job);
  void Do(Jobs job);
  bool Wanted();

  void TakeCapture(const sdk::CaptureOrder& order);
  void StoreCapture(const std::shared_ptr<const Capture>& capture);
  void TakeDigest();
  void MakeRoom(uint64_t bytes);

  void Transfer(const sdk::GroupTransfer& transfer);
  /// `unreadable`: the stored pieces that could not be read.
  absl::Status CopyState(const StateSource& source, UnreadableState* unreadable);
  void FetchStripes(const StateSource& source, Fetches* fetches);
  absl::Status ReadStripes(const StateSource& source, UnreadableState* unreadable);
  /// kNotFound: no holder has it.
  absl::StatusOr<std::shared_ptr<StepTotals>> FetchSums(const sdk::GroupTransfer& transfer);
  absl::StatusOr<std::shared_ptr<StepTotals>> FetchSumsFrom(const sdk::GroupTransfer& transfer,
                                                            const GroupMember& holder);
  /// Until all are answered; kAborted: the transfer is not wanted any more.
  absl::Status AwaitFetches(Fetches* fetches, std::optional<TimePoint> limit = {});
  absl::Status AwaitSum(Fetches* fetches, const GroupMember& holder, bool soon);
  collectives::StateClient::Done Counted(Fetches* fetches);

  const Options options_;
  GroupMemory memory_;
  const sdk::OwnGradients* layout_ = nullptr;
  collectives::Listener* listener_ = nullptr;
  std::optional<StripeStorer> storer_;
  const std::shared_ptr<SpareCopy> spare_ = std::make_shared<SpareCopy>();
  std::atomic<uint64_t> copied_ = 0, moved_ = 0;

  Mutex mutex_;
  CondVar changed_;
  Jobs jobs_ MUSTER_GUARDED_BY(mutex_);
  bool stop_transfer_ MUSTER_GUARDED_BY(mutex_) = false;
  bool stopping_ MUSTER_GUARDED_BY(mutex_) = false;
  bool has_sources_ MUSTER_GUARDED_BY(mutex_) = false;
  uint64_t room_ MUSTER_GUARDED_BY(mutex_) = 0;  // of the largest capture so far
  std::shared_ptr<const Capture> capture_ MUSTER_GUARDED_BY(mutex_);

  // Of the thread.
  HolderConnections sum_sources_;
  bool copy_failed_ = false;  // the last copy of a state
  StripeCopy preparing_;
  std::thread thread_;
};

}  // namespace muster::internal
