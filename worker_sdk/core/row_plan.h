#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/words/types.h"
#include "proto/messages/partition_map.h"
#include "worker_sdk/core/kept_memory.h"

namespace muster::sdk {

/// Rows of one table: `keys` unique, `dim` floats a row. `dense`: they are all blocks of a dense
/// tensor, from 0 on.
struct TableKeys {
  TableId table;
  uint32_t dim = 0;
  std::span<const uint64_t> keys;
  bool dense = false;
};

/// Rows of one table within a part.
struct PlanGroup {
  TableId table;
  uint32_t dim = 0;
  uint32_t keys = 0;
  bool dense = false;
  /// The position of its table in the plan's tables.
  uint32_t number = 0;
  uint64_t floats() const { return uint64_t{keys} * dim; }
};
/// All rows that live in one partition; ranges into the plan's keys, values and groups.
struct PlanPart {
  PartitionId partition;
  uint64_t key_begin = 0;
  uint64_t key_count = 0;
  uint64_t value_begin = 0;  // in floats
  uint64_t value_count = 0;
  uint32_t group_begin = 0;
  uint32_t group_count = 0;
};
/// Where the rows of one of the tables went.
struct TablePlaces {
  TableId table;
  uint32_t dim = 0;
  RowVector<uint64_t> offset;  // first float of key i's row in the values
  bool dense = false;
};

/// How the rows of one pull, or of one minibatch's push, are cut into parts. Keys and values lie
/// part after part, group after group, so everything for one server is contiguous. A value.
struct RowPlan {
  RowVector<uint64_t> keys;
  /// For each key: its position in the keys given for its table.
  RowVector<uint32_t> ids;
  PooledVector<PlanGroup> groups;
  PooledVector<PlanPart> parts;
  /// In the order of the given tables.
  PooledVector<TablePlaces> tables;
  uint64_t value_count = 0;  // floats in all parts
};

/// Cuts `tables` into parts: each table once, dense ones last, so that the rows of the others are
/// contiguous in each part. `order` lists every partition once; parts follow it. The cost grows
/// with the rows and the partitions, not with tables times partitions.
RowPlan PlanRows(std::span<const TableKeys> tables, std::span<const PartitionId> order);

/// Copies `rows: [keys, dim] float32 row-major` of plan.tables[table] to their places in `values:
/// [plan.value_count]`.
void ScatterRows(const RowPlan& plan, size_t table, std::span<const float> rows,
                 std::span<float> values);

/// Every partition, ordered by its server and lane, so that parts for one lane are contiguous.
/// Without owners: by number.
std::vector<PartitionId> SendingOrder(const PartitionMap& map);

}  // namespace muster::sdk
