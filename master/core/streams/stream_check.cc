#include "master/core/streams/stream_check.h"

#include <fmt/format.h>

#include <iterator>
#include <map>
#include <utility>

#include "base/interval_set.h"

namespace muster {
namespace {

/// The ranges of a topic partition that were seen: begin -> end.
using Ranges = std::map<uint64_t, uint64_t>;

/// Adds a range. False: another has some of its offsets.
bool AddFree(const OffsetRange& range, Ranges* others) {
  const auto [it, added] = others->emplace(range.begin, range.end);
  return added && (it == others->begin() || std::prev(it)->second <= range.begin) &&
         (std::next(it) == others->end() || range.end <= std::next(it)->first);
}

}  // namespace

absl::Status CheckStreamComplete(const StreamRecord& stream, const DurableState& state) {
  const auto epoch = state.epochs.find({stream.dataset, EpochIndex(0)});
  const IntervalSet committed =
      epoch == state.epochs.end() ? IntervalSet() : epoch->second.committed;
  const uint64_t cut = stream.next_shard.value();
  const bool inside = committed.empty() || committed.intervals().rbegin()->second <= cut;
  uint64_t others = 0;
  auto shard = state.stream_shards.lower_bound({stream.dataset, EpochIndex(0), ShardIndex(0)});
  for (; shard != state.stream_shards.end() && shard->first.dataset == stream.dataset; ++shard) {
    others += committed.Contains(shard->first.index.value()) ? 0 : 1;
  }
  if (inside && committed.count() + others == cut) return absl::OkStatus();
  return absl::DataLossError(
      fmt::format("the journal has {} shards of the topic of dataset #{}, {} of them COMMITTED, "
                  "but offsets for {} others",
                  cut, stream.dataset.value(), committed.count(), others));
}

absl::Status CheckStreamShards(const DurableState& state) {
  std::map<std::pair<DatasetId, TopicPartition>, Ranges> ranges;
  for (const auto& [shard, stream_shard] : state.stream_shards) {
    for (const OffsetRange& range : stream_shard.ranges) {
      const auto position = state.stream_positions.find({shard.dataset, range.partition});
      const bool cut = position != state.stream_positions.end() &&
                       range.begin >= position->second.begin && range.end <= position->second.cut;
      const bool free = AddFree(range, &ranges[{shard.dataset, range.partition}]);
      if (cut && free) continue;
      return absl::DataLossError(
          fmt::format("the journal has offsets [{}, {}) of topic partition {} for shard {}, but {}",
                      range.begin, range.end, range.partition.value(), ToString(shard),
                      cut ? "another shard has some of them" : "they were never cut into shards"));
    }
  }
  return absl::OkStatus();
}

}  // namespace muster
