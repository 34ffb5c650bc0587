// What the trainer registers with its group.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "worker_sdk/member/group_impl.h"

namespace muster::internal {
namespace {

GroupDtype DtypeOf(SumType type) {
  switch (type) {
    case SumType::kFixedPoint:
      return GroupDtype::kFixedPoint;
    case SumType::kFloat32:
      return GroupDtype::kFloat32;
    case SumType::kBfloat16:
      return GroupDtype::kBfloat16;
  }
  // No enumerator; GroupTensors refuses it.
  return GroupDtype::kBytes;
}

}  // namespace

absl::StatusOr<uint32_t> GroupImpl::Register(std::string_view name, uint64_t elements,
                                             const SumOptions& options) {
  MUSTER_ASSIGN_OR_RETURN(
      const uint32_t bucket,
      tensors_.AddBucket(name, elements, DtypeOf(options.type), options.fraction_bits));
  if (options.after_loop) {
    givings_[bucket] = sdk::OwnGradients::Giving::kAfterLoop;
    if (options.on_device) {
      return absl::InvalidArgumentError(
          fmt::format("the bucket \"{}\" has SumOptions::after_loop and on_device: add up its "
                      "minibatches by GroupStep::AddDevice",
                      name));
    }
  }
  if (options.on_device) {
    buckets_on_device_.push_back(bucket);
    if (device() == nullptr) {
      return absl::InvalidArgumentError(fmt::format(
          "the bucket \"{}\" is on the device, where only NCCL adds: give Session::Group "
          "the backend CollectiveOptions::Backend::kNccl",
          name));
    }
  }
  return bucket;
}

uint32_t GroupImpl::AddBucket(std::string_view name, uint64_t elements, const SumOptions& options) {
  MutexLock lock(&mutex_);
  const absl::StatusOr<uint32_t> bucket = Register(name, elements, options);
  Fail(bucket.status());
  return bucket.ok() ? *bucket : 0;
}

uint32_t GroupImpl::AddWholeBucket(std::string_view name, uint64_t elements,
                                   const SumOptions& options) {
  MutexLock lock(&mutex_);
  const absl::StatusOr<uint32_t> bucket = Register(name, elements, options);
  Fail(bucket.status());
  if (options.on_device) {
    Fail(absl::InvalidArgumentError(
        "SumOptions::on_device is not for training with local steps, whose weights are in the "
        "memory of the process"));
  }
  if (!bucket.ok()) return 0;
  givings_[*bucket] = sdk::OwnGradients::Giving::kWhole;
  return *bucket;
}

void GroupImpl::AddState(std::string_view name, GroupDtype dtype, uint64_t elements,
                         std::span<std::byte> memory) {
  MutexLock lock(&mutex_);
  Fail(tensors_.AddState(name, dtype, elements, memory));
}

bool GroupImpl::KeepMemory(std::shared_ptr<const void> memory) {
  if (own_memory_ != nullptr) return false;
  own_memory_ = std::move(memory);
  return true;
}

sdk::GroupTensors GroupImpl::tensors() const {
  MutexLock lock(&mutex_);
  return tensors_;
}

bool GroupImpl::trains_locally() const {
  MutexLock lock(&mutex_);
  return std::ranges::any_of(
      givings_, [](const auto& one) { return one.second == sdk::OwnGradients::Giving::kWhole; });
}

absl::StatusOr<sdk::OwnGradients> GroupImpl::MakeGradients() {
  tensors_.Close();
  // Where a bucket is may differ between members, and their blocks must not. So with a backend that
  // has a device, each bucket is a block of its own.
  const uint64_t full_bytes = device() == nullptr ? sdk::BucketBlocks::kFullBytes : 0;
  MUSTER_ASSIGN_OR_RETURN(
      sdk::OwnGradients gradients,
      sdk::OwnGradients::Create(tensors_.tensors(), buckets_on_device_, full_bytes));
  if (gradients.size() == 0) {
    return absl::InvalidArgumentError(
        "the group has no bucket: call Group::AddBucket before the first NextStep");
  }
  // The first step needs room for its sums, too: better no beginning than an end in the middle.
  MUSTER_RETURN_IF_ERROR(StepTotals::Create(gradients).status());
  for (const auto& [bucket, giving] : givings_) gradients.SetGiving(bucket, giving);
  return gradients;
}

absl::StatusOr<std::vector<std::shared_ptr<collectives::GpuBucket>>> GroupImpl::MakeDeviceBuckets(
    const sdk::OwnGradients& gradients) {
  std::vector<std::shared_ptr<collectives::GpuBucket>> buckets(gradients.size());
  for (const uint32_t bucket : buckets_on_device_) {
    const GroupTensor& tensor = gradients.tensor(bucket);
    const collectives::GpuBucketOptions options{
        .type = *collectives::SumTypeOf(gradients.tensor(bucket).dtype),
        .elements = tensor.elements,
        .fraction_bits = tensor.fraction_bits};
    MUSTER_ASSIGN_OR_RETURN(buckets[bucket], device()->NewBucket(options));
  }
  return buckets;
}

}  // namespace muster::internal
