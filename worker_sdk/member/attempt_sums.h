#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "collectives/listener.h"
#include "collectives/reducer.h"
#include "worker_sdk/member/member_desk.h"
#include "worker_sdk/member_core/given_blocks.h"

namespace muster::internal {

/// Adds this member's buckets with those of the others: follows the attempts of the master with a
/// Reducer each, gives it the blocks of buckets that are complete, and tells the core of the sum of
/// a step. Belongs to the loop's thread.
class AttemptSums {
 public:
  struct Options {
    MemberDesk* desk = nullptr;
    collectives::Listener* listener = nullptr;
    /// Adds the buckets; null: the ring of the members.
    std::shared_ptr<collectives::Backend> backend;
    /// By bucket; null: it is in the memory of this process.
    std::vector<std::shared_ptr<collectives::GpuBucket>> device_buckets;
    /// Those of `desk`: without its mutex for what never changes, and for buckets that are read.
    sdk::OwnGradients* gradients = nullptr;
  };
  explicit AttemptSums(Options options) : options_(std::move(options)) {}
  /// By another thread than the loop's, when that is idle.
  ~AttemptSums();
  AttemptSums(const AttemptSums&) = delete;
  AttemptSums& operator=(const AttemptSums&) = delete;

  void CarryOut(const MemberDesk::Orders& orders);
  /// How many blocks have been added.
  uint64_t moved() const { return moved_; }
  /// How many members the ring has; 0: there is none.
  uint32_t members() const { return ring_.has_value() ? ring_->members.size() : 0; }

 private:
  collectives::Gpu* device() const {
    return options_.backend == nullptr ? nullptr : options_.backend->device();
  }
  /// The ring is another one: ends the sums of the old one, then begins with the new one.
  void FollowRing();
  void Start(const sdk::GroupRing& ring);
  /// Gives these blocks, as far as they are complete.
  void Give(std::span<const uint32_t> blocks);
  absl::Status NewSums(const sdk::WantedSum& wanted, uint64_t epoch);
  absl::Status GiveOne(uint32_t block);
  void OnBlock(const std::shared_ptr<StepTotals>& sums, sdk::StepRunNumber run, uint32_t block,
               const absl::Status& status, uint32_t digest);
  void Finish(uint32_t digest);

  const Options options_;
  std::optional<sdk::GroupRing> ring_;  // of reducer_, or of the next one
  std::unique_ptr<collectives::Reducer> reducer_;
  bool ending_ = false;  // the reducer
  const std::shared_ptr<std::atomic<bool>> alive_ = std::make_shared<std::atomic<bool>>(true);
  sdk::GivenBlocks begun_;
  std::optional<sdk::WantedSum> wanted_;
  std::shared_ptr<StepTotals> sums_;
  sdk::StepRunNumber run_ = 0;  // of sums_
  uint64_t moved_ = 0;
};

}  // namespace muster::internal
