#include "verify/workload/history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::verify {
namespace {

using ::testing::ElementsAre;

/// The entries of a history, each as a text.
struct Seen {
  std::vector<std::string> lines;
  size_t bad_line = 0;
};

Seen Read(std::string_view text) {
  Seen seen;
  seen.bad_line = ParseHistory(
      text, {.begin = [&](const ShardMark& m) { seen.lines.push_back(FormatBegin(m)); },
             .attempt = [&](const Attempt& a) { seen.lines.push_back(FormatAttempt(a)); },
             .finish = [&](const ShardMark& m) { seen.lines.push_back(FormatFinish(m)); },
             .applied = [&](const AppliedStep& a) { seen.lines.push_back(FormatApplied(a)); }});
  return seen;
}

TEST(HistoryTest, WhatIsWrittenIsRead) {
  const std::string attempt = FormatAttempt({123456789012345, {"n", 2, 17}, 3, 4, {5, 0, 1000000}});
  const std::string empty = FormatAttempt({1, {"n", 0, 0}, 0, 1, {}});
  const std::string finish = FormatFinish({7, {"n", 2, 17}, 4});
  EXPECT_EQ(attempt, "attempt 123456789012345 n/2/17 3 4 5 0 1000000\n");
  EXPECT_EQ(finish, "finish 7 n/2/17 4\n");
  const std::string begin = FormatBegin({6, {"n", 2, 17}, 4});
  EXPECT_EQ(begin, "begin 6 n/2/17 4\n");
  const std::string applied = FormatApplied({8, 31, 18446744073709551615U});
  EXPECT_EQ(applied, "applied 8 31 18446744073709551615\n");
  const Seen seen = Read(begin + attempt + empty + finish + applied);
  EXPECT_EQ(seen.bad_line, 0u);
  EXPECT_THAT(seen.lines, ElementsAre(begin, attempt, empty, finish, applied));
}

TEST(HistoryTest, LineThatWasCutIsLeftOut) {
  const std::string line = FormatAttempt({1, {"n", 0, 0}, 0, 1, {12, 13}});
  for (size_t cut = 0; cut < line.size(); ++cut) {
    const Seen seen = Read(line + line.substr(0, cut));
    EXPECT_EQ(seen.bad_line, 0u) << cut;
    EXPECT_EQ(seen.lines.size(), 1u) << cut;
  }
}

TEST(HistoryTest, StrangeLineIsNamed) {
  const std::string good = FormatFinish({1, {"n", 0, 0}, 1});
  for (const char* line :
       {"attempt 1 0/0/0 0 1 x\n", "attempt 1 0/0 0 1 2\n", "attempt 1\n", "finish 1 0/0/0 1 2\n",
        "finish -1 0/0/0 1\n", "applied 1 2\n", "applied 1 2 3 4\n", "\n", "pushed 1\n"}) {
    const Seen seen = Read(good + line + good);
    EXPECT_EQ(seen.bad_line, 2u) << line;
    EXPECT_THAT(seen.lines, ElementsAre(good)) << line;
  }
}

TEST(LastAppliedTest, LastWholeLine) {
  const std::string three = FormatApplied({1, 3, 5});
  const std::string four = FormatApplied({2, 4, 6});
  const std::string attempt = FormatAttempt({1, {"n", 0, 0}, 9, 1, {12}});
  EXPECT_EQ(LastApplied(three + four + attempt), 4u);
  EXPECT_EQ(LastApplied(three + four.substr(0, four.size() - 1)), 3u) << "half a line";
  EXPECT_EQ(LastApplied(three.substr(2) + attempt), std::nullopt) << "cut at its beginning";
  EXPECT_EQ(LastApplied("7 8\n" + four + three), 3u) << "the group went back";
  EXPECT_EQ(LastApplied(""), std::nullopt);
}

TEST(ShardNameTest, ThreeNumbers) {
  ShardName name;
  ASSERT_TRUE(ParseShardName("numbers/2/300", &name));
  EXPECT_EQ(name, (ShardName{"numbers", 2, 300}));
  for (const char* text : {"", "1", "1/2", "1/2/", "/2/3", "1//3", "1/2/3/4", "a/b/3"}) {
    EXPECT_FALSE(ParseShardName(text, &name)) << text;
  }
}

}  // namespace
}  // namespace muster::verify
