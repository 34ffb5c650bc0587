#include "master/core/streams/stream_check.h"

#include <fmt/format.h>

#include <iterator>
#include <map>
#include <utility>

#include "base/interval_set.h"

namespace muster {

absl::Status CheckStreamComplete(const StreamRecord& stream, const DurableState& state) {
  const auto epoch = state.epochs.find({stream.dataset, EpochIndex(0)});
  const IntervalSet committed =
      epoch == state.epochs.end() ? IntervalSet() : epoch->second.committed;
  const uint64_t cut = stream.next_shard.value();
  const bool inside = committed.empty() || committed.intervals().rbegin()->second <= cut;
  uint64_t ranges = 0;
  auto range = state.stream_ranges.lower_bound({stream.dataset, EpochIndex(0), ShardIndex(0)});
  for (; range != state.stream_ranges.end() && range->first.dataset == stream.dataset; ++range) {
    ranges += committed.Contains(range->first.index.value()) ? 0 : 1;
  }
  if (inside && committed.count() + ranges == cut) return absl::OkStatus();
  return absl::DataLossError(
      fmt::format("the journal has {} shards of the topic of dataset #{}, {} of them COMMITTED, "
                  "but offsets for {} others",
                  cut, stream.dataset.value(), committed.count(), ranges));
}

absl::Status CheckStreamRanges(const DurableState& state) {
  std::map<std::pair<DatasetId, TopicPartition>, std::map<uint64_t, uint64_t>> ends;
  for (const auto& [shard, range] : state.stream_ranges) {
    const auto position = state.stream_positions.find({shard.dataset, range.partition});
    const bool cut = position != state.stream_positions.end() &&
                     range.begin >= position->second.begin && range.end <= position->second.cut;
    auto& others = ends[{shard.dataset, range.partition}];
    const auto [it, added] = others.emplace(range.begin, range.end);
    const bool free = added && (it == others.begin() || std::prev(it)->second <= range.begin) &&
                      (std::next(it) == others.end() || range.end <= std::next(it)->first);
    if (cut && free) continue;
    return absl::DataLossError(
        fmt::format("the journal has offsets [{}, {}) of topic partition {} for shard {}, but {}",
                    range.begin, range.end, range.partition.value(), ToString(shard),
                    cut ? "another shard has some of them" : "they were never cut into shards"));
  }
  return absl::OkStatus();
}

}  // namespace muster
