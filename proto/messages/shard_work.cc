#include "proto/messages/shard_work.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace muster {

std::optional<std::string> ShardWork::Contradiction() const {
  if (record_count == 0 || minibatch_size == 0 || minibatch_count == 0) {
    return fmt::format("a shard of dataset '{}' has {} records in {} minibatches of {}",
                       dataset_name, record_count, minibatch_count, minibatch_size);
  }
  if (stream.has_value()) {
    const bool empty = std::ranges::any_of(
        stream->ranges, [](const OffsetRange& range) { return range.begin >= range.end; });
    if (!empty && OffsetsOf(stream->ranges) == record_count) return std::nullopt;
    return fmt::format("a shard of topic '{}' has {} offsets, but its ranges have {}{}",
                       stream->topic, record_count, OffsetsOf(stream->ranges),
                       empty ? ", and one is empty" : "");
  }
  uint64_t records = 0;
  for (const SourceRun& run : runs) {
    records += run.record_count;
    if (has_numbers()) {
      constexpr auto kMost = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
      if (run.first_record <= kMost - run.record_count) continue;
      return fmt::format("a shard of dataset '{}' has record {}, which is no record's number",
                         dataset_name, run.first_record);
    }
    if (run.file >= files.size()) {
      return fmt::format("a shard of dataset '{}' has records of file {}, but names {} files",
                         dataset_name, run.file, files.size());
    }
    const SourceFile& file = files[run.file];
    if (run.byte_begin > run.byte_end || run.byte_end > file.bytes) {
      return fmt::format("a shard of dataset '{}' has bytes [{}, {}) of a file of {}", dataset_name,
                         run.byte_begin, run.byte_end, file.bytes);
    }
  }
  if (records == record_count) return std::nullopt;
  return fmt::format("a shard of dataset '{}' has {} records, but its runs have {}", dataset_name,
                     record_count, records);
}

}  // namespace muster
