#pragma once

#include <map>
#include <memory>
#include <set>
#include <vector>

#include "sharding/partition_of.h"
#include "worker_sdk/core/part_sender.h"

/// Small maps and batches for the tests of worker_sdk/core.
namespace muster::sdk {

inline constexpr uint32_t kPartitions = 8;
inline constexpr uint32_t kServers = 2;

/// kPartitions partitions, even ones on ps-0 and odd ones on ps-1, one lane each.
inline PartitionMap MapOf(uint64_t version, uint64_t restore_epoch) {
  PartitionMap map;
  map.version = MapVersion(version);
  map.restore_epoch = RestoreEpoch(restore_epoch);
  for (uint32_t s = 0; s < kServers; ++s) {
    map.servers.push_back({ServerId(s), ServerIncarnation(1), "ps-" + std::to_string(s), {{"x"}}});
  }
  for (uint32_t p = 0; p < kPartitions; ++p) {
    PartitionEntry entry;
    entry.owner = ServerId(p % kServers);
    entry.owner_incarnation = ServerIncarnation(1);
    entry.epoch = entry.since = OwnerEpoch(1);
    map.partitions.push_back(entry);
  }
  return map;
}

/// As above, after these partitions were restored at `restore_epoch`.
inline PartitionMap RestoredMap(uint64_t restore_epoch, const std::vector<uint32_t>& partitions) {
  PartitionMap map = MapOf(restore_epoch, restore_epoch);
  for (const uint32_t p : partitions) {
    PartitionEntry& entry = map.partitions[p];
    entry.epoch = entry.since = OwnerEpoch(restore_epoch);
    entry.restored_at = RestoreEpoch(restore_epoch);
  }
  return map;
}

/// Rows of one table that touch the partitions for which `touches` holds.
template <typename Predicate>
std::shared_ptr<const RowBatch> BatchOf(Predicate touches) {
  std::vector<uint64_t> keys;
  std::set<uint32_t> seen;
  for (uint64_t key = 0; seen.size() < kPartitions; ++key) {
    uint32_t partition = PartitionOf(TableId(1), key, kPartitions).value();
    if (seen.insert(partition).second && touches(partition)) keys.push_back(key);
  }
  std::vector<PartitionId> order;
  for (uint32_t p = 0; p < kPartitions; ++p) order.push_back(PartitionId(p));
  TableKeys table{TableId(1), 2, keys};
  const auto set = std::make_shared<const KeySet>(MakeKeySet(keys));
  std::shared_ptr<RowBatch> batch = MakePull(std::span(&table, 1), std::span(&set, 1), order);
  batch->values.resize(batch->plan.value_count, 1.0f);
  return batch;
}

inline std::shared_ptr<const RowBatch> BatchOfAllPartitions() {
  return BatchOf([](uint32_t) { return true; });
}

}  // namespace muster::sdk
