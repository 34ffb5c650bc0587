#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "base/interval_set.h"
#include "base/status.h"
#include "proto/messages/group_control.h"
#include "worker_sdk/member_core/bucket_blocks.h"
#include "worker_sdk/member_core/computed_share.h"
#include "worker_sdk/member_core/gradient_kernels.h"

namespace muster::sdk {

/// Calls `get`, which allocates memory for something of the bucket. kResourceExhausted if there is
/// not enough memory.
absl::Status GetMemory(const GroupTensor& bucket, std::string_view what,
                       absl::FunctionRef<void()> get);

/// The gradients that this member has added up for a step, by bucket, in the memory of their blocks
/// (BucketBlocks). They belong to a run (ComputedShare). They are kept over the attempts of the
/// step. A new run begins with zeros, also after other members took over the minibatches of this
/// one. Pure.
///
/// A mutex guards everything except the values, which Write and Encoded access without it. Write of
/// different buckets, and Encoded of other blocks, may run at the same time, and beside every other
/// call except Begin. BeginAdd comes before a Write, and EndAdd after it. While a block is
/// complete, other threads may read what Encoded returned, until the next minibatch of its run or
/// the next Begin. So end the sums of an old attempt first.
class OwnGradients {
 public:
  /// Takes the summed ones of the tensors, in order. Each must have at least one element and the
  /// type kFixedPoint, kFloat32 or kBfloat16; otherwise kInvalidArgument. The values of the buckets
  /// `elsewhere` are added up on a device. For those, this object only knows which minibatches they
  /// have, and each must be a block of its own. `full_bytes`: as for BucketBlocks.
  static absl::StatusOr<OwnGradients> Create(std::span<const GroupTensor> tensors,
                                             std::span<const uint32_t> elsewhere = {},
                                             uint64_t full_bytes = BucketBlocks::kFullBytes);

  /// They stay the same.
  const std::shared_ptr<const BucketBlocks>& blocks() const { return blocks_; }
  size_t size() const { return buckets_.size(); }
  const GroupTensor& tensor(uint32_t bucket) const { return buckets_[bucket].tensor; }

  /// Sets every bucket of this run to zero. Does nothing if the run is the same.
  void Begin(StepRunNumber run);
  StepRunNumber run() const { return run_; }
  /// A minibatch begins to add its gradient of this many elements to a bucket. Returns what to do
  /// with the values; none if the run is another one. kInvalidArgument if the bucket does not
  /// exist, has another size, has the minibatch already, or is on the other side of `elsewhere`.
  absl::StatusOr<std::optional<SumMode>> BeginAdd(StepRunNumber run, MinibatchIndex minibatch,
                                                  uint32_t bucket, uint64_t elements,
                                                  bool elsewhere);
  /// Adds values, `[elements] float32`, to a bucket of this process. kOutOfRange for NaN, infinity,
  /// or a number that is too large for the type of the bucket; the text names the bucket and the
  /// element.
  absl::Status Write(uint32_t bucket, std::span<const float> values, SumMode mode);
  /// The values were added. If not `good`, the bucket never becomes complete in this run.
  void EndAdd(StepRunNumber run, MinibatchIndex minibatch, uint32_t bucket, bool good);
  /// Does all three, for a caller with one thread.
  absl::Status Add(StepRunNumber run, MinibatchIndex minibatch, uint32_t bucket,
                   std::span<const float> gradient);
  /// True while an EndAdd or EndPut is missing after its begin.
  bool writing() const { return writing_ > 0; }
  bool elsewhere(uint32_t bucket) const { return buckets_[bucket].elsewhere; }
  /// The bucket on a device that this block is; none: the block is in this process.
  std::optional<uint32_t> BucketElsewhere(uint32_t block) const;
  /// True if no value was added to the bucket in this run.
  bool zero(uint32_t bucket) const { return buckets_[bucket].zero; }
  /// A value of a bucket on a device does not fit its type.
  void MarkBad(StepRunNumber run, uint32_t bucket);
  /// The minibatch is over. It counts as zeros in buckets to which it added nothing. Buckets with
  /// Put get it by Put.
  void End(StepRunNumber run, MinibatchIndex minibatch);

