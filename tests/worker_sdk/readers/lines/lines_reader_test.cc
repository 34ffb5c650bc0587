#include "worker_sdk/readers/lines/lines_reader.h"

#include <sys/resource.h>

#include <filesystem>
#include <fstream>

#include "sharding/lines/source_pin.h"
#include "sharding/shard_order.h"
#include "tests/support/descriptor_limit.h"
#include "tests/support/sanitizers.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"
#include "tests/worker_sdk/readers/work_on_file.h"

namespace muster::sdk {
namespace {

using muster::testing::DescriptorLimit;
using muster::testing::IsOk;
using muster::testing::kSanitized;
using muster::testing::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const KeepWaiting kNoWaiting;

class LinesReaderTest : public ::testing::Test {
 protected:
  void Write(const std::string& contents) {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << contents;
  }
  /// Work over bytes [begin, end) of the file, which holds `contents`.
  ShardWork WorkOn(const std::string& contents, uint64_t begin, uint64_t end, uint32_t records) {
    Write(contents);
    ShardWork work = muster::testing::WorkOnFile(path_, 2);
    work.record_count = work.runs[0].record_count = records;
    work.minibatch_count = (records + 1) / 2;
    work.runs[0].byte_begin = begin;
    work.runs[0].byte_end = end;
    return work;
  }
  /// Work over the whole of a new file of one record.
  ShardWork SmallFile(int number) {
    path_ = dir_.File("small-" + std::to_string(number));
    Write("x\n");
    return WorkOn("x\n", 0, 2, 1);
  }

  muster::testing::TempDir dir_;
  std::string path_ = dir_.File("data.csv");
  LinesReader reader_;
};

TEST_F(LinesReaderTest, ReadsARangeAndStripsLineEnds) {
  std::string contents = "h1,h2\r\na\r\n\nlast";
  Write(contents);
  ShardWork work = WorkOn(contents, 7, contents.size(), 3);
  work.has_header = true;
  MUSTER_ASSERT_OK_AND_ASSIGN(ShardRecords records, reader_.Read(work, kNoWaiting));
  EXPECT_THAT(records.records, ElementsAre("a", "", "last"));
  EXPECT_EQ(records.header, "h1,h2");
  EXPECT_EQ(reader_.LocationOf(work, records, 2), path_ + ":4");
  EXPECT_THAT(records.minibatches, ElementsAre(0, 1, 3));
}

TEST_F(LinesReaderTest, TheMarkOfUtf8IsNoPartOfTheFirstRecord) {
  const std::string mark = "\xef\xbb\xbf";
  const std::string contents = mark + "1 0.5\n" + mark + "2\n";
  Write(contents);
  MUSTER_ASSERT_OK_AND_ASSIGN(ShardRecords records,
                              reader_.Read(WorkOn(contents, 0, contents.size(), 2), kNoWaiting));
  EXPECT_THAT(records.records, ElementsAre("1 0.5", mark + "2")) << "it means nothing later";
}

TEST_F(LinesReaderTest, TheMarkOfUtf8IsNoPartOfTheHeader) {
  const std::string contents = "\xef\xbb\xbfkey,value\r\n1,2\n";
  Write(contents);
  ShardWork work = WorkOn(contents, 14, contents.size(), 1);
  work.has_header = true;
  MUSTER_ASSERT_OK_AND_ASSIGN(ShardRecords records, reader_.Read(work, kNoWaiting));
  EXPECT_EQ(records.header, "key,value");
  EXPECT_THAT(records.records, ElementsAre("1,2"));
}

TEST_F(LinesReaderTest, RecordsRunInTheOrderOfTheSeed) {
  std::string contents = "0\n1\n2\n3\n4\n5\n6\n7\n";
  Write(contents);
  ShardWork work = WorkOn(contents, 0, contents.size(), 8);
  work.shuffle_seed = 99;
  work.runs[0].first_record = 10;
  MUSTER_ASSERT_OK_AND_ASSIGN(ShardRecords records, reader_.Read(work, kNoWaiting));
  std::vector<uint32_t> order = RecordOrder(99, 8);
  ASSERT_EQ(records.records.size(), 8u);
  for (size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(records.records[i], std::to_string(order[i]));
    EXPECT_EQ(reader_.LocationOf(work, records, i),
              path_ + ":" + std::to_string(10 + order[i] + 1));
  }
}

TEST_F(LinesReaderTest, PiecesOfManyFilesAreOneShard) {
  const std::string first = "h\na0\na1\na2\na3\na4\n", second = "h\nb0\nb1";
  Write(first);
  ShardWork work = WorkOn(first, 2, first.size(), 4);
  path_ = dir_.File("second.csv");
  Write(second);
  work.files.push_back(WorkOn(second, 2, second.size(), 2).files[0]);
  work.has_header = true;
  work.minibatch_count = 3;
  // Of each block of bytes, some records: one in the middle, the last of the other file, and two.
  work.runs = {{.file = 0,
                .first_record = 1,
                .record_count = 1,
                .byte_begin = 2,
                .byte_end = 11,
                .records_before = 1,
                .records_behind = 1},
               {.file = 1,
                .first_record = 1,
                .record_count = 1,
                .byte_begin = 2,
                .byte_end = 7,
                .records_before = 1},
               {.file = 0, .first_record = 3, .record_count = 2, .byte_begin = 11, .byte_end = 17}};
  MUSTER_ASSERT_OK_AND_ASSIGN(ShardRecords records, reader_.Read(work, kNoWaiting));
  EXPECT_THAT(records.records, ElementsAre("a1", "b1", "a3", "a4"));
  EXPECT_THAT(records.minibatches, ElementsAre(0, 1, 2, 4));
  EXPECT_EQ(records.header, "h");
  EXPECT_EQ(reader_.LocationOf(work, records, 0), dir_.File("data.csv") + ":3");
  EXPECT_EQ(reader_.LocationOf(work, records, 1), dir_.File("second.csv") + ":3");
  EXPECT_EQ(reader_.LocationOf(work, records, 3), dir_.File("data.csv") + ":6");
  EXPECT_THAT(reader_.NameOf(work), HasSubstr("data.csv and 2 more pieces"));
  work.runs[0].records_behind = 0;
  EXPECT_THAT(reader_.Read(work, kNoWaiting),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("more than 2")));
}

TEST_F(LinesReaderTest, AChangedFileIsRefusedWithItsName) {
  std::string contents = "aa\nbb\n";
  Write(contents);
  ShardWork work = WorkOn(contents, 0, 6, 2);
  EXPECT_THAT(reader_.Read(work, kNoWaiting), IsOk());
  Write("aa\nbb\ncc\n");
  EXPECT_THAT(reader_.Read(work, kNoWaiting),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("9 bytes")));
  Write("aa\nbc\n");
  EXPECT_THAT(LinesReader().Read(work, kNoWaiting),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr(path_)));
}

