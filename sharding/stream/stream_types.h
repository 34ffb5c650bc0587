#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/words/offset_range.h"
#include "base/words/parts.h"
#include "base/words/types.h"

/// The words of streams: datasets that are a Kafka topic. A stream is cut into shards while its
/// records arrive; docs/kafka.md says what is promised.
namespace muster {

/// A shard of a stream: ranges of offsets, one after the other. It is cut once, from the records
/// that were readable at that moment. So it cannot be computed again, and is journaled before it is
/// leased. Not every offset is a record, so offsets() is the largest possible number of records.
struct StreamShard {
  /// At least one, and at most most::kRangesOfShard. All but those of lost records are at most as
  /// long as a shard together.
  std::vector<OffsetRange> ranges;
  /// Minibatches in the earlier shards of the dataset.
  uint64_t first_step = 0;
  /// When the first of its offsets was first seen. Only shown to people.
  WallTime seen{0};
  uint64_t offsets() const { return OffsetsOf(ranges); }
  friend bool operator==(const StreamShard&, const StreamShard&) = default;
};

/// How many minibatches a shard of a stream is. They are equal parts of its offsets (BeginOfPart),
/// and not of its records, so that every run cuts in the same way. One may have no record.
constexpr uint32_t StreamMinibatches(uint64_t offsets, uint32_t minibatch_size) {
  return static_cast<uint32_t>(DivideUp(offsets, minibatch_size));
}

/// The progress of a dataset in one topic partition.
struct StreamPosition {
  TopicPartition partition;
  uint64_t begin = 0;
  /// Everything in [begin, cut) lies in a range.
  uint64_t cut = 0;
  /// The dataset's end; none: never, or not known yet.
  std::optional<uint64_t> end;
  friend bool operator==(const StreamPosition&, const StreamPosition&) = default;
};

/// The result of one look at a topic partition.
struct PartitionLook {
  TopicPartition partition;
  /// The oldest offset that still exists.
  uint64_t log_begin = 0;
  /// The last stable offset: below it every transaction is over.
  uint64_t stable_end = 0;
  /// The dataset's begin in a new topic partition; none: at `log_begin`.
  std::optional<uint64_t> begin;
  /// Its end; none: never, or not known yet.
  std::optional<uint64_t> end;
  /// The high watermark. Offsets from `stable_end` to it wait for open transactions. If it is below
  /// `stable_end`, `stable_end` counts.
  uint64_t log_end = 0;
};

}  // namespace muster
