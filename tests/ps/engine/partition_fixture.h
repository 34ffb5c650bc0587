#pragma once

#include <vector>

#include "ps/engine/partition.h"
#include "tests/support/status_matchers.h"

/// One partition with a sparse and a dense table that count.
namespace muster::ps {
namespace partition_test {

using ::muster::testing::IsOk;
using ::muster::testing::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

inline constexpr TableId kSparse(1);
inline constexpr TableId kDense(2);

inline TableSpec SparseSum() {
  TableSpec spec;
  spec.id = kSparse;
  spec.name = "counts";
  spec.dim = 2;
  spec.optimizer = SumSpec{};
  return spec;
}
/// A tensor of 5 elements in 3 blocks of 2: the last block's second float is padding.
inline TableSpec DenseSum() {
  TableSpec spec = SparseSum();
  spec.id = kDense;
  spec.name = "bias";
  spec.shape = {5};
  spec.initializer = {InitializerSpec::Kind::kConstant, 7, 0};
  return spec;
}

inline ShardId Shard(uint64_t index) {
  return {DatasetId(0), EpochIndex(0), ShardIndex(index)};
}
inline LeaseToken Token(uint64_t count) {
  return {MasterIncarnation(1), count};
}
inline SnapshotNumber Number(uint64_t count) {
  return {MasterIncarnation(1), count};
}

inline ForgetState Forgetting(uint64_t shard, LeaseToken floor) {
  ForgetState state;
  state.floor = floor;
  state.shards[{DatasetId(0), EpochIndex(0)}].Add(shard);
  return state;
}

class PartitionTest : public ::testing::Test {
 protected:
  PartitionTest() {
    partition_.AddTable(SparseSum());
    partition_.AddTable(DenseSum());
  }

  ApplyResult Push(uint64_t shard, uint32_t minibatch, LeaseToken token, std::vector<uint64_t> keys,
                   std::vector<float> gradients, TableId table = kSparse) {
    Part part{Shard(shard), MinibatchIndex(minibatch), token, 0, {{table, keys, gradients}}};
    return partition_.Apply(part);
  }
  std::vector<float> Pull(uint64_t key, TableId table = kSparse) {
    return Pull(partition_, key, table);
  }
  static std::vector<float> Pull(const Partition& partition, uint64_t key,
                                 TableId table = kSparse) {
    std::vector<float> values(2, -1);
    EXPECT_THAT(partition.Pull(table, std::span(&key, 1), values), IsOk());
    return values;
  }

  Partition partition_{PartitionId(3), 7};
};

inline std::vector<uint64_t> KeysOf(const PartitionImage& image, TableId table = kSparse) {
  for (const RowImage& rows : image.rows) {
    if (rows.table == table) return rows.keys;
  }
  return {};
}

}  // namespace partition_test
}  // namespace muster::ps
