#include "worker_sdk/member/step_totals.h"

#include "base/status.h"

namespace muster::internal {

absl::StatusOr<std::shared_ptr<StepTotals>> StepTotals::Create(const sdk::OwnGradients& buckets) {
  auto sums = std::make_shared<StepTotals>();
  sums->facts.evaluate = 0;
  sums->buckets_.resize(buckets.size());
  for (uint32_t i = 0; i < buckets.size(); ++i) {
    Bucket& bucket = sums->buckets_[i];
    bucket.bytes = buckets.encoded_bytes(i);
    MUSTER_RETURN_IF_ERROR(sdk::GetMemory(buckets.tensor(i), "sums", [&] {
      bucket.memory = std::make_unique_for_overwrite<std::byte[]>(bucket.bytes);
    }));
  }
  return sums;
}

size_t StepTotals::bytes() const {
  size_t bytes = 0;
  for (const Bucket& bucket : buckets_) bytes += bucket.bytes;
  return bytes;
}

absl::Status StepTotals::Decode(const sdk::OwnGradients& buckets) {
  for (uint32_t i = 0; i < buckets_.size(); ++i) {
    if (buckets_[i].device_floats != nullptr) continue;
    const GroupTensor& tensor = buckets.tensor(i);
    MUSTER_RETURN_IF_ERROR(
        sdk::GetMemory(tensor, "sums", [&] { buckets_[i].floats.resize(tensor.elements); }));
    MUSTER_RETURN_IF_ERROR(buckets.Decode(i, buckets_[i].encoded(), buckets_[i].floats));
  }
  return absl::OkStatus();
}

void StepTotals::DropFloats() {
  // `= {}` would keep their memory.
  for (Bucket& bucket : buckets_) bucket.floats = std::vector<float>();
}

absl::Status StepTotals::Allocate(const sdk::OwnGradients& buckets, collectives::Gpu* device) {
  for (uint32_t i = 0; i < buckets_.size(); ++i) {
    Bucket& bucket = buckets_[i];
    if (!buckets.elsewhere(i)) continue;
    bucket.memory = nullptr;
    MUSTER_ASSIGN_OR_RETURN(bucket.device_encoded, device->NewMemory(bucket.bytes));
    MUSTER_ASSIGN_OR_RETURN(bucket.device_floats,
                            device->NewMemory(buckets.tensor(i).elements * sizeof(float)));
  }
  return absl::OkStatus();
}

absl::Status StepTotals::MoveToHost(collectives::Gpu* device) {
  for (Bucket& bucket : buckets_) {
    if (bucket.device_encoded != nullptr) {
      bucket.memory = std::make_unique_for_overwrite<std::byte[]>(bucket.bytes);
      MUSTER_RETURN_IF_ERROR(device->CopyToHost(*bucket.device_encoded, bucket.encoded()));
    }
    bucket.device_encoded = nullptr;
    bucket.device_floats = nullptr;
  }
  return absl::OkStatus();
}

absl::Status StepTotals::CopyToDevice(const sdk::OwnGradients& buckets, collectives::Gpu* device) {
  for (uint32_t i = 0; i < buckets_.size(); ++i) {
    if (!buckets.elsewhere(i)) continue;
    const auto floats = std::as_bytes(std::span<const float>(buckets_[i].floats));
    MUSTER_ASSIGN_OR_RETURN(buckets_[i].device_floats, device->NewMemory(floats.size()));
    MUSTER_RETURN_IF_ERROR(device->CopyToDevice(floats, *buckets_[i].device_floats));
  }
  return absl::OkStatus();
}

}  // namespace muster::internal