  /// How a bucket gets its values.
  enum class Giving : uint8_t {
    kByMinibatch,  // by Add
    kWhole,        // by Put, for all minibatches of the run; it replaces the last Put
    kAfterLoop,    // by Put, for those that ended since the last Put; it is added to that
  };
  /// Call it before the first Begin.
  void SetGiving(uint32_t bucket, Giving giving) { buckets_[bucket].giving = giving; }
  /// A loop of the run is over, and the caller has the bucket's values of that loop, `[elements]
  /// float32`. Continue as with BeginAdd, Write and EndAdd. None also means that there is nothing
  /// to write, because no minibatch has ended since the last Put. `what` describes the bucket's
  /// contents in this run for error texts; empty: its gradient.
  absl::StatusOr<std::optional<SumMode>> BeginPut(StepRunNumber run, uint32_t bucket,
                                                  uint64_t elements, std::string_view what);
  void EndPut(StepRunNumber run, uint32_t bucket, bool good);
  absl::Status Put(StepRunNumber run, uint32_t bucket, std::span<const float> values,
                   std::string_view what = {});
  /// kInvalidArgument if minibatches have ended in this run and their sum was not Put; the text
  /// names the bucket.
  absl::Status CheckPut(StepRunNumber run) const;
  /// True if all buckets of the block have exactly these minibatches. Calls for a block whose
  /// buckets become complete one by one cost little.
  bool Complete(StepRunNumber run, uint32_t block, const IntervalSet& share);

  /// The block in the form in which it is summed with other members: int64, float32 or bfloat16
  /// elements. kOutOfRange if a sum is too large for bfloat16.
  absl::StatusOr<std::span<const std::byte>> Encoded(uint32_t block);
  /// Decodes the sum of all members to `[elements] float32`. The encoded sum begins at a multiple
  /// of the size of its elements. kOutOfRange if it has NaN or infinity; the text names the bucket.
  /// kInvalidArgument if it has another size.
  absl::Status Decode(uint32_t block, std::span<const std::byte> sum, std::span<float> out) const;

 private:
  struct Bucket {
    GroupTensor tensor;
    /// Nothing was added in this run, so the elements still have the values of an older run.
    bool zero = true;
    bool bad = false;
    Giving giving = Giving::kByMinibatch;
    bool elsewhere = false;
    std::optional<MinibatchIndex> adding;
    IntervalSet minibatches;
    std::string what;  // for errors; empty: its gradient
  };
  /// The values of its buckets.
  struct Block {
    /// Only one of them is used, by type. bfloat16 is added up in `floats`.
    std::vector<int64_t> fixed;
    std::vector<float> floats;
    std::vector<uint16_t> halves;
    size_t look_first = 0;  // of its buckets: the one that was not complete last
    /// All buckets have these minibatches, and none is bad. Absent: not known since a change.
    std::optional<IntervalSet> complete;
  };
  explicit OwnGradients(std::shared_ptr<const BucketBlocks> blocks)
      : blocks_(std::move(blocks)), values_(blocks_->size()) {}
  absl::Status Allocate();
  uint32_t BlockOf(uint32_t bucket) const { return blocks_->PlaceOf(bucket).block; }
  bool HasShare(const Bucket& bucket, const IntervalSet& share) const {
    return !bucket.bad && bucket.minibatches == share;
  }
  absl::Status Check(uint32_t bucket, size_t elements, bool elsewhere) const;
  absl::Status CheckGiving(const Bucket& bucket, bool by_minibatch) const;
  static absl::Status OutOfRange(const Bucket& bucket, size_t element, float value);
  /// `element`: of the block.
  absl::Status OutOfRangeIn(uint32_t block, size_t element, float value) const;
  void FillWithZeros(uint32_t bucket);

  std::shared_ptr<const BucketBlocks> blocks_;
  std::vector<Block> values_;  // by block
  StepRunNumber run_ = 0;
  IntervalSet ended_;  // minibatches of the run
  uint32_t writing_ = 0;
  std::vector<Bucket> buckets_;
};

}  // namespace muster::sdk
