#include "sharding/stream/stream_cutter.h"

#include <algorithm>
#include <set>

#include "base/check.h"

namespace muster {
namespace {

/// The most marks of one topic partition. Older ones are merged, which can make an age too high,
/// but never too low.
constexpr size_t kEndsSeenMax = 128;
/// The number of lost offsets has no limit, but minibatches of a range are counted in 32 bits.
constexpr uint64_t kLostOffsetsMax = uint64_t{1} << 31;

/// The dataset's end in this partition is known, and everything before it is cut.
bool IsCutToItsEnd(const StreamPosition& position) {
  return position.end.has_value() && position.cut >= *position.end;
}

}  // namespace

StreamCutter::StreamCutter(StreamCutOptions options, std::span<const StreamPosition> positions,
                           uint64_t next_step)
    : options_(options), next_step_(next_step) {
  MUSTER_CHECK(options_.minibatch_size > 0 && options_.minibatches_per_shard > 0);
  for (const StreamPosition& position : positions) {
    partitions_[position.partition].position = position;
  }
}

void StreamCutter::See(std::span<const PartitionLook> looks, TimePoint now, WallTime wall) {
  const bool over = AtEnd();
  // A topic that was created again may have fewer partitions.
  std::set<TopicPartition> there;
  for (const PartitionLook& look : looks) there.insert(look.partition);
  for (auto& [id, partition] : partitions_) {
    partition.missing = !there.contains(id);
    if (partition.missing) partition.stable_end = partition.log_end = 0;
  }
  for (const PartitionLook& look : looks) {
    if (over && !partitions_.contains(look.partition)) continue;
    const auto [it, added] = partitions_.try_emplace(look.partition);
    Partition& partition = it->second;
    if (added) {
      const uint64_t begin = look.begin.value_or(look.log_begin);
      partition.position = {look.partition, begin, begin, std::nullopt};
      partition.changed = true;
    }
    if (!partition.position.end.has_value() && look.end.has_value()) {
      partition.position.end = std::max(*look.end, partition.position.cut);
      partition.changed = true;
    }
    partition.log_begin = look.log_begin;
    partition.stable_end = look.stable_end;
    partition.log_end = std::max(look.stable_end, look.log_end);
    partition.seen = true;
    const uint64_t known = partition.ends_seen.empty() ? partition.position.cut
                                                       : partition.ends_seen.back().stable_end;
    if (look.stable_end <= known) continue;
    MUSTER_CHECK(partition.ends_seen.empty() || partition.ends_seen.back().now <= now);
    partition.ends_seen.push_back({look.stable_end, now, wall});
    if (partition.ends_seen.size() <= kEndsSeenMax) continue;
    // Every second mark gets the end of its successor and keeps its own, earlier time.
    for (size_t i = 0; i + 1 < partition.ends_seen.size(); ++i) {
      partition.ends_seen[i].stable_end = partition.ends_seen[i + 1].stable_end;
      partition.ends_seen.erase(partition.ends_seen.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    }
  }
}

uint64_t StreamCutter::Limit(const Partition& partition) {
  return partition.position.end.has_value()
             ? std::min(partition.stable_end, *partition.position.end)
             : partition.stable_end;
}

StreamCutter::Cut StreamCutter::Take(Partition* partition, uint64_t end, bool lost) {
  StreamPosition& position = partition->position;
  // Cuts only records that can be read, except for those that retention has deleted.
  MUSTER_CHECK(end > position.cut && end <= Limit(*partition));
  Cut cut{{position.partition, position.cut, end, next_step_, WallTime{0}}, lost};
  if (!partition->ends_seen.empty()) cut.range.seen = partition->ends_seen.front().wall;
  // Rule 9.3.
  next_step_ += StreamMinibatches(position.cut, end, options_.minibatch_size);
  position.cut = end;
  partition->changed = true;
  while (!partition->ends_seen.empty() && partition->ends_seen.front().stable_end <= end) {
    partition->ends_seen.pop_front();
  }
  return cut;
}

std::optional<StreamCutter::Cut> StreamCutter::CutOne(Partition* partition, TimePoint now) {
  const StreamPosition& position = partition->position;
  const uint64_t limit = Limit(*partition);
  if (limit <= position.cut) return std::nullopt;
  if (partition->log_begin > position.cut) {
    const uint64_t gone = std::min(partition->log_begin, limit);
    return Take(partition, std::min(gone, position.cut + kLostOffsetsMax), true);
  }
  const uint64_t full = uint64_t{options_.minibatch_size} * options_.minibatches_per_shard;
  if (limit - position.cut >= full) return Take(partition, position.cut + full, false);
  const bool last = position.end.has_value() && limit == *position.end;
  const bool late =
      !partition->ends_seen.empty() && now - partition->ends_seen.front().now >= options_.max_delay;
  if (!last && !late) return std::nullopt;
  return Take(partition, limit, false);
}

std::vector<StreamCutter::Cut> StreamCutter::CutDue(uint64_t ranges_max, TimePoint now) {
  std::vector<Cut> cuts;
  uint64_t left = ranges_max;
  // The number of idle partitions in a row.
  size_t idle = 0;
  while (left > 0 && idle < partitions_.size()) {
    auto it = partitions_.lower_bound(turn_);
    if (it == partitions_.end()) it = partitions_.begin();
    turn_ = it->first.Next();
    std::optional<Cut> cut = CutOne(&it->second, now);
    idle = cut.has_value() ? 0 : idle + 1;
    if (!cut.has_value()) continue;
    if (!cut->lost) --left;
    cuts.push_back(*cut);
  }
  return cuts;
}

bool StreamCutter::AtEnd() const {
  return !partitions_.empty() && std::ranges::all_of(partitions_, [](const auto& entry) {
    return IsCutToItsEnd(entry.second.position);
  });
}

std::vector<TopicPartition> StreamCutter::Truncated() const {
  std::vector<TopicPartition> truncated;
  for (const auto& [id, partition] : partitions_) {
    // If nothing was cut yet, the dataset may begin behind an open transaction.
    const StreamPosition& position = partition.position;
    const uint64_t end = position.cut > position.begin ? partition.stable_end : partition.log_end;
    if (partition.missing || (partition.seen && end < position.cut)) truncated.push_back(id);
  }
  return truncated;
}

std::vector<StreamCutter::Progress> StreamCutter::ProgressOfAll() const {
  std::vector<Progress> progress;
  for (const auto& [id, partition] : partitions_) {
    progress.push_back({partition.position,
                        partition.log_begin,
                        partition.stable_end,
                        partition.log_end,
                        partition.seen,
                        {}});
    if (!partition.ends_seen.empty()) progress.back().uncut_seen = partition.ends_seen.front().wall;
  }
  return progress;
}

std::vector<StreamPosition> StreamCutter::TakeChanged() {
  std::vector<StreamPosition> changed;
  for (auto& [id, partition] : partitions_) {
    if (partition.changed) changed.push_back(partition.position);
    partition.changed = false;
  }
  return changed;
}

}  // namespace muster
