#include "master/core/streams/stream_table.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace muster {
StreamTable::StreamTable(const std::vector<DatasetPlan>& plan, const DurableState& state)
    : shards_(state.stream_shards) {
  for (uint32_t i = 0; i < plan.size(); ++i) {
    if (!plan[i].stream.has_value()) continue;
    const DatasetId dataset(i);
    std::vector<StreamPosition> positions;
    for (const auto& [key, position] : state.stream_positions) {
      if (key.first == dataset) positions.push_back(position);
    }
    const auto record = state.streams.find(dataset);
    const bool known = record != state.streams.end();
    Stream stream{
        StreamCutter(plan[i].stream->cut, positions, known ? record->second.next_step : 0),
        known ? record->second.next_shard : ShardIndex(),
        known ? record->second.cluster : "",
        {},
        {}};
    streams_.emplace(dataset, std::move(stream));
  }
  for (const auto& [shard, cut] : shards_) {
    for (const OffsetRange& range : cut.ranges) {
      streams_.at(shard.dataset).open[range.partition][range.begin] = shard.index;
    }
  }
  for (const auto& [shard, failure] : state.failures) {
    if (failure.failed && failure.lost) OnLost(shard);
  }
}

std::vector<DatasetId> StreamTable::datasets() const {
  std::vector<DatasetId> datasets;
  for (const auto& [dataset, stream] : streams_) datasets.push_back(dataset);
  return datasets;
}

const StreamShard* StreamTable::Find(const ShardId& shard) const {
  const auto it = shards_.find(shard);
  return it == shards_.end() ? nullptr : &it->second;
}

std::map<ShardId, StreamShard> StreamTable::ShardsOf(DatasetId dataset) const {
  return {shards_.lower_bound({dataset, EpochIndex(0), ShardIndex(0)}),
          shards_.lower_bound({dataset.Next(), EpochIndex(0), ShardIndex(0)})};
}

void StreamTable::SetCluster(DatasetId dataset, std::string cluster) {
  Stream& stream = streams_.at(dataset);
  stream.cluster = std::move(cluster);
  stream.changed = true;
}

void StreamTable::See(DatasetId dataset, std::span<const PartitionLook> partition_looks,
                      TimePoint now, WallTime wall) {
  streams_.at(dataset).cutter.See(partition_looks, now, wall);
}

std::vector<StreamTable::NewShard> StreamTable::CutDue(DatasetId dataset, uint64_t shards_max,
                                                       TimePoint now) {
  Stream& stream = streams_.at(dataset);
  std::vector<NewShard> added;
  for (StreamCutter::Cut& cut : stream.cutter.CutDue(shards_max, now)) {
    const ShardId shard{dataset, EpochIndex(0), stream.next_shard};
    stream.next_shard = stream.next_shard.Next();
    MUSTER_CHECK_MSG(stream.Open(shard.index, cut.shard), ToString(shard));
    stream.changed = true;
    MUSTER_CHECK_MSG(shards_.emplace(shard, cut.shard).second, ToString(shard));
    // It is journaled before it is leased, because it cannot be computed again.
    // Rule 9.1.
    pending_.push_back(StreamShardRecord{shard, cut.shard});
    added.push_back({shard, std::move(cut.shard), cut.lost});
  }
  return added;
}

std::vector<ShardId> StreamTable::BehindLog(DatasetId dataset) const {
  const Stream& stream = streams_.at(dataset);
  std::set<ShardId> behind;
  for (const StreamCutter::Progress& view : stream.cutter.ProgressOfAll()) {
    const auto open = stream.open.find(view.position.partition);
    if (open == stream.open.end()) continue;
    for (const auto& [begin, index] : open->second) {
      if (begin >= view.log_begin) break;
      behind.insert({dataset, EpochIndex(0), index});
    }
  }
  return {behind.begin(), behind.end()};
}

bool StreamTable::Stream::Open(ShardIndex shard, const StreamShard& cut) {
  bool all_new = true;
  for (const OffsetRange& range : cut.ranges) {
    all_new = open[range.partition].emplace(range.begin, shard).second && all_new;
  }
  return all_new;
}

bool StreamTable::Stream::Close(const StreamShard& cut) {
  bool all_there = true;
  for (const OffsetRange& range : cut.ranges) {
    all_there = open[range.partition].erase(range.begin) == 1 && all_there;
  }
  return all_there;
}

