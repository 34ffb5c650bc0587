#include "worker_sdk/member_core/own_gradients.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <utility>

#include "base/check.h"
#include "base/status.h"

namespace muster::sdk {
namespace {

template <typename T>
std::span<const std::byte> BytesOf(const std::vector<T>& values) {
  return std::as_bytes(std::span<const T>(values));
}

template <typename T>
std::span<const T> ElementsOf(std::span<const std::byte> bytes) {
  MUSTER_CHECK(reinterpret_cast<uintptr_t>(bytes.data()) % alignof(T) == 0);
  return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
}

}  // namespace

absl::Status GetMemory(const GroupTensor& bucket, std::string_view what,
                       absl::FunctionRef<void()> get) {
  try {
    get();
    return absl::OkStatus();
  } catch (const std::exception&) {  // bad_alloc or length_error
    return absl::ResourceExhaustedError(
        fmt::format("the bucket \"{}\" of {} elements: there is not enough memory for its {}; "
                    "give the process more, or the bucket fewer elements or a smaller SumType",
                    bucket.name, bucket.elements, what));
  }
}

absl::StatusOr<OwnGradients> OwnGradients::Create(std::span<const GroupTensor> tensors,
                                                  std::span<const uint32_t> elsewhere,
                                                  uint64_t full_bytes) {
  OwnGradients sums(std::make_shared<const BucketBlocks>(tensors, full_bytes));
  for (const GroupTensor& tensor : tensors) {
    if (!tensor.summed) continue;
    const bool fixed = tensor.dtype == GroupDtype::kFixedPoint;
    const bool half = tensor.dtype == GroupDtype::kBfloat16;
    if ((!fixed && !half && tensor.dtype != GroupDtype::kFloat32) || tensor.elements == 0) {
      return absl::InvalidArgumentError(
          fmt::format("the bucket \"{}\" has no elements, or a type that cannot be summed: use "
                      "fixed point, float32 or bfloat16",
                      tensor.name));
    }
    sums.buckets_.push_back({.tensor = tensor});
  }
  for (const uint32_t bucket : elsewhere) {
    MUSTER_CHECK((*sums.blocks_)[sums.BlockOf(bucket)].buckets.size() == 1);
    sums.buckets_[bucket].elsewhere = true;
  }
  MUSTER_RETURN_IF_ERROR(sums.Allocate());
  return sums;
}

absl::Status OwnGradients::Allocate() {
  for (uint32_t i = 0; i < blocks_->size(); ++i) {
    if (BucketElsewhere(i).has_value()) continue;
    const BucketBlock& block = (*blocks_)[i];
    Block& values = values_[i];
    MUSTER_RETURN_IF_ERROR(GetMemory(buckets_[block.buckets.front()].tensor, "gradients", [&] {
      const bool fixed = block.dtype == GroupDtype::kFixedPoint;
      if (fixed) values.fixed.resize(block.elements);
      if (!fixed) values.floats.resize(block.elements);
      if (block.dtype == GroupDtype::kBfloat16) values.halves.resize(block.elements);
    }));
  }
  return absl::OkStatus();
}

std::optional<uint32_t> OwnGradients::BucketElsewhere(uint32_t block) const {
  const uint32_t bucket = (*blocks_)[block].buckets.front();
  return elsewhere(bucket) ? std::optional(bucket) : std::nullopt;
}

void OwnGradients::Begin(StepRunNumber run) {
  if (run == run_) return;
  run_ = run;
  ended_ = IntervalSet();
  for (Bucket& bucket : buckets_) {
    bucket.zero = true;
    bucket.bad = false;
    bucket.adding.reset();
    bucket.minibatches = IntervalSet();
  }
  for (Block& block : values_) block.complete.reset();
}

absl::Status OwnGradients::Check(uint32_t number, size_t elements, bool elsewhere) const {
  if (number >= buckets_.size()) {
    return absl::InvalidArgumentError(
        fmt::format("there is no bucket {}; the group has {}", number, buckets_.size()));
  }
  const GroupTensor& tensor = buckets_[number].tensor;
  if (elsewhere != buckets_[number].elsewhere) {
    const std::string_view what =
        elsewhere ? "is in the memory of the process: use GroupStep::Add, or give the bucket "
                    "SumOptions::on_device"
                  : "is on the device: use GroupStep::AddDevice";
    return absl::InvalidArgumentError(fmt::format("the bucket \"{}\" {}", tensor.name, what));
  }
  if (elements == tensor.elements) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("the gradient of bucket \"{}\" has {} elements, the bucket has {}", tensor.name,
                  elements, tensor.elements));
}

