#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "worker_sdk/groups/gradient_sums.h"
#include "worker_sdk/groups/member_core.h"

namespace muster::sdk {

/// Which buckets of a step are being added with those of the other members: each one once per
/// attempt, as soon as it has the minibatches of the share. Pure. Not thread-safe.
class StepSums {
 public:
  /// The buckets to begin now. `wanted`: MemberCore::WantedSums. Another attempt or step forgets
  /// those before.
  std::vector<uint32_t> Begin(const std::optional<WantedSum>& wanted, const GradientSums& sums);
  /// Begin would begin a bucket.
  bool CanBegin(const std::optional<WantedSum>& wanted, const GradientSums& sums) const;
  /// The sum of a bucket that was begun is there, with its digest. Returns the digest of the step
  /// when it was the last one; members with the same sums have the same digest.
  std::optional<uint32_t> OnBucket(AttemptNumber attempt, StepNumber step, uint32_t bucket,
                                   uint32_t digest);

 private:
  bool IsOf(const WantedSum& wanted) const {
    return attempt_ == wanted.attempt && step_ == wanted.step;
  }

  AttemptNumber attempt_;
  StepNumber step_;
  std::vector<bool> begun_;
  std::vector<std::optional<uint32_t>> digests_;
};

}  // namespace muster::sdk
