#include "admin/shard_id.h"

#include <gmock/gmock.h>

#include "tests/support/status_matchers.h"

namespace muster {
namespace {

using ::testing::HasSubstr;
using testing::StatusIs;

TEST(ShardIdTest, TextsAndBack) {
  MUSTER_ASSERT_OK_AND_ASSIGN(const v1::ShardId id, ParseShardId("1/0/18446744073709551615"));
  EXPECT_EQ(ShardIdToText(id), "1/0/18446744073709551615");
  for (const char* bad : {"", "1", "1/2", "1/2/", "1/2/3/", "1/2/3/4", "a/b/c", "1/-2/3", "1//3",
                          "4294967296/0/0", "0/0/18446744073709551616", " 1/2/3"}) {
    EXPECT_THAT(ParseShardId(bad),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("dataset/epoch/index")))
        << bad;
  }
}

}  // namespace
}  // namespace muster