TEST_F(LinesReaderTest, AnotherNumberOfRecordsIsRefused) {
  std::string contents = "aa\nbb\n";
  Write(contents);
  EXPECT_THAT(reader_.Read(WorkOn(contents, 0, 6, 3), kNoWaiting),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("hold 3 records")));
  EXPECT_THAT(reader_.Read(WorkOn(contents, 0, 6, 1), kNoWaiting),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("more than 1")));
}

TEST_F(LinesReaderTest, AMissingFileAndABadRangeAreNamed) {
  ShardWork work = WorkOn("aa\n", 0, 3, 1);
  std::filesystem::remove(path_);
  EXPECT_THAT(reader_.Read(work, kNoWaiting),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr(path_)));
  work.runs[0].byte_end = uint64_t{5} << 30;
  EXPECT_THAT(reader_.Read(work, kNoWaiting),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("[0, 5368709120)")));
}

TEST_F(LinesReaderTest, MoreFilesThanTheProcessMayOpenAreRead) {
  std::vector<ShardWork> works;
  for (int i = 0; i < 300; ++i) works.push_back(SmallFile(i));
  const DescriptorLimit limit(100);
  for (const ShardWork& work : works) ASSERT_THAT(reader_.Read(work, kNoWaiting), IsOk());
  for (const ShardWork& work : works) ASSERT_THAT(reader_.Read(work, kNoWaiting), IsOk());
}

TEST_F(LinesReaderTest, AFileThatWasClosedMeanwhileIsStillKnownToBeTheIndexedOne) {
  const ShardWork first = SmallFile(0);
  EXPECT_THAT(reader_.Read(first, kNoWaiting), IsOk());
  for (int i = 1; i <= 100; ++i) EXPECT_THAT(reader_.Read(SmallFile(i), kNoWaiting), IsOk());
  EXPECT_THAT(reader_.Read(first, kNoWaiting), IsOk());
  path_ = first.files[0].path;
  Write("y\n");
  std::filesystem::last_write_time(
      path_, std::filesystem::last_write_time(path_) + std::chrono::seconds(5));
  EXPECT_THAT(reader_.Read(first, kNoWaiting),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("its content is another")));
}

TEST_F(LinesReaderTest, WithoutADescriptorLeftItClosesItsOwnFilesAndThenSaysWhatIsMissing) {
  if (kSanitized) GTEST_SKIP() << "the sanitizer needs descriptors itself";
  const ShardWork first = SmallFile(1), second = SmallFile(2);
  EXPECT_THAT(reader_.Read(first, kNoWaiting), IsOk());
  const DescriptorLimit limit(0);
  EXPECT_THAT(reader_.Read(second, kNoWaiting), IsOk()) << "the first file is closed for it";
  LinesReader other;
  EXPECT_THAT(other.Read(first, kNoWaiting),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       AllOf(HasSubstr(first.files[0].path), HasSubstr("raise `ulimit -n`"))));
}

TEST_F(LinesReaderTest, WithoutMemoryTheShardIsNotToBlame) {
  if (kSanitized) GTEST_SKIP() << "the sanitizer needs the memory itself";
  constexpr uint64_t kBytes = uint64_t{3} << 30;
  Write("");
  std::filesystem::resize_file(path_, kBytes);  // all of it a hole
  const uint64_t hash = PinSource(kBytes, [](uint64_t, std::span<char> buffer) {
                          std::ranges::fill(buffer, '\0');
                          return absl::StatusOr<size_t>(buffer.size());
                        })->hash;
  const ShardWork work{.record_count = 1,
                       .minibatch_size = 1,
                       .minibatch_count = 1,
                       .files = {{path_, kBytes, hash}},
                       .runs = {{.record_count = 1, .byte_end = kBytes}}};
  const auto read = [&] {
    rlimit limit{};
    limit.rlim_cur = limit.rlim_max = rlim_t{2} << 30;
    ::setrlimit(RLIMIT_AS, &limit);
    const absl::Status status = reader_.Read(work, kNoWaiting).status();
    std::fprintf(stderr, "%s\n", status.ToString().c_str());
    std::exit(absl::IsResourceExhausted(status) ? 0 : 1);
  };
  EXPECT_EXIT(read(), ::testing::ExitedWithCode(0), "no memory for the 3221225472 bytes");
}

}  // namespace
}  // namespace muster::sdk