absl::Status OwnGradients::CheckGiving(const Bucket& bucket, bool by_minibatch) const {
  if ((bucket.giving == Giving::kByMinibatch) == by_minibatch) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format(
      "the bucket \"{}\" {}", bucket.tensor.name,
      by_minibatch ? "has SumOptions::after_loop: give its sum to GroupStep::Put"
                   : "gets gradients by GroupStep::Add: give it SumOptions::after_loop"));
}

absl::StatusOr<std::optional<SumMode>> OwnGradients::BeginAdd(StepRunNumber run,
                                                              MinibatchIndex minibatch,
                                                              uint32_t number, uint64_t elements,
                                                              bool elsewhere) {
  if (run != run_) return std::nullopt;
  MUSTER_RETURN_IF_ERROR(Check(number, elements, elsewhere));
  Bucket& bucket = buckets_[number];
  MUSTER_RETURN_IF_ERROR(CheckGiving(bucket, /*by_minibatch=*/true));
  if (bucket.adding == minibatch || bucket.minibatches.Contains(minibatch.value())) {
    return absl::InvalidArgumentError(
        fmt::format("the gradient of bucket \"{}\" was added twice for minibatch {}; add one sum",
                    bucket.tensor.name, minibatch.value()));
  }
  bucket.adding = minibatch;
  ++writing_;
  return std::exchange(bucket.zero, false) ? SumMode::kStore : SumMode::kAdd;
}

absl::Status OwnGradients::Write(uint32_t number, std::span<const float> values, SumMode mode) {
  const Bucket& bucket = buckets_[number];
  const BucketBlocks::Place& place = blocks_->PlaceOf(number);
  Block& block = values_[place.block];
  const size_t wrong =
      bucket.tensor.dtype == GroupDtype::kFixedPoint
          ? AddFixedPoint(values, bucket.tensor.fraction_bits, mode,
                          std::span(block.fixed).subspan(place.first, values.size()))
          : AddFloat(values, mode, std::span(block.floats).subspan(place.first, values.size()));
  return wrong == kNoElement ? absl::OkStatus() : OutOfRange(bucket, wrong, values[wrong]);
}

void OwnGradients::EndAdd(StepRunNumber run, MinibatchIndex minibatch, uint32_t number, bool good) {
  --writing_;
  if (run != run_) return;
  Bucket& bucket = buckets_[number];
  bucket.adding.reset();
  bucket.minibatches.Add(minibatch.value());
  bucket.bad = bucket.bad || !good;
  values_[BlockOf(number)].complete.reset();
}

absl::Status OwnGradients::Add(StepRunNumber run, MinibatchIndex minibatch, uint32_t bucket,
                               std::span<const float> gradient) {
  MUSTER_ASSIGN_OR_RETURN(const std::optional<SumMode> mode,
                          BeginAdd(run, minibatch, bucket, gradient.size(), /*elsewhere=*/false));
  if (!mode.has_value()) return absl::OkStatus();
  const absl::Status written = Write(bucket, gradient, *mode);
  EndAdd(run, minibatch, bucket, written.ok());
  return written;
}

void OwnGradients::MarkBad(StepRunNumber run, uint32_t bucket) {
  if (run != run_) return;
  buckets_[bucket].bad = true;
  values_[BlockOf(bucket)].complete.reset();
}

absl::StatusOr<std::optional<SumMode>> OwnGradients::BeginPut(StepRunNumber run, uint32_t number,
                                                              uint64_t elements,
                                                              std::string_view what) {
  if (run != run_) return std::nullopt;
  MUSTER_RETURN_IF_ERROR(Check(number, elements, /*elsewhere=*/false));
  Bucket& bucket = buckets_[number];
  MUSTER_RETURN_IF_ERROR(CheckGiving(bucket, /*by_minibatch=*/false));
  bucket.what = what;
  if (bucket.minibatches == ended_) return std::nullopt;
  ++writing_;
  const bool first = std::exchange(bucket.zero, false);
  return first || bucket.giving == Giving::kWhole ? SumMode::kStore : SumMode::kAdd;
}

void OwnGradients::EndPut(StepRunNumber run, uint32_t number, bool good) {
  --writing_;
  if (run != run_) return;
  buckets_[number].minibatches = ended_;
  buckets_[number].bad = buckets_[number].bad || !good;
  values_[BlockOf(number)].complete.reset();
}

absl::Status OwnGradients::Put(StepRunNumber run, uint32_t bucket, std::span<const float> values,
                               std::string_view what) {
  MUSTER_ASSIGN_OR_RETURN(const std::optional<SumMode> mode,
                          BeginPut(run, bucket, values.size(), what));
  if (!mode.has_value()) return absl::OkStatus();
  const absl::Status written = Write(bucket, values, *mode);
  EndPut(run, bucket, written.ok());
  return written;
}

