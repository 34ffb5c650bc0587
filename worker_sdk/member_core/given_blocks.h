#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/interval_set.h"
#include "worker_sdk/member_core/member_core.h"
#include "worker_sdk/member_core/own_gradients.h"

namespace muster::sdk {

/// Knows which blocks of buckets of a step are being summed with the other members. Each block
/// begins once per attempt, as soon as its buckets have the minibatches of the share. Pure. Not
/// thread-safe.
class GivenBlocks {
 public:
  /// Call it whenever MemberCore::WantedSums has changed. `blocks` is the number of blocks. With
  /// another attempt or step, the former ones are forgotten. If `wanted` is absent, no block
  /// begins.
  void Follow(const std::optional<WantedSum>& wanted, size_t blocks);
  /// Returns true if the block is complete and begins now.
  bool Begin(uint32_t block, OwnGradients* sums);
  /// The sum of a block is ready, with its digest. If it was the last one of the step, returns the
  /// digest of the step. Members with the same sums have the same digest.
  std::optional<uint32_t> OnBlock(AttemptNumber attempt, StepNumber step, uint32_t block,
                                  uint32_t digest);

 private:
  std::optional<WantedSum> wanted_;
  IntervalSet share_;
  AttemptNumber attempt_;
  StepNumber step_;
  std::vector<bool> begun_;
  std::vector<std::optional<uint32_t>> digests_;
  size_t missing_ = 0;  // digests that are missing
};

}  // namespace muster::sdk
