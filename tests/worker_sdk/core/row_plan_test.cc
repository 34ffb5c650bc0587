#include "worker_sdk/core/row_plan.h"

#include <set>

#include "sharding/partition_of.h"
#include "tests/support/status_matchers.h"

namespace muster::sdk {
namespace {

using ::testing::ElementsAre;

std::vector<PartitionId> Order(std::initializer_list<uint32_t> ids) {
  std::vector<PartitionId> order;
  for (uint32_t id : ids) order.push_back(PartitionId(id));
  return order;
}

TEST(RowPlanTest, EveryKeyIsInThePartOfItsPartitionWithItsRow) {
  std::vector<uint64_t> a, b;
  for (uint64_t i = 0; i < 100; ++i) a.push_back(i * i), b.push_back(i + 1000);
  std::vector<TableKeys> tables = {{TableId(1), 2, a}, {TableId(5), 3, b}};
  RowPlan plan = PlanRows(tables, Order({3, 1, 0, 2}));

  ASSERT_EQ(plan.parts.size(), 4u);
  EXPECT_EQ(plan.parts[0].partition, PartitionId(3));
  EXPECT_EQ(plan.parts[3].partition, PartitionId(2));
  EXPECT_EQ(plan.keys.size(), 200u);
  EXPECT_EQ(plan.value_count, 100u * 2 + 100u * 3);

  std::vector<float> values(plan.value_count, -1);
  std::vector<float> rows_a, rows_b;
  for (uint64_t key : a) rows_a.insert(rows_a.end(), 2, static_cast<float>(key));
  for (uint64_t key : b) rows_b.insert(rows_b.end(), 3, static_cast<float>(key));
  ScatterRows(plan, 0, rows_a, values);
  ScatterRows(plan, 1, rows_b, values);

  uint64_t key = 0, value = 0;
  std::multiset<uint64_t> seen;
  for (const PlanPart& part : plan.parts) {
    EXPECT_EQ(part.key_begin, key);
    EXPECT_EQ(part.value_begin, value);
    for (uint32_t g = 0; g < part.group_count; ++g) {
      const PlanGroup& group = plan.groups[part.group_begin + g];
      for (uint32_t k = 0; k < group.keys; ++k, ++key) {
        EXPECT_EQ(PartitionOf(group.table, plan.keys[key], 4), part.partition);
        EXPECT_EQ((group.table == TableId(1) ? a : b)[plan.ids[key]], plan.keys[key]);
        seen.insert(plan.keys[key]);
        for (uint32_t c = 0; c < group.dim; ++c) {
          EXPECT_EQ(values[value++], static_cast<float>(plan.keys[key]));
        }
      }
    }
    EXPECT_EQ(part.key_count, key - part.key_begin);
    EXPECT_EQ(part.value_count, value - part.value_begin);
  }
  EXPECT_EQ(seen.size(), 200u);
}

TEST(RowPlanTest, GroupsOfManyTablesAreInTheOrderOfTheTables) {
  std::vector<std::vector<uint64_t>> keys(50);
  for (size_t t = 0; t < keys.size(); ++t) {
    for (uint64_t key = 0; key < t % 4; ++key) keys[t].push_back(key);  // some have none
  }
  std::vector<TableKeys> tables;
  for (uint32_t t = 0; t < keys.size(); ++t) {
    tables.push_back({TableId(t + 1), t % 3 + 1, keys[t], t >= 40});
  }
  const RowPlan plan = PlanRows(tables, Order({2, 0, 1}));
  uint32_t group_begin = 0;
  uint64_t keys_of_parts = 0;
  for (const PlanPart& part : plan.parts) {
    EXPECT_EQ(part.group_begin, group_begin);
    group_begin += part.group_count;
    uint64_t of_groups = 0, floats = 0;
    for (uint32_t g = part.group_begin; g < group_begin; ++g) {
      const PlanGroup& group = plan.groups[g];
      EXPECT_GT(group.keys, 0u);
      EXPECT_EQ(group.table, tables[group.number].table);
      EXPECT_EQ(group.dim, tables[group.number].dim);
      EXPECT_EQ(group.dense, group.number >= 40);
      if (g > part.group_begin) {
        EXPECT_GT(group.number, plan.groups[g - 1].number);
      }
      of_groups += group.keys;
      floats += group.floats();
    }
    EXPECT_EQ(part.key_count, of_groups);
    EXPECT_EQ(part.value_count, floats);
    keys_of_parts += of_groups;
  }
  EXPECT_EQ(plan.groups.size(), group_begin);
  EXPECT_EQ(plan.keys.size(), keys_of_parts);
}

TEST(RowPlanTest, PartitionsWithoutRowsHaveNoPart) {
  std::vector<uint64_t> keys = {1};
  std::vector<TableKeys> tables = {{TableId(1), 4, keys}, {TableId(2), 4, {}}};
  RowPlan plan = PlanRows(tables, Order({0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(plan.parts.size(), 1u);
  EXPECT_EQ(plan.groups.size(), 1u);
  EXPECT_TRUE(PlanRows({}, Order({0, 1})).parts.empty());
}

std::vector<uint32_t> Sent(const PartitionMap& map) {
  std::vector<uint32_t> ids;
  for (const PartitionId partition : SendingOrder(map)) ids.push_back(partition.value());
  return ids;
}

TEST(SendingOrderTest, PartsForOneLaneLieTogether) {
  PartitionMap map;
  map.servers = {{ServerId(0), {}, "ps-0", {{"a"}, {"b"}}}, {ServerId(1), {}, "ps-1", {{"c"}}}};
  map.partitions.resize(7);
  for (const uint32_t p : {1u, 4u}) map.partitions[p].owner = ServerId(1);
  // Lane 0 of server 0 serves the even ones, lane 1 the odd ones.
  EXPECT_THAT(Sent(map), ElementsAre(0, 2, 6, 3, 5, 1, 4));
}

TEST(SendingOrderTest, WithoutLanesPartitionsKeepTheirOrder) {
  PartitionMap map;
  map.partitions.resize(3);
  EXPECT_THAT(Sent(map), ElementsAre(0, 1, 2)) << "an owner that is not in the map";
  map.servers = {{ServerId(0), {}, "ps-0", {}}};
  EXPECT_THAT(Sent(map), ElementsAre(0, 1, 2));
}

}  // namespace
}  // namespace muster::sdk
