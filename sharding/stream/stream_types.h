#pragma once

#include <cstdint>
#include <optional>

#include "base/clock.h"
#include "base/words/types.h"

/// The words of streams: datasets that are a Kafka topic. A stream is cut into shards while its
/// records arrive; docs/kafka.md says what is promised.
namespace muster {

/// Offsets [begin, end) of one topic partition: a shard of a stream. It is cut once, from the
/// records that were readable at that moment. So it cannot be computed again, and is journaled
/// before it is leased. Not every offset is a record; end - begin is the largest possible number of
/// records.
struct StreamRange {
  TopicPartition partition;
  uint64_t begin = 0;
  uint64_t end = 0;  // > begin
  /// Minibatches in the earlier ranges of the dataset.
  uint64_t first_step = 0;
  /// When its first offset was first seen. Only shown to people.
  WallTime seen{0};
  friend bool operator==(const StreamRange&, const StreamRange&) = default;
};

/// Minibatch k of a range holds the records with offsets in [begin + k * size, begin + (k+1) *
/// size), perhaps none. They are cut by offset and not by count, so that every run cuts in the same
/// way.
constexpr uint32_t StreamMinibatches(uint64_t begin, uint64_t end, uint32_t minibatch_size) {
  return static_cast<uint32_t>((end - begin + minibatch_size - 1) / minibatch_size);
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
