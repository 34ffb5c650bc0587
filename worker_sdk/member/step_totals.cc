#include "worker_sdk/member/step_totals.h"

#include "base/status.h"

namespace muster::internal {

absl::StatusOr<std::shared_ptr<StepTotals>> StepTotals::Create(const sdk::OwnGradients& buckets) {
  auto sums = std::make_shared<StepTotals>();
  sums->facts.evaluate = 0;
  sums->layout_ = buckets.blocks();
  sums->blocks_.resize(sums->layout_->size());
  for (uint32_t i = 0; i < sums->size(); ++i) {
    const sdk::BucketBlock& layout = (*sums->layout_)[i];
    Block& block = sums->blocks_[i];
    block.bytes = layout.bytes();
    MUSTER_RETURN_IF_ERROR(sdk::GetMemory(buckets.tensor(layout.buckets.front()), "sums", [&] {
      block.memory = std::make_unique_for_overwrite<std::byte[]>(block.bytes);
    }));
  }
  return sums;
}

size_t StepTotals::bytes() const {
  size_t bytes = 0;
  for (const Block& block : blocks_) bytes += block.bytes;
  return bytes;
}

std::span<const float> StepTotals::floats(uint32_t bucket) const {
  const sdk::BucketBlocks::Place& place = layout_->PlaceOf(bucket);
  const std::span<const float> all = blocks_[place.block].floats;
  return all.empty() ? all : all.subspan(place.first, place.elements);
}

absl::Status StepTotals::Decode(const sdk::OwnGradients& buckets) {
  for (uint32_t i = 0; i < blocks_.size(); ++i) {
    Block& block = blocks_[i];
    if (block.device_floats != nullptr) continue;
    const sdk::BucketBlock& layout = (*layout_)[i];
    MUSTER_RETURN_IF_ERROR(sdk::GetMemory(buckets.tensor(layout.buckets.front()), "sums",
                                          [&] { block.floats.resize(layout.elements); }));
    MUSTER_RETURN_IF_ERROR(buckets.Decode(i, block.encoded(), block.floats));
  }
  return absl::OkStatus();
}

void StepTotals::DropFloats() {
  // `= {}` would keep their memory.
  for (Block& block : blocks_) block.floats = std::vector<float>();
}

absl::Status StepTotals::Allocate(const sdk::OwnGradients& buckets, collectives::Gpu* device) {
  for (uint32_t i = 0; i < blocks_.size(); ++i) {
    Block& block = blocks_[i];
    if (!buckets.BucketElsewhere(i).has_value()) continue;
    block.memory = nullptr;
    MUSTER_ASSIGN_OR_RETURN(block.device_encoded, device->NewMemory(block.bytes));
    MUSTER_ASSIGN_OR_RETURN(block.device_floats,
                            device->NewMemory((*layout_)[i].elements * sizeof(float)));
  }
  return absl::OkStatus();
}

absl::Status StepTotals::MoveToHost(collectives::Gpu* device) {
  for (Block& block : blocks_) {
    if (block.device_encoded != nullptr) {
      block.memory = std::make_unique_for_overwrite<std::byte[]>(block.bytes);
      MUSTER_RETURN_IF_ERROR(device->CopyToHost(*block.device_encoded, block.encoded()));
    }
    block.device_encoded = nullptr;
    block.device_floats = nullptr;
  }
  return absl::OkStatus();
}

absl::Status StepTotals::CopyToDevice(const sdk::OwnGradients& buckets, collectives::Gpu* device) {
  for (uint32_t i = 0; i < blocks_.size(); ++i) {
    if (!buckets.BucketElsewhere(i).has_value()) continue;
    const auto floats = std::as_bytes(std::span<const float>(blocks_[i].floats));
    MUSTER_ASSIGN_OR_RETURN(blocks_[i].device_floats, device->NewMemory(floats.size()));
    MUSTER_RETURN_IF_ERROR(device->CopyToDevice(floats, *blocks_[i].device_floats));
  }
  return absl::OkStatus();
}

}  // namespace muster::internal
