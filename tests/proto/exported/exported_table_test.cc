#include "proto/exported/exported_table.h"

#include <limits>

#include "proto/exported/sha256.h"
#include "tests/proto/exported/sample_export.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::IsOk;
using testing::NpyFile;
using testing::SampleExport;
using testing::StatusIs;
using testing::WriteSampleExport;

class ExportedTableTest : public ::testing::Test {
 protected:
  ExportedTableTest() {
    EXPECT_THAT(WriteSampleExport(dir_.path(), files_), IsOk());
    table_.name = "t";
    table_.dim = 2;
    table_.warm_start_directory = dir_.path();
  }
  absl::Status Open() { return ExportedTable::Open(table_).status(); }

  testing::TempDir dir_;
  std::map<std::string, std::string> files_ = SampleExport();
  TableSpec table_;
};

TEST_F(ExportedTableTest, SparseAndDenseTablesAreRead) {
  MUSTER_ASSERT_OK_AND_ASSIGN(const ExportedTable sparse, ExportedTable::Open(table_));
  EXPECT_THAT(sparse.keys(), ElementsAre(4, 9));
  EXPECT_THAT(sparse.values(), ElementsAre(1, 2, 3, 4));
  MUSTER_ASSERT_OK_AND_ASSIGN(table_.warm_start_hash, Sha256OfFile(dir_.path() + "/SHA256SUMS"));
  EXPECT_EQ(sparse.hash(), table_.warm_start_hash);
  table_.name = "w";
  table_.shape = {3};
  MUSTER_ASSERT_OK_AND_ASSIGN(const ExportedTable dense, ExportedTable::Open(table_));
  EXPECT_THAT(dense.keys(), IsEmpty());
  EXPECT_THAT(dense.values(), ElementsAre(5, 6, 7));
}

TEST_F(ExportedTableTest, WhatWaitingDoesNotMend) {
  TableSpec good = table_;
  table_.dim = 3;
  EXPECT_THAT(Open(), StatusIs(absl::StatusCode::kFailedPrecondition,
                               AllOf(HasSubstr("t.values.npy"), HasSubstr("(2, 2)"),
                                     HasSubstr("(0, 3), 0 = any"))));
  table_ = good;
  table_.name = "u";
  EXPECT_THAT(Open(), StatusIs(absl::StatusCode::kFailedPrecondition,
                               AllOf(HasSubstr("no sparse table 'u'"), HasSubstr("w.npy"))));
  table_ = good;
  table_.warm_start_hash = std::string(64, '0');
  EXPECT_THAT(Open(), StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("another export")));
  table_ = good;
  ASSERT_THAT(WriteFileAtomically(dir_.File("t.keys.npy"), files_["t.keys.npy"] + "x"), IsOk());
  EXPECT_THAT(Open(), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("t.keys.npy")));
  files_["t.keys.npy"] = NpyFile<uint64_t>({kNpyUint64, {2}}, {9, 4});
  ASSERT_THAT(WriteSampleExport(dir_.path(), files_), IsOk());
  EXPECT_THAT(Open(), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("not ascending")));
  files_["t.values.npy"] =
      NpyFile<float>({kNpyFloat32, {2, 2}}, {1, std::numeric_limits<float>::infinity(), 3, 4});
  ASSERT_THAT(WriteSampleExport(dir_.path(), files_), IsOk());
  EXPECT_THAT(Open(), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("value 1 is inf")));
}

TEST_F(ExportedTableTest, RowsAreAsManyAsKeys) {
  files_["t.keys.npy"] = NpyFile<uint64_t>({kNpyUint64, {3}}, {4, 9, 11});
  ASSERT_THAT(WriteSampleExport(dir_.path(), files_), IsOk());
  EXPECT_THAT(Open(), StatusIs(absl::StatusCode::kInvalidArgument,
                               AllOf(HasSubstr("its 3 keys"), HasSubstr("not as many"))));
  files_["t.values.npy"] = NpyFile<float>({kNpyFloat32, {3, 2}}, {1, 2, 3, 4, 5, 6});
  ASSERT_THAT(WriteSampleExport(dir_.path(), files_), IsOk());
  EXPECT_THAT(Open(), IsOk());
  files_["t.values.npy"] = NpyFile<float>({kNpyFloat32, {6}}, {1, 2, 3, 4, 5, 6});
  ASSERT_THAT(WriteSampleExport(dir_.path(), files_), IsOk());
  EXPECT_THAT(Open(), StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("shape (6)")));
}

TEST_F(ExportedTableTest, ATableHasAllOfItsFiles) {
  for (const char* file : {"t.keys.npy", "t.values.npy"}) {
    std::map<std::string, std::string> files = SampleExport();
    files.erase(file);
    ASSERT_THAT(WriteSampleExport(dir_.path(), files), IsOk());
    EXPECT_THAT(Open(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                 HasSubstr("has no sparse table 't'")))
        << "without " << file;
  }
  table_.name = "t";
  table_.shape = {3};
  EXPECT_THAT(Open(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("has no dense table 't'")));
}

TEST_F(ExportedTableTest, AFolderThatIsNotThereMayCome) {
  table_.warm_start_directory += "/missing";
  EXPECT_THAT(Open(), StatusIs(absl::StatusCode::kNotFound, HasSubstr("not a folder written by")));
}

}  // namespace
}  // namespace muster
