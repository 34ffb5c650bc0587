#include "worker_sdk/core/row_plan.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <tuple>

#include "base/check.h"
#include "sharding/partition_of.h"

namespace muster::sdk {

RowPlan PlanRows(std::span<const TableKeys> tables, std::span<const PartitionId> order) {
  MUSTER_CHECK(std::ranges::is_sorted(tables, {}, &TableKeys::dense));
  RowPlan plan;
  uint32_t partitions = static_cast<uint32_t>(order.size());
  size_t cells = size_t{partitions} * tables.size();
  // counts[partition * tables + table], then the next free key of that group.
  PooledVector<uint64_t> counts(cells, 0);
  size_t total = 0;
  plan.tables.reserve(tables.size());
  for (size_t t = 0; t < tables.size(); ++t) {
    plan.tables.push_back({tables[t].table, tables[t].dim, {}, {}, tables[t].dense});
    TablePlaces& places = plan.tables.back();
    places.part.resize(tables[t].keys.size());
    places.offset.resize(tables[t].keys.size());
    total += tables[t].keys.size();
    for (size_t i = 0; i < tables[t].keys.size(); ++i) {
      uint32_t partition = PartitionOf(tables[t].table, tables[t].keys[i], partitions).value();
      places.part[i] = partition;  // until parts are numbered
      ++counts[partition * tables.size() + t];
    }
  }
  plan.keys.resize(total);
  plan.ids.resize(total);
  plan.groups.reserve(std::min(cells, total));
  plan.parts.reserve(std::min<size_t>(partitions, total));
  PooledVector<uint64_t> next_key(cells), next_value(cells);
  PooledVector<uint32_t> part_of(partitions, 0);
  uint64_t key = 0, value = 0;
  for (PartitionId partition : order) {
    PlanPart part{partition, key, 0, value, 0, static_cast<uint32_t>(plan.groups.size()), 0};
    for (size_t t = 0; t < tables.size(); ++t) {
      size_t cell = partition.value() * tables.size() + t;
      if (counts[cell] == 0) continue;
      next_key[cell] = key;
      next_value[cell] = value;
      plan.groups.push_back(
          {tables[t].table, tables[t].dim, static_cast<uint32_t>(counts[cell]), tables[t].dense});
      key += counts[cell];
      value += counts[cell] * tables[t].dim;
    }
    part.key_count = key - part.key_begin;
    if (part.key_count == 0) continue;
    part.value_count = value - part.value_begin;
    part.group_count = static_cast<uint32_t>(plan.groups.size()) - part.group_begin;
    part_of[partition.value()] = static_cast<uint32_t>(plan.parts.size());
    plan.parts.push_back(part);
  }
  plan.value_count = value;
  for (size_t t = 0; t < tables.size(); ++t) {
    TablePlaces& places = plan.tables[t];
    for (size_t i = 0; i < tables[t].keys.size(); ++i) {
      uint32_t partition = places.part[i];
      size_t cell = partition * tables.size() + t;
      plan.keys[next_key[cell]] = tables[t].keys[i];
      plan.ids[next_key[cell]++] = static_cast<uint32_t>(i);
      places.part[i] = part_of[partition];
      places.offset[i] = next_value[cell];
      next_value[cell] += tables[t].dim;
    }
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
