#include "master/core/durable_state.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/version.h"

namespace muster {
namespace {

struct Applier {
  DurableState* state;

  void operator()(const MetaRecord& record) { state->meta = record; }
  void operator()(const DoneRecord& record) { state->done[record.done.seq] = record; }
  void operator()(const EraseDone& range) {
    state->done.erase(state->done.lower_bound(range.first), state->done.upper_bound(range.last));
  }
  void operator()(const EpochRecord& record) {
    state->epochs[{record.dataset, record.epoch}] = record;
  }
  void operator()(const EraseEpoch& erase) { state->epochs.erase({erase.dataset, erase.epoch}); }
  void operator()(const WholeEpochsRecord& record) { state->whole_epochs[record.dataset] = record; }
  void operator()(const FailureRecord& record) { state->failures[record.shard] = record; }
  void operator()(const EraseFailure& erase) { state->failures.erase(erase.shard); }
  void operator()(const PartitionRecord& record) { state->partitions[record.partition] = record; }
  void operator()(const TableSpec& table) { state->tables[table.id] = table; }
  void operator()(const NodeRecord& record) { state->nodes[record.name] = record; }
  void operator()(const EraseNode& erase) { state->nodes.erase(erase.name); }
  void operator()(const EventRecord& record) { state->events[record.sequence] = record; }
  void operator()(const StreamRecord& record) { state->streams[record.dataset] = record; }
  void operator()(const StreamPositionRecord& record) {
    state->stream_positions[{record.dataset, record.position.partition}] = record.position;
  }
  void operator()(const StreamShardRecord& record) {
    state->stream_shards[record.shard] = record.cut;
  }
  void operator()(const EraseStreamShard& erase) { state->stream_shards.erase(erase.shard); }
  void operator()(const KeptRecord& record) {
    state->kept[record.epoch][record.partition] = record.manifest;
  }
  void operator()(const EraseKept& erase) { state->kept.erase(erase.epoch); }
  void operator()(const GroupModelRecord& record) { state->group.model = record; }
  void operator()(const GroupRecord& record) { state->group.group = record; }
  void operator()(const StepRecord& record) { state->group.step = record; }
  void operator()(const CheckpointRecord& record) { state->group.checkpoint = record; }
  void operator()(const EraseEvents& erase) {
    state->events.erase(state->events.begin(), state->events.upper_bound(erase.last));
  }
};

}  // namespace

std::optional<std::string> StreamShardRecord::Wrong() const {
  const bool empty = std::ranges::any_of(
      cut.ranges, [](const OffsetRange& range) { return range.begin >= range.end; });
  if (!empty && !cut.ranges.empty()) return std::nullopt;
  if (cut.ranges.empty())
    return fmt::format("a shard of a topic has no offsets: {}", kCutByEarlierVersion);
  return "a shard of a topic has an empty range of offsets";
}

void Apply(const Mutation& mutation, DurableState* state) {
  std::visit(Applier{state}, mutation);
}

}  // namespace muster
