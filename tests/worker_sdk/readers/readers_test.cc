#include "worker_sdk/readers/readers.h"

#include "tests/support/status_matchers.h"

namespace muster::sdk {
namespace {

using muster::testing::StatusIs;
using ::testing::HasSubstr;

TEST(ReadersTest, EveryKindHasItsReader) {
  const Readers readers(HelloResponse{});
  ShardWork lines;
  lines.record_count = lines.minibatch_size = lines.minibatch_count = 1;
  lines.files = {{.path = "/data/a.csv", .bytes = 9}};
  lines.runs = {{.record_count = 1, .byte_begin = 3, .byte_end = 7}};
  MUSTER_ASSERT_OK_AND_ASSIGN(ShardReader * of_lines, readers.Of(lines));
  EXPECT_EQ(of_lines->NameOf(lines), "bytes [3, 7) of /data/a.csv");
  EXPECT_FALSE(of_lines->KeepsRejected(lines));
  ShardWork range;
  range.record_count = range.minibatch_size = 4;
  range.minibatch_count = 1;
  range.stream = {"clicks", {{TopicPartition(2), 5, 9}}};
  MUSTER_ASSERT_OK_AND_ASSIGN(ShardReader * of_topic, readers.Of(range));
  EXPECT_EQ(of_topic->NameOf(range), "offsets [5, 9) of topic clicks[2]");
  ShardWork numbers;
  numbers.dataset_name = "train";
  numbers.record_count = numbers.minibatch_size = numbers.minibatch_count = 1;
  numbers.runs = {{.first_record = 7, .record_count = 1}};
  MUSTER_ASSERT_OK_AND_ASSIGN(ShardReader * of_numbers, readers.Of(numbers));
  EXPECT_EQ(of_numbers->NameOf(numbers), "records [7, 8) of dataset 'train'");
  EXPECT_EQ(readers.Of(range).value(), of_topic) << "files and consumers are kept between shards";
}

TEST(ReadersTest, AShardThatContradictsItselfIsAnErrorThatSaysHow) {
  ShardWork work;
  work.dataset_name = "train";
  work.record_count = work.minibatch_size = 4;
  work.minibatch_count = 1;
  work.stream = {"clicks", {{TopicPartition(2), 5, 8}}};
  const auto error = [&work] { return Readers(HelloResponse{}).Of(work).status(); };
  const auto says = [](const char* words) {
    return StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr(words));
  };
  EXPECT_THAT(error(), says("a shard of topic 'clicks' has 4 offsets, but its ranges have 3"));
  work.stream->ranges = {{TopicPartition(2), 5, 9}, {TopicPartition(1), 7, 7}};
  EXPECT_THAT(error(), says("one is empty"));
  work.stream.reset();
  work.files = {{.path = "/a", .bytes = 3}};
  EXPECT_THAT(error(), says("4 records, but its runs have 0"));
  work.runs = {{.file = 1, .record_count = 4}};
  EXPECT_THAT(error(), says("records of file 1, but names 1 files"));
  work.runs[0] = {.file = 0, .record_count = 4, .byte_end = 4};
  EXPECT_THAT(error(), says("bytes [0, 4) of a file of 3"));
  work.files.clear();
  work.runs = {{.first_record = 7, .record_count = 3}};
  EXPECT_THAT(error(), says("4 records, but its runs have 3"));
  work.runs = {{.first_record = (uint64_t{1} << 63) - 3, .record_count = 4}};
  EXPECT_THAT(error(), says("has record 9223372036854775805, which is no record's number"));
  work.minibatch_count = 0;
  EXPECT_THAT(error(), says("in 0 minibatches of 4"));
}

TEST(ReadersTest, AShardOfNoKindIsAnErrorThatNamesTheDataset) {
  ShardWork work;
  work.dataset_name = "train";
  EXPECT_THAT(Readers(HelloResponse{}).Of(work),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("dataset 'train'")));
}

}  // namespace
}  // namespace muster::sdk
