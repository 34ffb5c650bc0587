#include "base/text.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(CountTextTest, ThousandsAreSeparated) {
  EXPECT_EQ(CountText(0), "0");
  EXPECT_EQ(CountText(999), "999");
  EXPECT_EQ(CountText(1'000), "1,000");
  EXPECT_EQ(CountText(1'234'567), "1,234,567");
}

TEST(CountTextTest, OneIsNotMany) {
  EXPECT_EQ(CountText(1, "shard"), "1 shard");
  EXPECT_EQ(CountText(0, "shard"), "0 shards");
  EXPECT_EQ(CountText(1'234, "minibatch", "minibatches"), "1,234 minibatches");
}

}  // namespace
}  // namespace muster
