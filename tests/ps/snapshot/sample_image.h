#pragma once

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "ps/engine/partition.h"

namespace muster::ps {

/// An image with two tables, rows of the extreme keys, window entries and a floor.
inline PartitionImage SampleImage(SnapshotKind kind) {
  PartitionImage image;
  image.kind = kind;
  image.floor = LeaseToken(MasterIncarnation(2), 17);
  TableSpec sparse;
  sparse.id = TableId(1);
  sparse.name = "embedding";
  sparse.dim = 3;
  sparse.optimizer = AdagradSpec{.learning_rate = 0.5f};
  sparse.initializer = {InitializerSpec::Kind::kNormal, 0, 0.1f};
  TableSpec dense = sparse;
  dense.id = TableId(2);
  dense.name = "bias";
  dense.shape = {2, 3};
  dense.optimizer = SumSpec{};
  image.tables = {sparse, dense};
  image.window = {{{DatasetId(0), EpochIndex(1), ShardIndex(2)}, {0x5}},
                  {{DatasetId(1), EpochIndex(0), ShardIndex(UINT64_MAX)}, {0, 1}}};
  image.rows.push_back({TableId(1), 6, {UINT64_MAX, 0, 256, 255}, {}});
  for (int i = 0; i < 24; ++i) image.rows[0].rows.push_back(static_cast<float>(i) * 0.25f);
  image.rows.push_back({TableId(2), 3, {1}, {7, 8, 9}});
  return image;
}

/// Both hold the same state; the order of rows does not matter.
inline void ExpectSameState(const PartitionImage& a, const PartitionImage& b) {
  const auto rows = [](const PartitionImage& image) {
    std::map<std::pair<TableId, uint64_t>, std::vector<float>> all;
    for (const RowImage& table : image.rows) {
      for (size_t i = 0; i < table.keys.size(); ++i) {
        const auto begin =
            table.rows.begin() + static_cast<std::ptrdiff_t>(i * table.floats_per_row);
        all[{table.table, table.keys[i]}].assign(begin, begin + table.floats_per_row);
      }
    }
    return all;
  };
  EXPECT_EQ(a.kind, b.kind);
  EXPECT_EQ(a.tables, b.tables);
  EXPECT_EQ(a.window, b.window);
  EXPECT_EQ(a.floor, b.floor);
  EXPECT_EQ(rows(a), rows(b));
}

}  // namespace muster::ps
