#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "collectives/backends/gpu.h"
#include "proto/messages/group_control.h"
#include "worker_sdk/member_core/own_gradients.h"

namespace muster::internal {

/// What `apply` may know of a step besides its sums. Learners get it with them.
struct StepFacts {
  uint64_t records = 0;  // of all members
  uint64_t epoch = 0;
  uint64_t evaluate = 0;  // 1: there is nothing to apply
  /// As bytes between processes of one machine type (every one is little-endian).
  std::span<const std::byte> bytes() const { return std::as_bytes(std::span(this, 1)); }
  std::span<std::byte> bytes() { return std::as_writable_bytes(std::span(this, 1)); }
};

/// The sums of a step over all members, encoded as they were added, and as numbers. They are in
/// blocks (sdk::BucketBlocks), in which each bucket has its place. Not thread-safe.
class StepTotals {
 public:
  /// Of an evaluation, which has none.
  StepTotals() { facts.evaluate = 1; }
  /// Room in this process for the sums of all buckets. kResourceExhausted: there is not enough.
  static absl::StatusOr<std::shared_ptr<StepTotals>> Create(const sdk::OwnGradients& buckets);

  /// How many blocks; none of an evaluation.
  size_t size() const { return blocks_.size(); }
  size_t buckets() const { return layout_ == nullptr ? 0 : layout_->buckets(); }
  /// Of all sums, encoded.
  size_t bytes() const;
  /// Of a block in this process.
  std::span<std::byte> encoded(uint32_t block) { return blocks_[block].encoded(); }
  /// The sum of a bucket; empty without the numbers, and if it is on a device.
  std::span<const float> floats(uint32_t bucket) const;
  /// Makes numbers of what is encoded here. kOutOfRange: a sum has NaN or infinity.
  /// kResourceExhausted as above.
  absl::Status Decode(const sdk::OwnGradients& buckets);
  /// The step is applied: others need what is encoded only.
  void DropFloats();

  // ---- buckets on a device: their sums are there, or here ----

  /// Room on the device for the sums of its buckets. Errors are those of the device.
  absl::Status Allocate(const sdk::OwnGradients& buckets, collectives::Gpu* device);
  /// Where the sum of a block is on the device; null: it is not.
  const std::shared_ptr<collectives::GpuMemory>& device_encoded(uint32_t block) const {
    return blocks_[block].device_encoded;
  }
  const std::shared_ptr<collectives::GpuMemory>& device_floats(uint32_t block) const {
    return blocks_[block].device_floats;
  }
  /// The numbers of a bucket on the device, which is a block of its own; null: it is not there.
  const collectives::GpuMemory* FloatsOnDevice(uint32_t bucket) const {
    return device_floats(layout_->PlaceOf(bucket).block).get();
  }
  /// The encoded sums come to the process, and the memory of the device is free for others.
  absl::Status MoveToHost(collectives::Gpu* device);
  /// What is decoded here of the device's buckets goes there.
  absl::Status CopyToDevice(const sdk::OwnGradients& buckets, collectives::Gpu* device);

  StateLabel after;  // the state that the step leads to
  AttemptNumber attempt;
  StepFacts facts;

 private:
  struct Block {
    std::unique_ptr<std::byte[]> memory;
    size_t bytes = 0;
    std::vector<float> floats;
    std::shared_ptr<collectives::GpuMemory> device_encoded, device_floats;
    std::span<std::byte> encoded() { return {memory.get(), bytes}; }
  };
  std::shared_ptr<const sdk::BucketBlocks> layout_;
  std::vector<Block> blocks_;
};

}  // namespace muster::internal
