#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "base/words/types.h"

namespace muster {

/// Offsets [begin, end) of one partition of a topic. Not every offset is a record.
struct OffsetRange {
  TopicPartition partition;
  uint64_t begin = 0;
  uint64_t end = 0;
  uint64_t offsets() const { return end - begin; }
  static void Fields(auto& f, auto& s) {
    f(1, "partition", s.partition), f(2, "begin", s.begin), f(3, "end", s.end);
  }
  friend bool operator==(const OffsetRange&, const OffsetRange&) = default;
};

/// The number of offsets in all of them.
inline uint64_t OffsetsOf(std::span<const OffsetRange> ranges) {
  uint64_t offsets = 0;
  for (const OffsetRange& range : ranges) offsets += range.offsets();
  return offsets;
}

/// The offsets at the positions [begin, end) of all `ranges`, one range after the other. Requires
/// begin <= end <= OffsetsOf(ranges).
inline std::vector<OffsetRange> PartOf(std::span<const OffsetRange> ranges, uint64_t begin,
                                       uint64_t end) {
  std::vector<OffsetRange> part;
  uint64_t first = 0;  // position of the range's first offset
  for (const OffsetRange& range : ranges) {
    const uint64_t from = std::max(begin, first), to = std::min(end, first + range.offsets());
    if (from < to) {
      part.push_back({range.partition, range.begin + (from - first), range.begin + (to - first)});
    }
    first += range.offsets();
    if (first >= end) break;
  }
  return part;
}

}  // namespace muster
