#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "proto/messages/group_control.h"
#include "worker_sdk/groups/gradient_sums.h"

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

/// The sums of a step over all members, encoded as they were added, and as numbers. Not
/// thread-safe.
class SummedStep {
 public:
  /// Room for the sums of all buckets; none: the step is an evaluation.
  SummedStep(const sdk::GradientSums* buckets, bool evaluate);

  size_t size() const { return buckets_.size(); }
  /// Of all sums, encoded.
  size_t bytes() const;
  std::span<std::byte> encoded(uint32_t bucket) { return buckets_[bucket].encoded(); }
  std::span<const float> floats(uint32_t bucket) const { return buckets_[bucket].floats; }
  /// Makes numbers of what is encoded. kOutOfRange: a sum has NaN or infinity.
  absl::Status Decode(const sdk::GradientSums& buckets);

  StateLabel after;  // the state that the step leads to
  AttemptNumber attempt;
  StepFacts facts;
  /// Of the step; absent: another member has summed.
  std::optional<StepWork> work;

 private:
  struct Bucket {
    std::unique_ptr<std::byte[]> memory;
    size_t bytes = 0;
    std::vector<float> floats;
    std::span<std::byte> encoded() { return {memory.get(), bytes}; }
  };
  std::vector<Bucket> buckets_;
};

}  // namespace muster::internal
