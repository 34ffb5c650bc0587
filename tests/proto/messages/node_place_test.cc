#include "proto/messages/node_place.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace muster {
namespace {

using ::testing::EndsWith;

template <typename Value>
void CheckWords(Value last) {
  const auto words = WordsOf(last);
  ASSERT_EQ(words.size(), static_cast<size_t>(last) + 1);
  for (size_t i = 0; i < words.size(); ++i) {
    Value value{};
    ASSERT_TRUE(FromWord(words[i], &value)) << words[i];
    EXPECT_EQ(static_cast<size_t>(value), i);
    EXPECT_EQ(ToString(value), words[i]);
  }
  Value value = last;
  EXPECT_FALSE(FromWord("asleep", &value));
  EXPECT_EQ(value, last) << "left alone";
}

TEST(NodePlaceTest, WordsAreReadAsTheyAreWritten) {
  CheckWords(Disruption::kDeleted);
  CheckWords(NodeWait::kUnreachable);
  CheckWords(ResizeAnswer::kRefused);
}

// They are on disk in histories.
TEST(NodePlaceTest, NumbersOfDisruptionsStay) {
  EXPECT_EQ(static_cast<int>(Disruption::kEvicted), 1);
  EXPECT_EQ(static_cast<int>(Disruption::kDeleted), 5);
}

TEST(NodePlaceTest, EveryWaitSaysWhyWithTheWordsOfTheClusterAndWhatToDo) {
  std::set<std::string> texts;
  for (size_t i = 1; i < WordsOf(NodeWait()).size(); ++i) {
    const auto wait = static_cast<NodeWait>(i);
    EXPECT_THAT(WaitText(wait, "0/3 nodes"), EndsWith(": 0/3 nodes"));
    EXPECT_THAT(std::string(WaitAdvice(wait)), EndsWith("."));
    texts.insert(WaitText(wait, ""));
    texts.insert(std::string(WaitAdvice(wait)));
  }
  EXPECT_EQ(texts.size(), 12u) << "each its own";
  EXPECT_EQ(WaitText(NodeWait::kNone, "words"), "");
  EXPECT_EQ(WaitAdvice(NodeWait::kNone), "");
}

TEST(NodePlaceTest, EveryDisruptionSaysWhyWithTheWordsOfTheCluster) {
  std::set<std::string> texts;
  for (size_t i = 1; i < WordsOf(Disruption()).size(); ++i) {
    const auto disruption = static_cast<Disruption>(i);
    EXPECT_THAT(DisruptionText(disruption, "by a"), EndsWith(": by a"));
    texts.insert(DisruptionText(disruption, ""));
  }
  EXPECT_EQ(texts.size(), 5u) << "each its own";
  EXPECT_EQ(DisruptionText(Disruption::kNone, "words"), "");
}

}  // namespace
}  // namespace muster
