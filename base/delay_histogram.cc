#include "base/delay_histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

namespace muster {
namespace {

constexpr uint64_t kPerOctave = 4;

size_t BucketOf(uint64_t milliseconds) {
  if (milliseconds < kPerOctave) return milliseconds;
  const auto octave = static_cast<uint64_t>(std::bit_width(milliseconds) - 1);
  const uint64_t quarter = (milliseconds >> (octave - 2)) % kPerOctave;
  return std::min<size_t>(kPerOctave * (octave - 1) + quarter, DelayHistogram::kBuckets - 1);
}

/// The first value that is too large for the bucket.
uint64_t EndOf(size_t bucket) {
  const size_t next = bucket + 1;
  if (next < kPerOctave) return next;
  const size_t octave = next / kPerOctave + 1;
  return (kPerOctave + next % kPerOctave) << (octave - 2);
}

}  // namespace

void DelayHistogram::Add(Milliseconds delay) {
  const auto milliseconds = static_cast<uint64_t>(std::max<int64_t>(delay.count(), 0));
  AddToBucket(BucketOf(milliseconds), 1);
  sum_ms_ += milliseconds;
}

uint64_t DelayHistogram::count() const {
  return std::accumulate(buckets_.begin(), buckets_.end(), uint64_t{0});
}

void DelayHistogram::AddToBucket(size_t bucket, uint64_t count) {
  if (bucket >= buckets_.size()) buckets_.resize(bucket + 1);
  buckets_[bucket] += count;
}

void DelayHistogram::AddGrowth(const DelayHistogram& before, const DelayHistogram& now) {
  for (size_t bucket = 0; bucket < now.buckets_.size(); ++bucket) {
    const uint64_t then = bucket < before.buckets_.size() ? before.buckets_[bucket] : 0;
    if (now.buckets_[bucket] > then) AddToBucket(bucket, now.buckets_[bucket] - then);
  }
  if (now.sum_ms_ > before.sum_ms_) sum_ms_ += now.sum_ms_ - before.sum_ms_;
}

std::optional<DelayHistogram::Milliseconds> DelayHistogram::Quantile(double q) const {
  const uint64_t all = count();
  if (all == 0) return std::nullopt;
  const auto wanted = static_cast<uint64_t>(std::ceil(q * static_cast<double>(all)));
  uint64_t seen = 0;
  for (size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
    seen += buckets_[bucket];
    if (seen >= std::max<uint64_t>(wanted, 1)) return Milliseconds(EndOf(bucket));
  }
  return Milliseconds(EndOf(kBuckets - 1));
}

uint64_t DelayHistogram::CountBelow(Milliseconds bound) const {
  uint64_t below = 0;
  for (size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
    if (EndOf(bucket) > static_cast<uint64_t>(std::max<int64_t>(bound.count(), 0))) break;
    below += buckets_[bucket];
  }
  return below;
}

}  // namespace muster
