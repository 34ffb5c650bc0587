#include "verify/workload/group_state.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace muster::verify {
namespace {

constexpr size_t kWideBegin = GroupState::kBucketsRows * kBucketsDim;
constexpr size_t kTotalsBegin = kWideBegin + GroupState::kWideRows * kWideDim;
constexpr float kRate = 0.25F;

/// Where an element of the curve is drawn by a record: other places for all pairs.
float TargetOf(uint64_t id, size_t element) {
  const uint64_t mixed = (id + 1) * kSpread ^ (element + 1) * 0xC2B2AE3D27D4EB4FULL;
  return static_cast<float>(mixed >> 40) / static_cast<float>(1 << 24);
}

/// Calls `part(begin, bytes)` for the memory of each part, in a fixed order.
template <typename Part>
void ForEachPart(std::span<float> ids, std::span<float> mixed, std::span<float> curve,
                 std::span<int64_t> steps, Part part) {
  part(ids.data(), ids.size_bytes());
  part(mixed.data(), mixed.size_bytes());
  part(curve.data(), curve.size_bytes());
  part(steps.data(), steps.size_bytes());
}

void AddTo(std::span<float> values, std::span<const float> added) {
  for (size_t i = 0; i < values.size(); ++i) values[i] += added[i];
}

}  // namespace

GroupState::GroupState(uint64_t records)
    : ids_(records), mixed_(kMixedSize), curve_(kCurveSize, 0.5F) {
  std::fill_n(mixed_.begin(), kWideBegin, kBucketsInitial);
}

std::span<const float> GroupState::buckets() const {
  return std::span(mixed_).first(kWideBegin);
}

std::span<const float> GroupState::wide() const {
  return std::span(mixed_).subspan(kWideBegin, kTotalsBegin - kWideBegin);
}

std::span<const float> GroupState::totals() const {
  return std::span(mixed_).subspan(kTotalsBegin);
}

std::string GroupState::ToBytes() const {
  GroupState copy = *this;
  std::string bytes;
  ForEachPart(copy.ids_, copy.mixed_, copy.curve_, copy.steps_, [&](const void* part, size_t size) {
    bytes.append(static_cast<const char*>(part), size);
  });
  return bytes;
}

uint64_t GroupState::Digest() const {
  // FNV-1a by words of 4 bytes: all parts are made of them.
  uint64_t hash = 0xcbf29ce484222325ULL;
  const auto add = [&hash](const void* part, size_t size) {
    for (size_t at = 0; at < size; at += sizeof(uint32_t)) {
      uint32_t word = 0;
      std::memcpy(&word, static_cast<const char*>(part) + at, sizeof(word));
      hash = (hash ^ word) * 0x100000001b3ULL;
    }
  };
  add(ids_.data(), ids_.size() * sizeof(float));
  add(mixed_.data(), mixed_.size() * sizeof(float));
  add(curve_.data(), curve_.size() * sizeof(float));
  add(steps_.data(), sizeof(steps_));
  return hash;
}

std::optional<GroupState> GroupState::FromBytes(std::string_view bytes, uint64_t records) {
  GroupState state(records);
  size_t size = 0;
  const auto count = [&size](const void*, size_t part) { size += part; };
  ForEachPart(state.ids_, state.mixed_, state.curve_, state.steps_, count);
  if (bytes.size() != size) return std::nullopt;
  ForEachPart(state.ids_, state.mixed_, state.curve_, state.steps_,
              [&](void* part, size_t part_size) {
                std::memcpy(part, bytes.data(), part_size);
                bytes.remove_prefix(part_size);
              });
  return state;
}

std::vector<uint64_t> BucketsKeys() {
  std::vector<uint64_t> keys(GroupState::kBucketsRows);
  for (size_t row = 0; row < keys.size(); ++row) keys[row] = row;
  return keys;
}

std::vector<uint64_t> WideKeys() {
  std::vector<uint64_t> keys(GroupState::kWideRows);
  for (size_t row = 0; row < keys.size(); ++row) keys[row] = row * kSpread;
  return keys;
}

GroupGradients::GroupGradients(uint64_t records)
    : ids(records), mixed(GroupState::kMixedSize), curve(GroupState::kCurveSize) {}

void GroupGradients::Clear() {
  std::ranges::fill(ids, 0.0F);
  std::ranges::fill(mixed, 0.0F);
  std::ranges::fill(curve, 0.0F);
}

void GroupGradients::Add(uint64_t id, uint32_t epoch, std::span<const float> member_curve) {
  const Contribution added = ContributionOf(id, epoch);
  const size_t wide_row = id % GroupState::kWideRows;
  ids[id] += added.ids[0];
  const std::span<float> all(mixed);
  AddTo(all.subspan(added.bucket_key * kBucketsDim, kBucketsDim), added.buckets);
  AddTo(all.subspan(kWideBegin + wide_row * kWideDim, kWideDim), added.wide);
  AddTo(all.subspan(kTotalsBegin), added.totals);
  for (size_t i = 0; i < curve.size(); ++i) {
    curve[i] += std::tanh(member_curve[i] - TargetOf(id, i));
  }
}

void ApplySums(const GroupSums& sums, uint64_t records, GroupState* state) {
  AddTo(state->ids(), sums.ids);
  AddTo(state->mixed(), sums.mixed);
  const std::span<float> curve = state->curve();
  for (size_t i = 0; i < curve.size(); ++i) {
    curve[i] -= kRate * sums.curve[i] / static_cast<float>(records);
  }
  ++state->steps()[0];
}

}  // namespace muster::verify
