#include "base/nearest.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(NearestTest, EditDistanceCountsSwapsAsOne) {
  EXPECT_EQ(EditDistance("", ""), 0u);
  EXPECT_EQ(EditDistance("", "abc"), 3u);
  EXPECT_EQ(EditDistance("abc", ""), 3u);
  EXPECT_EQ(EditDistance("shard", "shard"), 0u);
  EXPECT_EQ(EditDistance("shrad", "shard"), 1u);
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3u);
}

TEST(NearestTest, FindsWhatWasMeantAndNothingFarAway) {
  const std::vector<std::string> names = {"epochs", "files", "minibatchSize", "mode", "name"};
  EXPECT_EQ(Nearest("minibatch_size", names), "minibatchSize");
  EXPECT_EQ(Nearest("minibatchSzie", names), "minibatchSize");
  EXPECT_EQ(Nearest("Epoch", names), "epochs");
  EXPECT_EQ(Nearest("file", names), "files");
  EXPECT_EQ(Nearest("learningRate", names), "");
  EXPECT_EQ(Nearest("xy", names), "");
  EXPECT_EQ(Nearest("", names), "");
  EXPECT_EQ(Nearest(std::string(100'000, 'e'), names), "");
}

}  // namespace
}  // namespace muster
