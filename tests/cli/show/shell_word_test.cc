#include "cli/show/shell_word.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(ShellWordTest, AQuoteEndsNoWord) {
  EXPECT_EQ(ShellQuoted("it's"), R"('it'\''s')");
  EXPECT_EQ(ShellWord("it's"), R"('it'\''s')");
}

TEST(ShellWordTest, OnlyWhatNeedsQuotesHasThemInALineForPeople) {
  EXPECT_EQ(ShellQuoted("job.yaml"), "'job.yaml'");
  EXPECT_EQ(ShellWord("/a/job-1_B.yaml"), "/a/job-1_B.yaml");
  for (const char* text : {"a b", "$HOME", "`id`", "a;b", "a\nb", "~", "*"}) {
    EXPECT_EQ(ShellWord(text), "'" + std::string(text) + "'");
  }
  EXPECT_EQ(ShellWord(""), "''");
}

}  // namespace
}  // namespace muster
