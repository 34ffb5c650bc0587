#include "worker_sdk/core/planned_gradients.h"

#include <limits>
#include <map>

#include "base/random.h"
#include "tests/support/status_matchers.h"

namespace muster::sdk {
namespace {

using ::testing::ElementsAre;

constexpr uint32_t kFewPartitions = 5;

std::shared_ptr<const RowBatch> PullOf(std::span<const TableKeys> tables) {
  std::vector<PartitionId> order;
  for (uint32_t p = 0; p < kFewPartitions; ++p)
    order.push_back(PartitionId(kFewPartitions - 1 - p));
  auto pull = std::make_shared<RowBatch>();
  pull->plan = PlanRows(tables, order);
  return pull;
}

/// {key: row} of one table as the parts of a batch have them.
std::map<uint64_t, std::vector<float>> RowsOf(const RowBatch& batch, TableId table) {
  std::map<uint64_t, std::vector<float>> rows;
  for (const PlanPart& part : batch.plan.parts) {
    uint64_t key = part.key_begin, value = part.value_begin;
    for (uint32_t g = 0; g < part.group_count; ++g) {
      const PlanGroup& group = batch.plan.groups[part.group_begin + g];
      for (uint32_t k = 0; k < group.keys; ++k, ++key, value += group.dim) {
        const auto begin = batch.values.begin() + static_cast<std::ptrdiff_t>(value);
        if (group.table == table) rows[batch.plan.keys[key]].assign(begin, begin + group.dim);
      }
    }
  }
  return rows;
}

TEST(PlannedGradientsTest, RandomPushesEqualAMap) {
  Rng rng(9);
  for (int round = 0; round < 20; ++round) {
    const uint32_t dims[] = {3, 8};
    std::vector<KeySet> keys;
    std::vector<TableKeys> tables;
    for (uint32_t t = 0; t < 2; ++t) {
      std::vector<uint64_t> given(1 + rng.Below(200));
      for (uint64_t& key : given) key = rng.Below(round % 2 == 0 ? 60 : 1u << 30);
      keys.push_back(MakeKeySet(given));
    }
    for (uint32_t t = 0; t < 2; ++t) tables.push_back({TableId(t + 1), dims[t], keys[t].unique});
    PlannedGradients planned(PullOf(tables));
    std::map<uint64_t, std::vector<float>> expected[2];
    for (int call = 0; call < 3; ++call) {
      const uint32_t t = call == 1 ? 1 : 0;  // the first table twice
      std::vector<float> gradients(keys[t].original.size() * dims[t]);
      for (float& value : gradients) value = static_cast<float>(rng.Below(9));
      for (size_t i = 0; i < keys[t].original.size(); ++i) {
        std::vector<float>& row = expected[t][keys[t].original[i]];
        row.resize(dims[t]);
        for (size_t c = 0; c < dims[t]; ++c) row[c] += gradients[i * dims[t] + c];
      }
      EXPECT_EQ(planned.complete(), call == 2);
      planned.Add(t, keys[t], gradients);
    }
    EXPECT_TRUE(planned.complete() && planned.finite());
    for (size_t i = 0; i < keys[0].unique.size(); ++i) {
      const std::span<const float> row = planned.Row(0, i);
      EXPECT_EQ(std::vector<float>(row.begin(), row.end()), expected[0][keys[0].unique[i]]);
    }
    const std::shared_ptr<const RowBatch> batch = planned.Take();
    EXPECT_EQ(RowsOf(*batch, TableId(1)), expected[0]);
    EXPECT_EQ(RowsOf(*batch, TableId(2)), expected[1]);
  }
}

TEST(PlannedGradientsTest, TheLastBlockOfATensorIsPaddedWithZeros) {
  const std::vector<uint64_t> blocks = {0, 1};
  const std::vector<TableKeys> tables = {{TableId(4), 4, blocks}};
  PlannedGradients planned(PullOf(tables));
  planned.AddDense(0, std::vector<float>{1, 2, 3, 4, 5, 6});
  planned.AddDense(0, std::vector<float>{1, 1, 1, 1, 1, 1});
  const auto rows = RowsOf(*planned.Take(), TableId(4));
  EXPECT_THAT(rows.at(0), ElementsAre(2, 3, 4, 5));
  EXPECT_THAT(rows.at(1), ElementsAre(6, 7, 0, 0));
}

TEST(PlannedGradientsTest, WhatIsNotFiniteIsRemembered) {
  const std::vector<uint64_t> keys = {1, 2};
  const std::vector<TableKeys> tables = {{TableId(1), 2, keys}};
  PlannedGradients planned(PullOf(tables));
  planned.Add(0, MakeKeySet(keys),
              std::vector<float>{1, std::numeric_limits<float>::infinity(), 1, 1});
  planned.Add(0, MakeKeySet(keys), std::vector<float>{1, 1, 1, 1});
  EXPECT_FALSE(planned.finite());
}

}  // namespace
}  // namespace muster::sdk
