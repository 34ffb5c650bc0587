#pragma once

#include <cstdint>
#include <vector>

namespace muster {

/// How one dataset is cut into shards: source after source in order, every shard a whole number of
/// minibatches of one source (the last shard and the last minibatch of a source may be short). A
/// shard's *number* counts in this order; ShardOrder says which number runs when. O(sources) memory
/// whatever the number of shards. Immutable, so thread-safe.
class ShardLayout {
 public:
  /// What one shard covers.
  struct Range {
    uint32_t source = 0;           // index into the sources
    uint64_t first_record = 0;     // within the source, header not counted
    uint32_t record_count = 0;     // > 0
    uint32_t minibatch_count = 0;  // ceil(record_count / minibatch_size)
    friend bool operator==(const Range&, const Range&) = default;
  };

  /// No sources, no shards.
  ShardLayout() = default;
  /// Sources may be empty (they have no shard). `minibatch_size` and `minibatches_per_shard` are at
  /// least 1 and their product is below 2^32; the job file's bounds ensure this.
  ShardLayout(std::vector<uint64_t> records_per_source, uint32_t minibatch_size,
              uint32_t minibatches_per_shard);

  uint64_t shard_count() const { return first_shard_.back(); }
  uint64_t record_count() const { return record_count_; }
  uint32_t minibatch_size() const { return minibatch_size_; }
  uint32_t minibatches_per_shard() const { return minibatches_per_shard_; }
  /// minibatch_size * minibatches_per_shard.
  uint32_t records_per_shard() const { return minibatch_size_ * minibatches_per_shard_; }

  /// Requires number < shard_count(). O(log sources).
  Range RangeOf(uint64_t number) const;

 private:
  std::vector<uint64_t> records_per_source_;
  std::vector<uint64_t> first_shard_{0};  // [sources + 1], ascending
  uint64_t record_count_ = 0;
  uint32_t minibatch_size_ = 1;
  uint32_t minibatches_per_shard_ = 1;
};

}  // namespace muster
