#include "worker_sdk/session/summed_step.h"

#include "base/status.h"

namespace muster::internal {

SummedStep::SummedStep(const sdk::GradientSums* buckets, bool evaluate) {
  facts.evaluate = evaluate ? 1 : 0;
  if (evaluate) return;
  buckets_.resize(buckets->size());
  for (uint32_t i = 0; i < buckets_.size(); ++i) {
    buckets_[i].bytes = buckets->encoded_bytes(i);
    buckets_[i].memory = std::make_unique_for_overwrite<std::byte[]>(buckets_[i].bytes);
  }
}

size_t SummedStep::bytes() const {
  size_t bytes = 0;
  for (const Bucket& bucket : buckets_) bytes += bucket.bytes;
  return bytes;
}

absl::Status SummedStep::Decode(const sdk::GradientSums& buckets) {
  for (uint32_t i = 0; i < buckets_.size(); ++i) {
    buckets_[i].floats.resize(buckets.tensor(i).elements);
    MUSTER_RETURN_IF_ERROR(buckets.Decode(i, buckets_[i].encoded(), buckets_[i].floats));
  }
  return absl::OkStatus();
}

}  // namespace muster::internal
