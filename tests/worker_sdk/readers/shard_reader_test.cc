#include "worker_sdk/readers/shard_reader.h"

#include <cstring>
#include <fstream>

#include "sharding/shard_order.h"
#include "sharding/source_pin.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster::sdk {
namespace {

using muster::testing::IsOk;
using muster::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ShardReaderTest : public ::testing::Test {
 protected:
  void Write(const std::string& contents) {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << contents;
  }
  /// Work over bytes [begin, end) of `contents`, pinned to it.
  ShardWork WorkOn(const std::string& contents, uint64_t begin, uint64_t end, uint32_t records) {
    ShardWork work;
    work.path = path_;
    work.source_bytes = contents.size();
    work.source_hash = PinSource(contents.size(), [&](uint64_t offset, std::span<char> buffer) {
                         size_t n = std::min(buffer.size(), contents.size() - offset);
                         std::memcpy(buffer.data(), contents.data() + offset, n);
                         return absl::StatusOr<size_t>(n);
                       })->hash;
    work.byte_begin = begin;
    work.byte_end = end;
    work.record_count = records;
    work.minibatch_size = 2;
    return work;
  }
  muster::testing::TempDir dir_;
  std::string path_ = dir_.File("data.csv");
  ShardReader reader_;
};

TEST_F(ShardReaderTest, ReadsARangeAndStripsLineEnds) {
  std::string contents = "h1,h2\r\na\r\n\nlast";
  Write(contents);
  ShardWork work = WorkOn(contents, 7, contents.size(), 3);
  work.has_header = true;
  MUSTER_ASSERT_OK_AND_ASSIGN(ShardRecords records, reader_.Read(work));
  EXPECT_THAT(records.records, ElementsAre("a", "", "last"));
  EXPECT_EQ(records.header, "h1,h2");
  EXPECT_EQ(ShardReader::LocationOf(work, records, 2), path_ + ":4");
  EXPECT_THAT(records.minibatches, ElementsAre(0, 2, 3));
}

TEST_F(ShardReaderTest, RecordsRunInTheOrderOfTheSeed) {
  std::string contents = "0\n1\n2\n3\n4\n5\n6\n7\n";
  Write(contents);
  ShardWork work = WorkOn(contents, 0, contents.size(), 8);
  work.shuffle_seed = 99;
  work.first_record = 10;
  MUSTER_ASSERT_OK_AND_ASSIGN(ShardRecords records, reader_.Read(work));
  std::vector<uint32_t> order = RecordOrder(99, 8);
  ASSERT_EQ(records.records.size(), 8u);
  for (size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(records.records[i], std::to_string(order[i]));
    EXPECT_EQ(ShardReader::LocationOf(work, records, i),
              path_ + ":" + std::to_string(10 + order[i] + 1));
  }
}

TEST_F(ShardReaderTest, AChangedFileIsRefusedWithItsName) {
  std::string contents = "aa\nbb\n";
  Write(contents);
  ShardWork work = WorkOn(contents, 0, 6, 2);
  EXPECT_THAT(reader_.Read(work), IsOk());
  Write("aa\nbb\ncc\n");
  EXPECT_THAT(reader_.Read(work),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("9 bytes")));
  Write("aa\nbc\n");
  EXPECT_THAT(ShardReader().Read(work),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr(path_)));
}

TEST_F(ShardReaderTest, AnotherNumberOfRecordsIsRefused) {
  std::string contents = "aa\nbb\n";
  Write(contents);
  EXPECT_THAT(reader_.Read(WorkOn(contents, 0, 6, 3)),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("hold 3 records")));
  EXPECT_THAT(reader_.Read(WorkOn(contents, 0, 6, 1)),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("more than 1")));
}

TEST_F(ShardReaderTest, AMissingFileAndABadRangeAreNamed) {
  ShardWork work = WorkOn("aa\n", 0, 3, 1);
  EXPECT_THAT(reader_.Read(work), StatusIs(absl::StatusCode::kNotFound, HasSubstr(path_)));
  work.byte_end = 4;
  EXPECT_THAT(reader_.Read(work),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("[0, 4)")));
}

}  // namespace
}  // namespace muster::sdk
