#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "ps/engine/initializer.h"
#include "ps/engine/partition.h"
#include "ps/export/export.h"
#include "ps/snapshot/snapshot.h"
#include "sharding/partition_of.h"
#include "tests/support/temp_dir.h"

namespace muster::ps {

/// A small trained job in a folder: a sparse and a dense table over a few partitions, snapshotted
/// as a base and a delta each.
class SampleJob {
 public:
  static constexpr uint32_t kPartitions = 5;
  static constexpr uint64_t kSeed = 7;

  SampleJob() {
    TableSpec sparse;
    sparse.id = TableId(1);
    sparse.name = "embedding";
    sparse.dim = 3;
    sparse.optimizer = AdagradSpec{.learning_rate = 1};
    sparse.initializer = {InitializerSpec::Kind::kUniform, -1, 1};
    TableSpec dense;
    dense.id = TableId(2);
    dense.name = "layer";
    dense.dim = 4;
    dense.shape = {5, 3};  // 15 elements: 4 blocks, the last with one float of padding
    dense.optimizer = SumSpec{};
    dense.initializer = {InitializerSpec::Kind::kNormal, 0, 1};
    options.job = "sample";
    options.seed = kSeed;
    options.snapshot_directory = dir_.File("snapshots");
    options.output_directory = dir_.File("out");
    options.tables = {sparse, dense};
    options.manifests.resize(kPartitions);
    std::filesystem::create_directory(options.snapshot_directory);
    for (uint32_t p = 0; p < kPartitions; ++p) {
      partitions.push_back(std::make_unique<Partition>(PartitionId(p), kSeed));
      for (const TableSpec& table : options.tables) partitions[p]->AddTable(table);
    }
    for (uint64_t key = 0; key < 40; ++key) Push(0, TableId(1), key * 1000003, 3);
    Push(0, TableId(2), 3, 4);
    SnapshotAll(1, SnapshotKind::kBase);
    for (uint64_t key = 30; key < 60; ++key) Push(1, TableId(1), key * 1000003, 3);
    Push(1, TableId(2), 1, 4);
    SnapshotAll(2, SnapshotKind::kDelta);
  }

  /// The row as its partition serves it.
  std::vector<float> Row(TableId table, uint64_t key, size_t dim) {
    std::vector<float> values(dim);
    EXPECT_TRUE(Of(table, key).Pull(table, std::span(&key, 1), values).ok());
    return values;
  }
  std::string Output(const std::string& name) { return options.output_directory + "/" + name; }

  /// The first element of the layer's block 1 becomes infinite.
  void Overflow() {
    const uint64_t block = 1;
    const std::vector<float> gradient{3e38f, 0, 0, 0};
    for (int i = 0; i < 2; ++i) {
      const Part part{{DatasetId(0), EpochIndex(0), ShardIndex(2)},
                      MinibatchIndex(minibatch_++),
                      LeaseToken(MasterIncarnation(1), 1),
                      0,
                      {{TableId(2), std::span(&block, 1), gradient}}};
      Of(TableId(2), block).Apply(part);
    }
    SnapshotAll(3, SnapshotKind::kDelta);
  }

  ExportOptions options;
  std::vector<std::unique_ptr<Partition>> partitions;

 private:
  Partition& Of(TableId table, uint64_t key) {
    return *partitions[PartitionOf(table, key, kPartitions).value()];
  }
  /// Pushes one row; a client pushes zeros to the padding of a tensor's last block.
  void Push(uint64_t shard, TableId table, uint64_t key, size_t dim) {
    std::vector<float> gradient(dim);
    for (size_t i = 0; i < dim; ++i) gradient[i] = static_cast<float>(key % 7 + i + 1);
    if (table == TableId(2) && key == 3) gradient[3] = 0;
    const Part part{{DatasetId(0), EpochIndex(0), ShardIndex(shard)},
                    MinibatchIndex(minibatch_++),
                    LeaseToken(MasterIncarnation(1), 1),
                    0,
                    {{table, std::span(&key, 1), gradient}}};
    EXPECT_EQ(Of(table, key).Apply(part).code, ApplyCode::kApplied);
  }
  void SnapshotAll(uint64_t number, SnapshotKind kind) {
    const SnapshotNumber snapshot(MasterIncarnation(1), number);
    for (uint32_t p = 0; p < kPartitions; ++p) {
      Manifest& manifest = options.manifests[p];
      const auto file =
          WriteSnapshot(OpenDirectoryStore(options.snapshot_directory).get(), PartitionId(p),
                        OwnerEpoch(1), snapshot, partitions[p]->Snapshot(snapshot, kind));
      ASSERT_TRUE(file.ok()) << file.status();
      manifest = ExtendChain(manifest, kind, snapshot, DoneSeq(10 + p), *file);
      partitions[p]->Accepted(snapshot);
    }
  }

  testing::TempDir dir_;
  uint32_t minibatch_ = 0;
};

}  // namespace muster::ps
