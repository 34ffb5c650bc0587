#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/interval_set.h"
#include "worker_sdk/member_core/member_core.h"
#include "worker_sdk/member_core/own_gradients.h"

namespace muster::sdk {

/// Which buckets of a step are being added with those of the other members: each one once per
/// attempt, as soon as it has the minibatches of the share. Pure. Not thread-safe.
class GivenBuckets {
 public:
  /// `wanted`: MemberCore::WantedSums, whenever that has changed; `buckets`: how many there are.
  /// Another attempt or step forgets those before. Absent: no bucket begins.
  void Follow(const std::optional<WantedSum>& wanted, size_t buckets);
  /// True: the bucket is complete, and begins now.
  bool Begin(uint32_t bucket, const OwnGradients& sums);
  /// The sum of a bucket that was begun is there, with its digest. Returns the digest of the step
  /// when it was the last one; members with the same sums have the same digest.
  std::optional<uint32_t> OnBucket(AttemptNumber attempt, StepNumber step, uint32_t bucket,
                                   uint32_t digest);

 private:
  std::optional<WantedSum> wanted_;
  IntervalSet share_;
  AttemptNumber attempt_;
  StepNumber step_;
  std::vector<bool> begun_;
  std::vector<std::optional<uint32_t>> digests_;
  size_t missing_ = 0;  // digests
};

}  // namespace muster::sdk
