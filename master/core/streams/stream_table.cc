#include "master/core/streams/stream_table.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace muster {
StreamTable::StreamTable(const std::vector<DatasetPlan>& plan, const DurableState& state)
    : ranges_(state.stream_ranges) {
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
  for (const auto& [shard, range] : ranges_) {
    streams_.at(shard.dataset).open[range.partition][range.begin] = shard.index;
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

const StreamRange* StreamTable::Find(const ShardId& shard) const {
  const auto it = ranges_.find(shard);
  return it == ranges_.end() ? nullptr : &it->second;
}

std::map<ShardId, StreamRange> StreamTable::RangesOf(DatasetId dataset) const {
  return {ranges_.lower_bound({dataset, EpochIndex(0), ShardIndex(0)}),
          ranges_.lower_bound({dataset.Next(), EpochIndex(0), ShardIndex(0)})};
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

std::vector<StreamTable::NewShard> StreamTable::CutDue(DatasetId dataset, uint64_t ranges_max,
                                                       TimePoint now) {
  Stream& stream = streams_.at(dataset);
  std::vector<NewShard> added;
  for (const StreamCutter::Cut& cut : stream.cutter.CutDue(ranges_max, now)) {
    const ShardId shard{dataset, EpochIndex(0), stream.next_shard};
    stream.next_shard = stream.next_shard.Next();
    const bool first_cut =
        stream.open[cut.range.partition].insert_or_assign(cut.range.begin, shard.index).second;
    MUSTER_CHECK_MSG(first_cut, ToString(shard));
    stream.changed = true;
    MUSTER_CHECK_MSG(ranges_.emplace(shard, cut.range).second, ToString(shard));
    // It is journaled before it is leased, because it cannot be computed again.
    // Rule 9.1.
    pending_.push_back(StreamRangeRecord{shard, cut.range});
    added.push_back({shard, cut.range, cut.lost});
  }
  return added;
}

std::vector<ShardId> StreamTable::BehindLog(DatasetId dataset) const {
  const Stream& stream = streams_.at(dataset);
  std::vector<ShardId> behind;
  for (const StreamCutter::Progress& view : stream.cutter.ProgressOfAll()) {
    const auto open = stream.open.find(view.position.partition);
    if (open == stream.open.end()) continue;
    for (const auto& [begin, index] : open->second) {
      if (begin >= view.log_begin) break;
      behind.push_back({dataset, EpochIndex(0), index});
    }
  }
  return behind;
}

void StreamTable::OnCommitted(const ShardId& shard) {
  const auto it = ranges_.find(shard);
  if (it == ranges_.end()) return;
  Stream& stream = streams_.at(shard.dataset);
  MUSTER_CHECK(stream.open[it->second.partition].erase(it->second.begin) == 1);
  ranges_.erase(it);
  pending_.push_back(EraseStreamRange{shard});
}

void StreamTable::OnLost(const ShardId& shard) {
  const auto it = ranges_.find(shard);
  if (it == ranges_.end()) return;
  Stream& stream = streams_.at(shard.dataset);
  if (stream.open[it->second.partition].erase(it->second.begin) == 0) return;
  stream.lost[it->second.partition] += it->second.end - it->second.begin;
}

bool StreamTable::IsLost(const ShardId& shard) const {
  const StreamRange* const range = Find(shard);
  if (range == nullptr) return false;
  const auto& open = streams_.at(shard.dataset).open;
  const auto partition = open.find(range->partition);
  return partition == open.end() || !partition->second.contains(range->begin);
}

void StreamTable::OnRetried(const ShardId& shard) {
  const auto it = ranges_.find(shard);
  if (it == ranges_.end()) return;
  Stream& stream = streams_.at(shard.dataset);
  const StreamRange& range = it->second;
  if (!stream.open[range.partition].emplace(range.begin, shard.index).second) return;
  uint64_t& lost = stream.lost[range.partition];
  MUSTER_CHECK_MSG(lost >= range.end - range.begin, ToString(shard));
  lost -= range.end - range.begin;
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
      progress.oldest = ranges_.at({dataset, EpochIndex(0), index}).seen;
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
