#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace muster {

/// A histogram of durations. Each octave of milliseconds has four buckets, so a quantile is at most
/// a quarter too large. A value. Not thread-safe.
class DelayHistogram {
 public:
  using Milliseconds = std::chrono::milliseconds;
  /// The last bucket contains all durations from twelve days on.
  static constexpr size_t kBuckets = 116;

  /// A negative delay, which comes from different clocks, counts as zero.
  void Add(Milliseconds delay);
  /// Adds the growth from `before` to `now`, bucket by bucket; both are running totals of another
  /// process. Buckets that shrank are ignored.
  void AddGrowth(const DelayHistogram& before, const DelayHistogram& now);

  uint64_t count() const;
  Milliseconds sum() const { return Milliseconds(sum_ms_); }
  /// Buckets after the last one are empty.
  const std::vector<uint64_t>& buckets() const { return buckets_; }
  /// The end of the bucket in which the share `q` (0 to 1) of all durations is reached. None if it
  /// is empty.
  std::optional<Milliseconds> Quantile(double q) const;
  /// How many durations are below `bound`. It is exact if a bucket ends there, as at powers of two
  /// from 4 ms on.
  uint64_t CountBelow(Milliseconds bound) const;

  /// The fields of DatasetDelays.
  static void Fields(auto& f, auto& s) {
    f(2, "buckets", s.buckets_, {.most = kBuckets});
    f(3, "sum_ms", s.sum_ms_);
  }
  friend bool operator==(const DelayHistogram&, const DelayHistogram&) = default;

 private:
  void AddToBucket(size_t bucket, uint64_t count);

  std::vector<uint64_t> buckets_;
  uint64_t sum_ms_ = 0;
};

}  // namespace muster
