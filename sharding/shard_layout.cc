#include "sharding/shard_layout.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace muster {

ShardLayout::ShardLayout(std::vector<uint64_t> records_per_source, uint32_t minibatch_size,
                         uint32_t minibatches_per_shard)
    : records_per_source_(std::move(records_per_source)),
      minibatch_size_(minibatch_size),
      minibatches_per_shard_(minibatches_per_shard) {
  MUSTER_CHECK(minibatch_size > 0 && minibatches_per_shard > 0);
  MUSTER_CHECK(uint64_t{minibatch_size} * minibatches_per_shard < (uint64_t{1} << 32));
  first_shard_.reserve(records_per_source_.size() + 1);
  for (const uint64_t records : records_per_source_) {
    record_count_ += records;
    const uint64_t shards = records / records_per_shard() + (records % records_per_shard() != 0);
    first_shard_.push_back(first_shard_.back() + shards);
  }
}

ShardLayout::Range ShardLayout::RangeOf(uint64_t number) const {
  MUSTER_CHECK(number < shard_count());
  // The last source whose first shard is <= number: empty sources before it share that number.
  const auto next = std::upper_bound(first_shard_.begin(), first_shard_.end(), number);
  const auto source = static_cast<uint32_t>(next - first_shard_.begin() - 1);
  Range range;
  range.source = source;
  MUSTER_CHECK(source < records_per_source_.size() && first_shard_[source] <= number);
  range.first_record = (number - first_shard_[source]) * records_per_shard();
  // A source without records has no shard.
  MUSTER_CHECK(range.first_record < records_per_source_[source]);
  range.record_count = static_cast<uint32_t>(
      std::min<uint64_t>(records_per_shard(), records_per_source_[source] - range.first_record));
  range.minibatch_count =
      static_cast<uint32_t>((uint64_t{range.record_count} + minibatch_size_ - 1) / minibatch_size_);
  return range;
}

}  // namespace muster