bool StreamTable::Stream::IsOpen(const StreamShard& cut) const {
  const OffsetRange& any = cut.ranges.front();
  const auto partition = open.find(any.partition);
  return partition != open.end() && partition->second.contains(any.begin);
}

void StreamTable::OnCommitted(const ShardId& shard) {
  const auto it = shards_.find(shard);
  if (it == shards_.end()) return;
  MUSTER_CHECK_MSG(streams_.at(shard.dataset).Close(it->second), ToString(shard));
  shards_.erase(it);
  pending_.push_back(EraseStreamShard{shard});
}

void StreamTable::OnLost(const ShardId& shard) {
  const auto it = shards_.find(shard);
  if (it == shards_.end()) return;
  Stream& stream = streams_.at(shard.dataset);
  if (!stream.IsOpen(it->second)) return;
  MUSTER_CHECK_MSG(stream.Close(it->second), ToString(shard));
  for (const OffsetRange& range : it->second.ranges) {
    stream.lost[range.partition] += range.offsets();
  }
}

bool StreamTable::IsLost(const ShardId& shard) const {
  const StreamShard* const cut = Find(shard);
  return cut != nullptr && !streams_.at(shard.dataset).IsOpen(*cut);
}

void StreamTable::OnRetried(const ShardId& shard) {
  const auto it = shards_.find(shard);
  if (it == shards_.end()) return;
  Stream& stream = streams_.at(shard.dataset);
  if (stream.IsOpen(it->second)) return;
  MUSTER_CHECK_MSG(stream.Open(shard.index, it->second), ToString(shard));
  for (const OffsetRange& range : it->second.ranges) {
    uint64_t& lost = stream.lost[range.partition];
    MUSTER_CHECK_MSG(lost >= range.offsets(), ToString(shard));
    lost -= range.offsets();
  }
}

std::vector<StreamTable::Progress> StreamTable::ProgressOf(DatasetId dataset) const {
  const Stream& stream = streams_.at(dataset);
  std::vector<Progress> all;
  for (const StreamCutter::Progress& view : stream.cutter.ProgressOfAll()) {
    Progress progress{view.position, view.log_begin, view.stable_end, view.seen};
    progress.committed = view.position.cut;
    progress.oldest = view.uncut_seen;
    const auto open = stream.open.find(view.position.partition);
    if (open != stream.open.end() && !open->second.empty()) {
      const auto [begin, index] = *open->second.begin();
      // Rule 9.4.
      progress.committed = begin;
      progress.oldest = shards_.at({dataset, EpochIndex(0), index}).seen;
      progress.open_ranges = open->second.size();
      // Records that are reported as COMMITTED may be deleted from the topic.
      MUSTER_CHECK(open->second.lower_bound(progress.committed) == open->second.begin());
    }
    MUSTER_CHECK(view.position.begin <= progress.committed &&
                 progress.committed <= view.position.cut);
    const auto lost = stream.lost.find(view.position.partition);
    if (lost != stream.lost.end()) progress.lost = lost->second;
    const auto within = [&](uint64_t offset) {
      return std::min(offset, view.position.end.value_or(offset));
    };
    const uint64_t readable = within(std::max(view.position.cut, view.stable_end));
    if (view.seen) {
      progress.lag = readable - std::min(readable, progress.committed);
      const uint64_t log_end = within(view.log_end);
      progress.held_back = log_end - std::min(log_end, readable);
    }
    if (progress.lag == 0) progress.oldest.reset();
    all.push_back(progress);
  }
  return all;
}

void StreamTable::Collect(std::vector<Mutation>* mutations) {
  for (Mutation& mutation : pending_) mutations->push_back(std::move(mutation));
  pending_.clear();
  for (auto& [dataset, stream] : streams_) {
    for (const StreamPosition& position : stream.cutter.TakeChanged()) {
      // Rule 9.2.
      mutations->push_back(StreamPositionRecord{dataset, position});
    }
    if (!std::exchange(stream.changed, false)) continue;
    mutations->push_back(
        StreamRecord{dataset, stream.next_shard, stream.cutter.next_step(), stream.cluster});
  }
}

}  // namespace muster
