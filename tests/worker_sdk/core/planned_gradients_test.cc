#include "worker_sdk/core/planned_gradients.h"

#include <limits>
#include <map>

#include "base/random.h"
#include "tests/support/status_matchers.h"

namespace muster::sdk {
namespace {

using ::testing::ElementsAre;

const std::vector<PartitionId> kOrder = {PartitionId(4), PartitionId(3), PartitionId(2),
                                         PartitionId(1), PartitionId(0)};

std::shared_ptr<const KeySet> Set(std::span<const uint64_t> keys) {
  return std::make_shared<const KeySet>(MakeKeySet(keys));
}

/// Of table `first`, `first + 1` and so on.
PlannedGradients PlanOf(uint32_t first, std::span<const uint32_t> dims,
                        const PlannedGradients::Keys& keys) {
  std::vector<TableKeys> tables;
  for (uint32_t t = 0; t < dims.size(); ++t) {
    tables.push_back({TableId(first + t), dims[t], keys[t]->unique});
  }
  auto pull = std::make_shared<RowBatch>();
  pull->plan = PlanRows(tables, kOrder);
  return {pull, keys};
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

/// The sums of pushes, in the plain way.
class Sums {
 public:
  void Add(uint32_t table, const KeySet& keys, std::span<const float> gradients) {
    const size_t dim = gradients.size() / keys.original.size();
    for (size_t i = 0; i < gradients.size(); ++i) {
      std::vector<float>& row = rows_[table][keys.original[i / dim]];
      row.resize(dim);
      row[i % dim] += gradients[i];
    }
  }
  void ExpectIn(PlannedGradients* planned) const {
    EXPECT_TRUE(planned->complete() && planned->finite());
    const std::vector<float> values(planned->values().begin(), planned->values().end());
    for (size_t i = 0; i < values.size(); ++i) {
      const auto [table, key, column] = planned->PlaceOf(i);
      EXPECT_EQ(values[i], rows_.at(table.value()).at(key)[column]);
    }
    const std::shared_ptr<const RowBatch> batch = planned->Take();
    for (const auto& [table, rows] : rows_) EXPECT_EQ(RowsOf(*batch, TableId(table)), rows);
  }

 private:
  std::map<uint32_t, std::map<uint64_t, std::vector<float>>> rows_;
};

std::vector<float> Random(Rng* rng, size_t count) {
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(rng->Below(9));
  return values;
}

std::shared_ptr<const KeySet> RandomSet(Rng* rng, uint64_t below) {
  std::vector<uint64_t> keys(1 + rng->Below(200));
  for (uint64_t& key : keys) key = rng->Below(below) * 0x100000001ull;
  return Set(keys);
}

TEST(PlannedGradientsTest, RandomPushesEqualAMap) {
  Rng rng(9);
  for (int round = 0; round < 20; ++round) {
    const uint32_t dims[] = {3, 8};
    PlannedGradients::Keys keys;
    for (int t = 0; t < 2; ++t) keys.push_back(RandomSet(&rng, round % 2 == 0 ? 60 : 1u << 30));
    PlannedGradients planned = PlanOf(1, dims, keys);
    Sums expected;
    for (const size_t t : {0, 1, 0}) {
      const std::vector<float> gradients = Random(&rng, keys[t]->original.size() * dims[t]);
      expected.Add(t + 1, *keys[t], gradients);
      planned.Add(t, gradients);
    }
    expected.ExpectIn(&planned);
  }
}

TEST(PlannedGradientsTest, SumsOfSeveralPlansAreMerged) {
  Rng rng(11);
  for (size_t round = 0; round < 50; ++round) {
    const uint32_t dims[] = {3, 8};
    std::vector<PlannedGradients> all;
    Sums expected;
    // Tables 1 and 2, then 2 and 3, of which one is not pushed, then 1 and 2 again.
    for (const uint32_t first : {1, 2, 1}) {
      PlannedGradients::Keys keys;
      for (int t = 0; t < 2; ++t) keys.push_back(RandomSet(&rng, 60));
      // Every table has the same width in all plans.
      const uint32_t widths[] = {dims[(first + 1) % 2], dims[first % 2]};
      all.push_back(PlanOf(first, widths, keys));
      for (size_t t = 0; t < 2; ++t) {
        if (first == 2 && t == round % 2) continue;
        const std::vector<float> gradients = Random(&rng, keys[t]->original.size() * widths[t]);
        expected.Add(static_cast<uint32_t>(first + t), *keys[t], gradients);
        all.back().Add(t, gradients);
      }
      EXPECT_EQ(all.back().complete(), first != 2);
    }
    PlannedGradients merged = PlannedGradients::Merge(all, kOrder);
    expected.ExpectIn(&merged);
  }
  PlannedGradients nothing = PlannedGradients::Merge({}, kOrder);
  EXPECT_TRUE(nothing.complete() && nothing.finite());
  EXPECT_TRUE(nothing.Take()->plan.parts.empty());
}

TEST(PlannedGradientsTest, TheLastBlockOfATensorIsPaddedWithZeros) {
  const uint32_t dims[] = {4};
  PlannedGradients planned = PlanOf(4, dims, {Set(std::vector<uint64_t>{0, 1})});
  planned.AddDense(0, std::vector<float>{1, 2, 3, 4, 5, 6});
  planned.AddDense(0, std::vector<float>{1, 1, 1, 1, 1, 1});
  const auto rows = RowsOf(*planned.Take(), TableId(4));
  EXPECT_THAT(rows.at(0), ElementsAre(2, 3, 4, 5));
  EXPECT_THAT(rows.at(1), ElementsAre(6, 7, 0, 0));
}

TEST(PlannedGradientsTest, WhatIsNotFiniteIsRemembered) {
  const uint32_t dims[] = {2};
  PlannedGradients planned = PlanOf(1, dims, {Set(std::vector<uint64_t>{1, 2})});
  planned.Add(0, std::vector<float>{1, std::numeric_limits<float>::infinity(), 1, 1});
  planned.Add(0, std::vector<float>{1, 1, 1, 1});
  EXPECT_FALSE(planned.finite());
  EXPECT_FALSE(PlannedGradients::Merge(std::span(&planned, 1), kOrder).finite());
}

}  // namespace
}  // namespace muster::sdk
