#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace muster {

/// How long things took, counted in buckets: each octave of milliseconds has four, so that a
/// quantile is at most a quarter too large. A value. Not thread-safe.
class DelayHistogram {
 public:
  using Milliseconds = std::chrono::milliseconds;
  /// The last bucket takes everything from twelve days on.
  static constexpr size_t kBuckets = 116;

  /// Negative ones (clocks differ) count as zero.
  void Add(Milliseconds delay);
  /// Adds what `now` has more than `before`, bucket by bucket: totals of somebody else that only
  /// grow. What shrank is left out.
  void AddGrowth(const DelayHistogram& before, const DelayHistogram& now);

  uint64_t count() const { return count_; }
  Milliseconds sum() const { return Milliseconds(sum_ms_); }
  /// Without the empty ones behind the last that is not.
  std::span<const uint64_t> FilledBuckets() const;
  /// The end of the bucket in which the share `q` (0 to 1) of all is reached; nothing without any.
  std::optional<Milliseconds> Quantile(double q) const;
  /// How many lie below `bound`; exact where a bucket ends there, as at powers of two from 4 ms on.
  uint64_t CountBelow(Milliseconds bound) const;

  /// From what somebody else tells: `bucket` < kBuckets.
  void AddToBucket(size_t bucket, uint64_t count);
  void AddToSum(uint64_t milliseconds) { sum_ms_ += milliseconds; }

  friend bool operator==(const DelayHistogram&, const DelayHistogram&) = default;

 private:
  std::array<uint64_t, kBuckets> buckets_{};
  uint64_t count_ = 0;
  uint64_t sum_ms_ = 0;
};

}  // namespace muster
