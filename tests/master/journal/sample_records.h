#pragma once

#include <string>
#include <vector>

#include "master/core/durable_state.h"
#include "master/journal/record_codec.h"

namespace muster::testing {

inline ShardId SampleShard(uint64_t index) {
  return {DatasetId(1), EpochIndex(2), ShardIndex(index)};
}

inline std::vector<Mutation> SampleStreamRecords() {
  return {
      StreamRecord{DatasetId(2), ShardIndex(17), 40, "cluster \xff"},
      StreamPositionRecord{DatasetId(2), {TopicPartition(3), 5, 9, std::nullopt}},
      StreamPositionRecord{DatasetId(2), {TopicPartition(4), 6, 6, 0}},
      StreamShardRecord{{DatasetId(2), EpochIndex(0), ShardIndex(15)},
                        {{{TopicPartition(3), 5, 7}}, 39, WallTime(8)}},
      StreamShardRecord{{DatasetId(2), EpochIndex(0), ShardIndex(16)},
                        {{{TopicPartition(3), 7, 9}, {TopicPartition(4), 1, 6}}, 40, WallTime(9)}}};
}

inline std::vector<Mutation> SampleGroupRecords() {
  return {GroupModelRecord{{{"w", GroupDtype::kFloat32, 10, false, 0},
                            {"gradient", GroupDtype::kFixedPoint, 10, true, 24}},
                           7},
          GroupRecord{LineageNumber(2), StepNumber(3), AttemptNumber(9), {{"worker-\xff", 4}}},
          StepRecord{LineageNumber(2), StepNumber(5), AttemptNumber(9), 11, SampleShard(4), 64},
          CheckpointRecord{{LineageNumber(1), StepNumber(3)}, {{0, 40, 12, "group/r1-s3-a2-0"}}}};
}

inline MetaRecord SampleMeta() {
  MetaRecord meta{MasterIncarnation(3),
                  DoneSeq(12),
                  DoneSeq(9),
                  MapVersion(4),
                  RestoreEpoch(5),
                  ServerIncarnation(6),
                  JobState::kDraining,
                  "why \xff",
                  "run-1",
                  {1, 2, 3, 4, 5, 6, 7, 8},
                  "/snapshots"};
  meta.gain_epoch = 4;
  meta.gain_rule = "1/loss";
  return meta;
}

/// One record of every kind, every field set.
inline std::vector<Mutation> SampleRecords() {
  const LeaseToken token(MasterIncarnation(3), 17);
  ShardMetrics metrics;
  metrics.records = 40;
  metrics.rejected_records = 2;
  metrics.reject_samples = {"a.csv:3: \xff"};
  metrics.means["loss"] = {1.5, 40};
  AddScore(&metrics.aucs["auc"], 0.25, true);
  AddScore(&metrics.aucs["auc"], 0.75, false);
  EpochRecord epoch{DatasetId(1), EpochIndex(2), {}, 80, metrics};
  epoch.committed.Add(0, 5);
  epoch.committed.Add(7, 9);
  WholeEpochsRecord whole{DatasetId(1), {}, 31};
  whole.epochs.Add(0, 2);
  whole.epochs.Add(4, 9);
  PartitionRecord partition{PartitionId(8),
                            {ServerId(1), ServerIncarnation(6), OwnerEpoch(4), OwnerEpoch(3),
                             OwnerEpoch(2), true, RestoreEpoch(5)},
                            {SnapshotNumber(MasterIncarnation(3), 2),
                             DoneSeq(9),
                             {{"p8/base.sst", 100}, {"p8/delta.sst", 10}}}};
  TableSpec table;
  table.id = TableId(1);
  table.name = "embedding";
  table.dim = 16;
  table.optimizer = AdagradSpec{0.05f, 0.1f, 1e-8f};
  NodeRecord node{.name = "ps-0", .role = "ps", .state = NodeState::kRunning};
  node.pid = 123;
  node.incarnation = 6;
  node.start = StartNumber(16);
  node.told_start = StartNumber(3);
  node.exit_told = StartNumber(2);
  node.last_exit = "SIGKILL";
  node.records_committed = 5;
  node.nonce = 77;
  node.superseded_nonces = {75, 76};
  node.lanes = {{"unix:/a", "127.0.0.1:1"}, {"unix:/b"}};
  node.skipped_before = 1;
  node.stale_before = 2;
  node.skipped_now = 3;
  node.stale_now = 4;
  std::vector<Mutation> records = {
      SampleMeta(),
      DoneRecord{{DoneSeq(10), SampleShard(5), token}, "worker-0", metrics},
      DoneRecord{{DoneSeq(11), SampleShard(6), token}, "worker-1", {}},
      DoneRecord{{DoneSeq(12), SampleShard(9), token}, "worker-1", {}},
      epoch,
      whole,
      FailureRecord{
          SampleShard(4), 2, 1, {"a", "b \xff"}, true, true, LeaseToken(MasterIncarnation(2), 9)},
      FailureRecord{SampleShard(3), 1, 0, {"c"}, false, false, {}},
      partition,
      table,
      node,
      EventRecord{1, WallTime(5), "kind", "node", "text \xff"},
      EventRecord{2, WallTime(6), "kind", "node", "text"}};
  records.push_back(KeptRecord{EpochIndex(3), PartitionId(8), partition.manifest});
  for (const Mutation& record : SampleStreamRecords()) records.push_back(record);
  for (const Mutation& record : SampleGroupRecords()) records.push_back(record);
  return records;
}

/// Every record of a state as it would be stored: equal states have equal lists.
inline std::vector<std::pair<std::string, std::string>> Stored(const DurableState& state) {
  std::vector<std::pair<std::string, std::string>> stored;
  const auto add = [&](const Mutation& mutation) {
    const StoreChange change = Encode(mutation);
    stored.emplace_back(change.key, change.value.value());
  };
  if (state.meta.has_value()) add(*state.meta);
  for (const auto& [key, record] : state.done) add(record);
  for (const auto& [key, record] : state.epochs) add(record);
  for (const auto& [key, record] : state.failures) add(record);
  for (const auto& [key, record] : state.partitions) add(record);
  for (const auto& [key, record] : state.tables) add(record);
  for (const auto& [key, record] : state.nodes) add(record);
  for (const auto& [key, record] : state.events) add(record);
  for (const auto& [key, record] : state.streams) add(record);
  for (const auto& [key, position] : state.stream_positions) {
    add(StreamPositionRecord{key.first, position});
  }
  for (const auto& [shard, cut] : state.stream_shards) add(StreamShardRecord{shard, cut});
  for (const auto& [epoch, manifests] : state.kept) {
    for (const auto& [id, manifest] : manifests) add(KeptRecord{epoch, id, manifest});
  }
  if (state.group.model.has_value()) add(*state.group.model);
  if (state.group.group.has_value()) add(*state.group.group);
  if (state.group.step.has_value()) add(*state.group.step);
  if (state.group.checkpoint.has_value()) add(*state.group.checkpoint);
  return stored;
}

}  // namespace muster::testing
