#include "sharding/stream/stream_cutter.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "base/check.h"
#include "base/words/limits.h"

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

uint64_t StreamCutter::ShardOffsets() const {
  return uint64_t{options_.minibatch_size} * options_.minibatches_per_shard;
}

void StreamCutter::Take(Partition* partition, uint64_t end, StreamShard* shard) {
  StreamPosition& position = partition->position;
  // Cuts only records that can be read, except for those that retention has deleted.
  MUSTER_CHECK(end > position.cut && end <= Limit(*partition));
  if (!partition->ends_seen.empty()) {
    const WallTime seen = partition->ends_seen.front().wall;
    shard->seen = shard->ranges.empty() ? seen : std::min(shard->seen, seen);
  }
  shard->ranges.push_back({position.partition, position.cut, end});
  position.cut = end;
  partition->changed = true;
  while (!partition->ends_seen.empty() && partition->ends_seen.front().stable_end <= end) {
    partition->ends_seen.pop_front();
  }
}

StreamCutter::Cut StreamCutter::Number(StreamShard shard, bool lost) {
  // Rule 9.3.
  shard.first_step = next_step_;
  next_step_ += StreamMinibatches(shard.offsets(), options_.minibatch_size);
  return {std::move(shard), lost};
}

std::optional<StreamCutter::Cut> StreamCutter::CutOne(Partition* partition) {
  const StreamPosition& position = partition->position;
  const uint64_t limit = Limit(*partition);
  if (limit <= position.cut) return std::nullopt;
  const bool lost = partition->log_begin > position.cut;
  const uint64_t gone = std::min(partition->log_begin, limit);
  const uint64_t end =
      lost ? std::min(gone, position.cut + kLostOffsetsMax) : position.cut + ShardOffsets();
  if (end > limit) return std::nullopt;
  StreamShard shard;
  Take(partition, end, &shard);
  return Number(std::move(shard), lost);
}

bool StreamCutter::SeesTheEnd() const {
  return std::ranges::all_of(partitions_, [](const auto& entry) {
    const Partition& partition = entry.second;
    return partition.position.end.has_value() && Limit(partition) == *partition.position.end;
  });
}

std::vector<StreamCutter::Waiting> StreamCutter::LongestWaiting(TimePoint now) {
  const bool end = SeesTheEnd();
  std::vector<Waiting> all;
  for (auto& [id, partition] : partitions_) {
    const uint64_t limit = Limit(partition), cut = partition.position.cut;
    if (limit <= cut) continue;
    Waiting waiting{&partition, end ? limit - cut : 0, limit - cut};
    for (const EndSeen& mark : partition.ends_seen) {
      if (end || now - mark.now < options_.max_delay) break;
      waiting.due = std::min(mark.stable_end, limit) - cut;
    }
    all.push_back(waiting);
  }
  // What was read before a restart has no mark: the next look gives it one.
  std::ranges::stable_sort(all, {}, [](const Waiting& waiting) {
    const std::deque<EndSeen>& marks = waiting.partition->ends_seen;
    return std::pair(waiting.due == 0, marks.empty() ? TimePoint::max() : marks.front().now);
  });
  if (all.size() > most::kRangesOfShard) all.resize(most::kRangesOfShard);
  return all;
}

std::vector<StreamCutter::Cut> StreamCutter::CutAcross(uint64_t shards_max, TimePoint now) {
  std::vector<Waiting> waiting = LongestWaiting(now);
  uint64_t due = 0, all = 0;
  for (const Waiting& one : waiting) due += one.due, all += one.all;
  const uint64_t size = options_.minibatch_size;
  const uint64_t whole = std::min(DivideUp(due, size) * size, all);
  const uint64_t take =
      std::min(whole, shards_max > whole / ShardOffsets() ? whole : shards_max * ShardOffsets());
  if (take == 0) return {};
  // What is due goes first; what is not fills the last minibatch.
  uint64_t fill = take - std::min(take, due), left = take;
  std::vector<OffsetRange> ranges;
  for (Waiting& one : waiting) {
    const uint64_t more = std::min(fill, one.all - one.due);
    one.all = std::min(left, one.due + more);
    fill -= more, left -= one.all;
    const uint64_t cut = one.partition->position.cut;
    if (one.all > 0) ranges.push_back({one.partition->position.partition, cut, cut + one.all});
  }
  const uint64_t minibatches = DivideUp(take, size);
  const uint64_t shards = DivideUp(minibatches, options_.minibatches_per_shard);
  std::vector<Cut> cuts;
  for (uint64_t i = 0; i < shards; ++i) {
    const auto begin_of = [&](uint64_t shard) {
      return BeginOfPart(BeginOfPart(shard, shards, minibatches), minibatches, take);
    };
    StreamShard shard;
    for (const OffsetRange& range : PartOf(ranges, begin_of(i), begin_of(i + 1))) {
      Take(&partitions_.at(range.partition), range.end, &shard);
    }
    cuts.push_back(Number(std::move(shard), false));
  }
  return cuts;
}

std::vector<StreamCutter::Cut> StreamCutter::CutDue(uint64_t shards_max, TimePoint now) {
  std::vector<Cut> cuts;
  uint64_t left = shards_max;
  // The number of idle partitions in a row.
  size_t idle = 0;
  while (left > 0 && idle < partitions_.size()) {
    auto it = partitions_.lower_bound(turn_);
    if (it == partitions_.end()) it = partitions_.begin();
    turn_ = it->first.Next();
    std::optional<Cut> cut = CutOne(&it->second);
    idle = cut.has_value() ? 0 : idle + 1;
    if (!cut.has_value()) continue;
    if (!cut->lost) --left;
    cuts.push_back(*std::move(cut));
  }
  while (left > 0) {
    std::vector<Cut> across = CutAcross(left, now);
    if (across.empty()) break;
    left -= across.size();
    std::ranges::move(across, std::back_inserter(cuts));
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
