#include "worker_sdk/core/row_plan.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "sharding/partition_of.h"

namespace muster::sdk {

namespace {

/// What a partition has of a plan: first how much, then where the next row goes.
struct Cell {
  uint64_t key = 0;
  uint64_t value = 0;
  uint32_t group = 0;
  uint32_t open = UINT32_MAX;  // the number of the table whose group is the newest

  /// True if the table has no group here yet. Tables come one after the other.
  bool Opens(uint32_t table) { return std::exchange(open, table) != table; }
};

/// Makes the parts of partitions that have rows. Their cells then say where their rows begin.
void LayOut(std::span<const PartitionId> order, PooledVector<Cell>* cells, RowPlan* plan) {
  Cell next;
  for (const PartitionId partition : order) {
    Cell& cell = (*cells)[partition.value()];
    const Cell count = std::exchange(cell, next);
    if (count.key == 0) continue;
    plan->parts.push_back(
        {partition, next.key, count.key, next.value, count.value, next.group, count.group});
    next.key += count.key;
    next.value += count.value;
    next.group += count.group;
  }
  plan->keys.resize(next.key);
  plan->ids.resize(next.key);
  plan->groups.resize(next.group);
  plan->value_count = next.value;
}

}  // namespace

RowPlan PlanRows(std::span<const TableKeys> tables, std::span<const PartitionId> order) {
  MUSTER_CHECK(std::ranges::is_sorted(tables, {}, &TableKeys::dense));
  RowPlan plan;
  const auto partitions = static_cast<uint32_t>(order.size());
  // The rows are sorted by partition. Tables come one after the other, so within a partition the
  // rows of a table stay together.
  PooledVector<Cell> cells(partitions);
  size_t total = 0;
  for (const TableKeys& table : tables) total += table.keys.size();
  RowVector<uint32_t> partition_of(total);  // of the keys of all tables
  plan.parts.reserve(std::min<size_t>(partitions, total));
  plan.tables.reserve(tables.size());
  uint32_t* partition = partition_of.data();
  for (uint32_t t = 0; t < tables.size(); ++t) {
    const TableKeys& table = tables[t];
    plan.tables.push_back({table.table, table.dim, {}, table.dense});
    for (const uint64_t key : table.keys) {
      *partition = PartitionOf(table.table, key, partitions).value();
      Cell& cell = cells[*partition++];
      ++cell.key;
      cell.value += table.dim;
      cell.group += cell.Opens(t) ? 1 : 0;
    }
  }
  LayOut(order, &cells, &plan);
  RowVector<uint64_t> first_key(plan.groups.size());
  partition = partition_of.data();
  for (uint32_t t = 0; t < tables.size(); ++t) {
    const TableKeys& table = tables[t];
    RowVector<uint64_t>& offset = plan.tables[t].offset;
    offset.resize(table.keys.size());
    for (size_t i = 0; i < table.keys.size(); ++i) {
      Cell& cell = cells[*partition++];
      if (cell.Opens(t)) {
        first_key[cell.group] = cell.key;
        plan.groups[cell.group++] = {table.table, table.dim, 0, table.dense, t};
      }
      plan.keys[cell.key] = table.keys[i];
      plan.ids[cell.key++] = static_cast<uint32_t>(i);
      offset[i] = cell.value;
      cell.value += table.dim;
    }
  }
  for (size_t group = 0; group < plan.groups.size(); ++group) {
    const uint64_t end = group + 1 < plan.groups.size() ? first_key[group + 1] : total;
    plan.groups[group].keys = static_cast<uint32_t>(end - first_key[group]);
  }
  return plan;
}

void ScatterRows(const RowPlan& plan, size_t table, std::span<const float> rows,
                 std::span<float> values) {
  const TablePlaces& places = plan.tables[table];
  MUSTER_CHECK(rows.size() == places.offset.size() * places.dim);
  for (size_t i = 0; i < places.offset.size(); ++i) {
    std::memcpy(values.data() + places.offset[i], rows.data() + i * places.dim,
                size_t{places.dim} * sizeof(float));
  }
}

std::vector<PartitionId> SendingOrder(const PartitionMap& map) {
  std::map<ServerId, size_t> lanes;
  for (const ServerEndpoint& server : map.servers) lanes[server.id] = server.lanes.size();
  std::vector<std::tuple<uint32_t, size_t, uint32_t>> ranks;
  for (uint32_t p = 0; p < map.partitions.size(); ++p) {
    ServerId owner = map.partitions[p].owner;
    auto it = lanes.find(owner);
    size_t lane = it == lanes.end() || it->second == 0 ? 0 : p % it->second;
    ranks.emplace_back(owner.value(), lane, p);
  }
  std::sort(ranks.begin(), ranks.end());
  std::vector<PartitionId> order;
  order.reserve(ranks.size());
  for (const auto& rank : ranks) order.push_back(PartitionId(std::get<2>(rank)));
  return order;
}

}  // namespace muster::sdk
