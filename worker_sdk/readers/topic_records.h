#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "base/words/types.h"
#include "kafka/range_reader.h"

namespace muster::sdk {

/// The records of a shard of a topic, in the order of its ranges. Movable; the views stay valid.
class TopicRecords {
 public:
  /// Adds the records of the next range.
  void Add(TopicPartition partition, std::unique_ptr<kafka::Records> records) {
    const size_t first = size();
    end_ = first + records->all().size();
    if (end_ > first) ranges_.push_back({first, partition, std::move(records)});
  }

  size_t size() const { return end_; }
  // All require index < size().
  const kafka::Record& At(size_t index) const {
    const Range& range = RangeOf(index);
    return range.records->all()[index - range.first];
  }
  TopicPartition PartitionOf(size_t index) const { return RangeOf(index).partition; }
  std::vector<kafka::Records::Header> HeadersOf(size_t index) const {
    const Range& range = RangeOf(index);
    return range.records->HeadersOf(index - range.first);
  }

 private:
  struct Range {
    size_t first = 0;  // index of its first record
    TopicPartition partition;
    std::unique_ptr<kafka::Records> records;  // not empty
  };
  const Range& RangeOf(size_t index) const {
    return *std::prev(std::ranges::upper_bound(ranges_, index, {}, &Range::first));
  }

  std::vector<Range> ranges_;
  size_t end_ = 0;
};

}  // namespace muster::sdk
