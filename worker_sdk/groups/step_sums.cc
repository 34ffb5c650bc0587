#include "worker_sdk/groups/step_sums.h"

#include <algorithm>

#include "base/random.h"

namespace muster::sdk {

std::vector<uint32_t> StepSums::Begin(const std::optional<WantedSum>& wanted,
                                      const GradientSums& sums) {
  std::vector<uint32_t> begin;
  if (!wanted.has_value()) return begin;
  if (!IsOf(*wanted)) {
    attempt_ = wanted->attempt;
    step_ = wanted->step;
    begun_.assign(sums.size(), false);
    digests_.assign(sums.size(), std::nullopt);
  }
  for (uint32_t bucket = 0; bucket < sums.size(); ++bucket) {
    if (begun_[bucket] || !sums.Complete(wanted->run, bucket, wanted->share)) continue;
    begun_[bucket] = true;
    begin.push_back(bucket);
  }
  return begin;
}

bool StepSums::CanBegin(const std::optional<WantedSum>& wanted, const GradientSums& sums) const {
  if (!wanted.has_value()) return false;
  for (uint32_t bucket = 0; bucket < sums.size(); ++bucket) {
    bool begun = IsOf(*wanted) && begun_[bucket];
    if (!begun && sums.Complete(wanted->run, bucket, wanted->share)) return true;
  }
  return false;
}

std::optional<uint32_t> StepSums::OnBucket(AttemptNumber attempt, StepNumber step, uint32_t bucket,
                                           uint32_t digest) {
  bool current = attempt == attempt_ && step == step_ && bucket < begun_.size() && begun_[bucket];
  if (!current || digests_[bucket].has_value()) return std::nullopt;
  digests_[bucket] = digest;
  if (!std::ranges::all_of(digests_, [](const auto& each) { return each.has_value(); })) {
    return std::nullopt;
  }
  uint64_t all = 0;
  for (const std::optional<uint32_t>& each : digests_) all = HashWords(all, *each);
  return static_cast<uint32_t>(all);
}

}  // namespace muster::sdk
