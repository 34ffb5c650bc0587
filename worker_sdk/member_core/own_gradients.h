#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "base/interval_set.h"
#include "base/status.h"
#include "proto/messages/group_control.h"
#include "worker_sdk/member_core/computed_share.h"
#include "worker_sdk/member_core/gradient_kernels.h"

namespace muster::sdk {

/// Calls `get`, which makes room for something of the bucket. kResourceExhausted: there is not
/// enough memory.
absl::Status GetMemory(const GroupTensor& bucket, std::string_view what,
                       absl::FunctionRef<void()> get);

/// The gradients that this member has added up for a step, by bucket. They belong to a run
/// (ComputedShare): they stay over the attempts of the step, and a new run begins with zeros, also
/// when others compute the minibatches of an evicted member. Pure.
///
/// Values are written and read without the mutex that guards all else: Write and Encoded of
/// different buckets may run at once, and beside every other call but Begin. BeginAdd and EndAdd
/// are around a Write. While a bucket is complete, other threads may read what Encoded returned,
/// until the next minibatch of its run or the next Begin: so end the sums of an old attempt first.
class OwnGradients {
 public:
  /// Of the tensors, the summed ones, in order: kFixedPoint, kFloat32 or kBfloat16, each with at
  /// least one element. kInvalidArgument: another type.
  /// The values of the buckets `elsewhere` are added up on a device: these sums only know which
  /// minibatches they have.
  static absl::StatusOr<OwnGradients> Create(std::span<const GroupTensor> tensors,
                                             std::span<const uint32_t> elsewhere = {});

  size_t size() const { return buckets_.size(); }
  const GroupTensor& tensor(uint32_t bucket) const { return buckets_[bucket].tensor; }

  /// Every bucket of this run is zero. The same run again does nothing.
  void Begin(StepRunNumber run);
  StepRunNumber run() const { return run_; }
  /// A minibatch begins to add its gradient of so many elements to a bucket. Says what to do with
  /// the values; nothing: the run is another one. kInvalidArgument: the bucket does not exist, the
  /// size is another one, the bucket has the minibatch, or is on the other side of `elsewhere`.
  absl::StatusOr<std::optional<SumMode>> BeginAdd(StepRunNumber run, MinibatchIndex minibatch,
                                                  uint32_t bucket, uint64_t elements,
                                                  bool elsewhere);
  /// Adds values, `[elements] float32`, to a bucket of this process. kOutOfRange: NaN, infinity, or
  /// a number that is too large for the type of the bucket; the text names the bucket and the
  /// element.
  absl::Status Write(uint32_t bucket, std::span<const float> values, SumMode mode);
  /// The values are there; after an error, the bucket is never complete in this run.
  void EndAdd(StepRunNumber run, MinibatchIndex minibatch, uint32_t bucket, bool good);
  /// The three of them, for a caller with one thread.
  absl::Status Add(StepRunNumber run, MinibatchIndex minibatch, uint32_t bucket,
                   std::span<const float> gradient);
  /// A BeginAdd or BeginPut has had no end yet.
  bool writing() const { return writing_ > 0; }
  bool elsewhere(uint32_t bucket) const { return buckets_[bucket].elsewhere; }
  /// No value has been added to the bucket in this run.
  bool zero(uint32_t bucket) const { return buckets_[bucket].zero; }
  /// A value of a bucket elsewhere does not fit its type.
  void MarkBad(StepRunNumber run, uint32_t bucket);
  /// The minibatch is over: to buckets that do not have it, it has added zeros. Other buckets
  /// get it by Put.
  void End(StepRunNumber run, MinibatchIndex minibatch);

  /// How a bucket gets its values.
  enum class Giving : uint8_t {
    kByMinibatch,  // Add
    kWhole,        // Put: from all minibatches of the run, in place of what was put before
    kAfterLoop,    // Put: from those that ended since it was put last, added to that
  };
  /// Call it before the first Begin.
  void SetGiving(uint32_t bucket, Giving giving) { buckets_[bucket].giving = giving; }
  /// A loop of the run is over, and the caller has the bucket's values of it, `[elements] float32`:
  /// as for BeginAdd, Write and EndAdd. Nothing to write, too: no minibatch has ended since the
  /// bucket was put last. `what`: in texts of errors, what the bucket has in this run; empty: its
  /// gradient.
  absl::StatusOr<std::optional<SumMode>> BeginPut(StepRunNumber run, uint32_t bucket,
                                                  uint64_t elements, std::string_view what);
  void EndPut(StepRunNumber run, uint32_t bucket, bool good);
  absl::Status Put(StepRunNumber run, uint32_t bucket, std::span<const float> values,
                   std::string_view what = {});
  /// kInvalidArgument: minibatches have ended in this run whose sum was not Put; names the bucket.
  absl::Status CheckPut(StepRunNumber run) const;
  /// The bucket has exactly these minibatches.
  bool Complete(StepRunNumber run, uint32_t bucket, const IntervalSet& share) const;

  /// A bucket as it is added with those of others: int64, float32 or bfloat16 elements.
  /// kOutOfRange: a sum is too large for bfloat16.
  absl::StatusOr<std::span<const std::byte>> Encoded(uint32_t bucket);
  size_t encoded_bytes(uint32_t bucket) const;
  /// The sum of all members, `[elements] float32`, from the encoding, which begins at a multiple
  /// of the size of its elements. kOutOfRange: it has NaN or infinity. kInvalidArgument: another
  /// size.
  absl::Status Decode(uint32_t bucket, std::span<const std::byte> sum, std::span<float> out) const;

 private:
  struct Bucket {
    GroupTensor tensor;
    /// The one that the type uses; bfloat16 is added up in `floats`.
    std::vector<int64_t> fixed;
    std::vector<float> floats;
    std::vector<uint16_t> halves;
    /// Nothing was added in this run: its elements have the values of an older one.
    bool zero = true;
    bool bad = false;
    Giving giving = Giving::kByMinibatch;
    bool elsewhere = false;
    std::optional<MinibatchIndex> adding;
    IntervalSet minibatches;
    std::string what;  // for errors; empty: its gradient
  };
  OwnGradients() = default;
  absl::Status Check(uint32_t bucket, size_t elements, bool elsewhere) const;
  absl::Status CheckGiving(const Bucket& bucket, bool by_minibatch) const;
  static absl::Status OutOfRange(const Bucket& bucket, size_t element, float value);
  static void FillWithZeros(Bucket* bucket);

  StepRunNumber run_ = 0;
  IntervalSet ended_;  // minibatches of the run
  uint32_t writing_ = 0;
  std::vector<Bucket> buckets_;
};

}  // namespace muster::sdk
