#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "verify/workload/contributions.h"

namespace muster::verify {

/// The model of the job of `muster verify --group`, which every member has as registered state. It
/// has two kinds of parts:
///
/// * the tables of contributions.h, to which every record adds its whole numbers. What they hold at
///   the end is known beforehand, whatever the order.
/// * `curve`, which each step moves towards the numbers of its records by floating-point
///   arithmetic. Its bits depend on every step, on its records, and on the order of the steps. They
///   are compared with those of a run without faults.
///
/// A value; not thread-safe.
class GroupState {
 public:
  static constexpr size_t kBucketsRows = 61;
  static constexpr size_t kWideRows = 257;
  /// Elements of `mixed`: rows of `buckets`, rows of `wide`, then `totals`.
  static constexpr size_t kMixedSize =
      kBucketsRows * kBucketsDim + kWideRows * kWideDim + kTotalsSize;
  static constexpr size_t kCurveSize = 64;

  /// Before the first step; `records` is the number of records of an epoch.
  explicit GroupState(uint64_t records);

  /// float32 [records]; the row of a record, as in contributions.h.
  std::span<float> ids() { return ids_; }
  std::span<const float> ids() const { return ids_; }
  /// float32 [kMixedSize].
  std::span<float> mixed() { return mixed_; }
  std::span<const float> buckets() const;  // [kBucketsRows, kBucketsDim] row-major
  std::span<const float> wide() const;     // [kWideRows, kWideDim] row-major
  std::span<const float> totals() const;   // [kTotalsSize]
  std::span<float> curve() { return curve_; }
  std::span<const float> curve() const { return curve_; }
  /// Steps that were applied.
  std::span<int64_t> steps() { return steps_; }
  uint64_t step_count() const { return static_cast<uint64_t>(steps_[0]); }

  /// A number that differs, but for chance, when any bit of the state does.
  uint64_t Digest() const;
  /// All of the state as bytes of this machine, and back. None: not the bytes of a state of that
  /// many records.
  std::string ToBytes() const;
  static std::optional<GroupState> FromBytes(std::string_view bytes, uint64_t records);
  friend bool operator==(const GroupState& a, const GroupState& b) {
    return a.ToBytes() == b.ToBytes();  // bits, not values
  }

 private:
  std::vector<float> ids_;
  std::vector<float> mixed_;
  std::vector<float> curve_;
  std::array<int64_t, 1> steps_{};
};

/// Keys of the rows of GroupState::buckets() and GroupState::wide(), as in contributions.h.
std::vector<uint64_t> BucketsKeys();
std::vector<uint64_t> WideKeys();

/// What the records of a minibatch, or of a step, add: the sizes of the parts of a GroupState.
struct GroupGradients {
  explicit GroupGradients(uint64_t records);
  /// Everything is 0 again.
  void Clear();
  /// Requires: id < records. `curve` is the member's, before the step.
  void Add(uint64_t id, uint32_t epoch, std::span<const float> curve);

  std::vector<float> ids;
  std::vector<float> mixed;
  std::vector<float> curve;
};

/// Sums of a step over all members, views.
struct GroupSums {
  std::span<const float> ids;
  std::span<const float> mixed;
  std::span<const float> curve;
};
/// Applies a step of `records` records. Requires: the sums have the sizes of the state's parts.
void ApplySums(const GroupSums& sums, uint64_t records, GroupState* state);

}  // namespace muster::verify
