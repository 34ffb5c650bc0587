#include <fstream>

#include "base/digest/sha256.h"
#include "base/file.h"
#include "proto/exported/sha256.h"
#include "ps/export/export.h"
#include "sharding/partition_of.h"
#include "tests/ps/export/sample_job.h"
#include "tests/support/status_matchers.h"

namespace muster::ps {
namespace {

using ::muster::testing::IsOk;
using ::muster::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

class WarmStartTest : public ::testing::Test {
 protected:
  WarmStartTest() {
    EXPECT_THAT(WriteExport(job_.options), IsOk());
    for (TableSpec table : job_.options.tables) {
      table.id = TableId(table.id.value() + 10);  // another job numbers its tables its own way
      table.warm_start_directory = job_.options.output_directory;
      tables_.push_back(table);
    }
  }
  SampleJob job_;
  std::vector<TableSpec> tables_;
};

TEST_F(WarmStartTest, EveryRowComesBackInItsPartition) {
  constexpr uint32_t kOtherPartitions = 3;
  uint64_t rows = 0;
  for (const TableSpec& table : tables_) {
    MUSTER_ASSERT_OK_AND_ASSIGN(const std::shared_ptr<const WarmStartSource> source,
                                LoadWarmStart(table, kOtherPartitions));
    for (uint32_t p = 0; p < kOtherPartitions; ++p) {
      source->ForEachRow(PartitionId(p), [&](uint64_t key, std::span<const float> values) {
        EXPECT_EQ(PartitionOf(table.id, key, kOtherPartitions), PartitionId(p));
        EXPECT_EQ(std::vector<float>(values.begin(), values.end()),
                  job_.Row(TableId(table.id.value() - 10), key, table.dim));
        ++rows;
      });
    }
  }
  EXPECT_EQ(rows, 64u);  // 60 keys, and all 4 blocks of the tensor
}

TEST_F(WarmStartTest, AnotherExportThanThePinnedOneIsRefused) {
  TableSpec table = tables_[0];
  MUSTER_ASSERT_OK_AND_ASSIGN(table.warm_start_hash,
                              Sha256OfFile(table.warm_start_directory + "/SHA256SUMS"));
  EXPECT_THAT(LoadWarmStart(table, 3), IsOk());
  table.warm_start_hash[0] = table.warm_start_hash[0] == '0' ? '1' : '0';
  EXPECT_THAT(LoadWarmStart(table, 3),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("another export"), HasSubstr("embedding"))));
}

TEST_F(WarmStartTest, FilesThatChangedAreRefused) {
  std::fstream file(job_.Output("embedding.values.npy"),
                    std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(-1, std::ios::end).put('x');
  file.close();
  EXPECT_THAT(LoadWarmStart(tables_[0], 3),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("embedding.values.npy")));
  EXPECT_THAT(LoadWarmStart(tables_[1], 3), IsOk());
}

TEST_F(WarmStartTest, TablesThatDoNotFitAreRefused) {
  TableSpec table = tables_[0];
  table.dim = 4;
  EXPECT_THAT(LoadWarmStart(table, 3),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("(60, 3)")));
  table = tables_[1];
  table.shape = {3, 5};
  EXPECT_THAT(LoadWarmStart(table, 3),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("(3, 5)")));
  table.dim = 5;  // another block width is no other tensor
  table.shape = {5, 3};
  EXPECT_THAT(LoadWarmStart(table, 3), IsOk());
  table.name = "other";
  EXPECT_THAT(LoadWarmStart(table, 3), StatusIs(absl::StatusCode::kFailedPrecondition,
                                                AllOf(HasSubstr("'other'"), HasSubstr("layer"))));
  table.warm_start_directory += "/missing";
  EXPECT_THAT(LoadWarmStart(table, 3),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("not a folder written by")));
}

TEST_F(WarmStartTest, KeysOutOfOrderAreRefusedEvenWithTheRightSum) {
  MUSTER_ASSERT_OK_AND_ASSIGN(std::string keys, ReadFile(job_.Output("embedding.keys.npy"), 10000));
  for (size_t i = 1; i <= 8; ++i) keys[keys.size() - i] = 0;  // the last key
  ASSERT_THAT(WriteFileAtomically(job_.Output("embedding.keys.npy"), keys), IsOk());
  MUSTER_ASSERT_OK_AND_ASSIGN(const std::string text, ReadFile(job_.Output("SHA256SUMS"), 10000));
  MUSTER_ASSERT_OK_AND_ASSIGN(Sha256Sums sums, ParseSums(text));
  sums["embedding.keys.npy"] = Sha256Hex(keys);
  ASSERT_THAT(WriteFileAtomically(job_.Output("SHA256SUMS"), FormatSums(sums)), IsOk());
  EXPECT_THAT(LoadWarmStart(tables_[0], 3),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("not ascending")));
}

}  // namespace
}  // namespace muster::ps