absl::Status OwnGradients::CheckPut(StepRunNumber run) const {
  if (run != run_) return absl::OkStatus();
  for (const Bucket& bucket : buckets_) {
    if (bucket.giving != Giving::kAfterLoop || bucket.minibatches == ended_) continue;
    return absl::InvalidArgumentError(
        fmt::format("the bucket \"{}\" has SumOptions::after_loop, and GroupStep::Put did not give "
                    "its sum between the loop and Commit",
                    bucket.tensor.name));
  }
  return absl::OkStatus();
}

absl::Status OwnGradients::OutOfRange(const Bucket& bucket, size_t element, float value) {
  const std::string gradient = fmt::format("the gradient of bucket \"{}\"", bucket.tensor.name);
  return absl::OutOfRangeError(
      fmt::format("{}, element {}, is {}: it is no number, or too large for the type of the sum",
                  bucket.what.empty() ? gradient : bucket.what, element, value));
}

void OwnGradients::End(StepRunNumber run, MinibatchIndex minibatch) {
  if (run != run_) return;
  ended_.Add(minibatch.value());
  for (uint32_t i = 0; i < buckets_.size(); ++i) {
    Bucket& bucket = buckets_[i];
    if (bucket.giving != Giving::kByMinibatch) continue;
    if (bucket.minibatches.Contains(minibatch.value())) continue;
    bucket.minibatches.Add(minibatch.value());
    values_[BlockOf(i)].complete.reset();
  }
}

bool OwnGradients::Complete(StepRunNumber run, uint32_t number, const IntervalSet& share) {
  if (run != run_ || number >= values_.size()) return false;
  Block& block = values_[number];
  if (block.complete.has_value()) return *block.complete == share;
  // Most calls come when one more bucket has the share. The bucket at which the last call stopped
  // is looked at first, so all calls together look at each bucket about twice.
  const std::vector<uint32_t>& buckets = (*blocks_)[number].buckets;
  size_t& first = block.look_first;
  for (size_t looked = 0; looked < buckets.size(); ++looked) {
    if (!HasShare(buckets_[buckets[first]], share)) return false;
    first = first + 1 < buckets.size() ? first + 1 : 0;
  }
  block.complete = share;
  return true;
}

void OwnGradients::FillWithZeros(uint32_t number) {
  const BucketBlocks::Place& place = blocks_->PlaceOf(number);
  const uint64_t elements = buckets_[number].tensor.elements;
  Block& block = values_[place.block];
  if (!block.fixed.empty()) {
    std::ranges::fill(std::span(block.fixed).subspan(place.first, elements), 0);
  } else {
    std::ranges::fill(std::span(block.floats).subspan(place.first, elements), 0.0f);
  }
  buckets_[number].zero = false;
}

absl::StatusOr<std::span<const std::byte>> OwnGradients::Encoded(uint32_t number) {
  const BucketBlock& layout = (*blocks_)[number];
  MUSTER_CHECK(!BucketElsewhere(number).has_value());
  for (const uint32_t bucket : layout.buckets) {
    if (buckets_[bucket].zero) FillWithZeros(bucket);
  }
  Block& block = values_[number];
  switch (layout.dtype) {
    case GroupDtype::kFixedPoint:
      return BytesOf(block.fixed);
    case GroupDtype::kFloat32:
      return BytesOf(block.floats);
    default:
      break;
  }
  size_t wrong = ToBfloat16(block.floats, block.halves);
  if (wrong != kNoElement) return OutOfRangeIn(number, wrong, block.floats[wrong]);
  return BytesOf(block.halves);
}

absl::Status OwnGradients::OutOfRangeIn(uint32_t block, size_t element, float value) const {
  const uint32_t bucket = blocks_->BucketAt(block, element);
  return OutOfRange(buckets_[bucket], element - blocks_->PlaceOf(bucket).first, value);
}

absl::Status OwnGradients::Decode(uint32_t number, std::span<const std::byte> sum,
                                  std::span<float> out) const {
  const BucketBlock& block = (*blocks_)[number];
  if (sum.size() != block.bytes() || out.size() != block.elements) {
    return absl::InvalidArgumentError(
        fmt::format("the sum of bucket \"{}\", and of those with it, has {} bytes instead of {}",
                    buckets_[block.buckets.front()].tensor.name, sum.size(), block.bytes()));
  }
  switch (block.dtype) {
    case GroupDtype::kFixedPoint:
      FixedPointToFloat(ElementsOf<int64_t>(sum), block.fraction_bits, out);
      break;
    case GroupDtype::kFloat32:
      std::memcpy(out.data(), sum.data(), sum.size());
      break;
    default:
      Bfloat16ToFloat(ElementsOf<uint16_t>(sum), out);
  }
  size_t wrong = NotFinite(out);
  return wrong == kNoElement ? absl::OkStatus() : OutOfRangeIn(number, wrong, out[wrong]);
}

}  // namespace muster::sdk
