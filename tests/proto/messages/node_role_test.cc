#include "proto/messages/node_role.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster {
namespace {

using ::testing::ElementsAre;

TEST(NodeRoleTest, WordsAreReadAsTheyAreWritten) {
  EXPECT_THAT(WordsOf(NodeRole()), ElementsAre("master", "ps", "worker", "scaler"));
  for (const std::string_view word : WordsOf(NodeRole())) {
    NodeRole role = NodeRole::kMaster;
    EXPECT_TRUE(FromWord(word, &role)) << word;
    EXPECT_EQ(ToString(role), word);
  }
  NodeRole role = NodeRole::kScaler;
  for (const char* word : {"", "server", "Worker", "ps-0"}) EXPECT_FALSE(FromWord(word, &role));
  EXPECT_EQ(role, NodeRole::kScaler) << "left alone";
}

// They are on disk in histories.
TEST(NodeRoleTest, NumbersStay) {
  EXPECT_EQ(static_cast<int>(NodeRole::kMaster), 0);
  EXPECT_EQ(static_cast<int>(NodeRole::kServer), 1);
  EXPECT_EQ(static_cast<int>(NodeRole::kWorker), 2);
  EXPECT_EQ(static_cast<int>(NodeRole::kScaler), 3);
}

}  // namespace
}  // namespace muster
