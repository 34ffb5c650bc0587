#include "worker_sdk/member_core/given_buckets.h"

#include "base/random.h"

namespace muster::sdk {

void GivenBuckets::Follow(const std::optional<WantedSum>& wanted, size_t buckets) {
  wanted_ = wanted;
  if (!wanted.has_value()) return;
  share_ = MinibatchesOf(wanted->share);
  if (attempt_ == wanted->attempt && step_ == wanted->step) return;
  attempt_ = wanted->attempt;
  step_ = wanted->step;
  begun_.assign(buckets, false);
  digests_.assign(buckets, std::nullopt);
  missing_ = buckets;
}

bool GivenBuckets::Begin(uint32_t bucket, const OwnGradients& sums) {
  if (!wanted_.has_value() || begun_[bucket] || !sums.Complete(wanted_->run, bucket, share_)) {
    return false;
  }
  begun_[bucket] = true;
  return true;
}

std::optional<uint32_t> GivenBuckets::OnBucket(AttemptNumber attempt, StepNumber step,
                                               uint32_t bucket, uint32_t digest) {
  bool current = attempt == attempt_ && step == step_ && bucket < begun_.size() && begun_[bucket];
  if (!current || digests_[bucket].has_value()) return std::nullopt;
  digests_[bucket] = digest;
  if (--missing_ > 0) return std::nullopt;
  uint64_t all = 0;
  for (const std::optional<uint32_t>& each : digests_) all = HashWords(all, *each);
  return static_cast<uint32_t>(all);
}

}  // namespace muster::sdk
