#include "ps/export/group_export.h"

#include <cstring>
#include <filesystem>
#include <span>

#include "base/checksum/crc32c.h"
#include "base/file.h"
#include "proto/exported/exported_table.h"
#include "proto/exported/npy.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster::ps {
namespace {

using ::muster::testing::IsOk;
using ::muster::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

/// A checkpoint of three tensors in as many stripes as a test wants.
class GroupExportTest : public ::testing::Test {
 protected:
  GroupExportTest() {
    options_.job = "text";
    options_.seed = 7;
    options_.snapshot_directory = folder_.File("snapshots");
    options_.output_directory = folder_.File("out");
    options_.label = {LineageNumber(2), StepNumber(41)};
    options_.tensors = {{.name = "layer/weights", .dtype = GroupDtype::kFloat32, .elements = 3},
                        {.name = "updates", .dtype = GroupDtype::kInt64, .elements = 1},
                        {.name = "nothing", .dtype = GroupDtype::kFloat64, .elements = 0},
                        {.name = ".raw", .dtype = GroupDtype::kBytes, .elements = 5}};
    const float weights[] = {1.5F, -2, 1e-30F};
    const int64_t updates = 41;
    Append(weights, sizeof(weights));
    Append(&updates, sizeof(updates));
    Append("bytes", 5);
  }
  void Append(const void* data, size_t bytes) {
    state_.append(static_cast<const char*>(data), bytes);
  }
  void Store(uint32_t stripes) {
    std::filesystem::create_directories(folder_.File("snapshots/group"));
    options_.stripes.clear();
    size_t begin = 0;
    for (uint32_t i = 0; i < stripes; ++i) {
      const size_t end = state_.size() * (i + 1) / stripes;
      const std::string piece = state_.substr(begin, end - begin);
      begin = end;
      const std::string object = "group/r2-s41-a3-c0-" + std::to_string(i);
      ASSERT_THAT(WriteFileAtomically(folder_.File("snapshots/" + object), piece), IsOk());
      options_.stripes.push_back(
          {i, piece.size(), Crc32c(std::as_bytes(std::span(piece))), object});
    }
  }
  /// The array's data after the header, whose dtype is known to stand in it.
  std::string Data(const std::string& file, const std::string& dtype) {
    const absl::StatusOr<std::string> bytes = ReadFile(folder_.File("out/" + file), 1 << 20);
    EXPECT_THAT(bytes, IsOk());
    const size_t header = bytes->find('\n') + 1;
    EXPECT_THAT(bytes->substr(0, header), HasSubstr("'" + dtype + "'")) << file;
    return bytes->substr(header);
  }
  void ExpectNothingWritten() {
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
      EXPECT_EQ(entry.path().filename(), "snapshots");
    }
  }

  testing::TempDir folder_;
  GroupExportOptions options_;
  std::string state_;
};

TEST_F(GroupExportTest, TensorsAreTheSameWhateverTheStripes) {
  for (const uint32_t stripes : {1u, 2u, 7u}) {
    std::filesystem::remove_all(folder_.File("out"));
    Store(stripes);
    MUSTER_ASSERT_OK_AND_ASSIGN(const ExportSummary summary, WriteGroupExport(options_));
    EXPECT_EQ(summary.tables, 4u);
    EXPECT_EQ(Data("layer%2Fweights.npy", "<f4"), state_.substr(0, 12));
    EXPECT_EQ(Data("updates.npy", "<i8"), state_.substr(12, 8));
    EXPECT_EQ(Data("nothing.npy", "<f8"), "");
    EXPECT_EQ(Data("%2Eraw.npy", "|u1"), "bytes");
  }
  MUSTER_ASSERT_OK_AND_ASSIGN(const std::string json,
                              ReadFile(folder_.File("out/export.json"), 1 << 20));
  EXPECT_THAT(json, AllOf(HasSubstr("\"step\": 41"), HasSubstr("\"int64\""),
                          HasSubstr("\"layer/weights\"")));
}

TEST_F(GroupExportTest, ATableMayStartFromATensor) {
  options_.tensors[0].name = "weights";
  Store(2);
  ASSERT_THAT(WriteGroupExport(options_), IsOk());
  TableSpec table;
  table.id = TableId(1);
  table.name = "weights";
  table.shape = {3};
  table.dim = 3;
  table.warm_start_directory = folder_.File("out");
  MUSTER_ASSERT_OK_AND_ASSIGN(const ExportedTable read, ExportedTable::Open(table));
  EXPECT_EQ(std::vector<float>(read.values().begin(), read.values().end()),
            (std::vector<float>{1.5F, -2, 1e-30F}));
}

TEST_F(GroupExportTest, ADamagedStripeIsNeverASmallerModel) {
  Store(2);
  const std::string path = folder_.File("snapshots/" + options_.stripes[1].object);
  MUSTER_ASSERT_OK_AND_ASSIGN(std::string bytes, ReadFile(path, 1 << 20));
  bytes[0] ^= 1;
  ASSERT_THAT(WriteFileAtomically(path, bytes), IsOk());
  EXPECT_THAT(WriteGroupExport(options_).status(),
              StatusIs(absl::StatusCode::kDataLoss, AllOf(HasSubstr(path), HasSubstr("damaged"))));
  ASSERT_THAT(WriteFileAtomically(path, bytes.substr(1)), IsOk());
  EXPECT_THAT(WriteGroupExport(options_).status(),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("instead of")));
  std::filesystem::remove(path);
  EXPECT_THAT(WriteGroupExport(options_).status(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr(path)));
  ExpectNothingWritten();
}

TEST_F(GroupExportTest, ACheckpointOfAnotherModelIsRefused) {
  Store(2);
  options_.tensors[1].elements = 2;
  EXPECT_THAT(WriteGroupExport(options_).status(),
              StatusIs(absl::StatusCode::kDataLoss,
                       AllOf(HasSubstr("25 bytes"), HasSubstr("the model has 33"))));
  ExpectNothingWritten();
}

}  // namespace
}  // namespace muster::ps
