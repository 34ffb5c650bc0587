#include "worker_sdk/readers/readers.h"

#include "tests/support/status_matchers.h"

namespace muster::sdk {
namespace {

using muster::testing::StatusIs;
using ::testing::HasSubstr;

TEST(ReadersTest, EveryKindHasItsReader) {
  const Readers readers(HelloResponse{});
  ShardWork lines;
  lines.path = "/data/a.csv";
  lines.byte_begin = 3;
  lines.byte_end = 7;
  MUSTER_ASSERT_OK_AND_ASSIGN(ShardReader * of_lines, readers.Of(lines));
  EXPECT_EQ(of_lines->NameOf(lines), "bytes [3, 7) of /data/a.csv");
  EXPECT_FALSE(of_lines->KeepsRejected(lines));
  ShardWork range;
  range.stream = {"clicks", TopicPartition(2), 5, 9};
  MUSTER_ASSERT_OK_AND_ASSIGN(ShardReader * of_topic, readers.Of(range));
  EXPECT_EQ(of_topic->NameOf(range), "offsets [5, 9) of topic clicks[2]");
  EXPECT_EQ(readers.Of(range).value(), of_topic) << "files and consumers are kept between shards";
}

TEST(ReadersTest, AShardOfNoKindIsAnErrorThatNamesTheDataset) {
  ShardWork work;
  work.dataset_name = "train";
  EXPECT_THAT(Readers(HelloResponse{}).Of(work),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("dataset 'train'")));
}

}  // namespace
}  // namespace muster::sdk
