#include "kubernetes/pods/pod_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kubernetes/model/api_error.h"
#include "tests/support/status_matchers.h"

namespace muster::kubernetes {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr uint64_t kSecond = 1'000'000'000;
/// 2026-11-26T13:30:00Z.
constexpr uint64_t kBegin = 1'795'699'800 * kSecond;

TEST(PodLogTest, LinesHaveTheirTimeToTheNanosecond) {
  const std::vector<StampedLine> lines = ParseStampedLines(
      "2026-11-26T13:30:00.123456789Z one two\n"
      "2026-11-26T15:30:01.5+02:00 \n"
      "2026-11-26T13:30:02Z\n"
      "no time\n"
      "2026-11-26T13:30:03Z not whole");
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[0].at_ns, kBegin + 123456789);
  EXPECT_EQ(lines[0].text, "one two");
  EXPECT_EQ(lines[1].at_ns, kBegin + 3 * kSecond / 2);
  EXPECT_EQ(lines[1].text, "");
  EXPECT_EQ(lines[2].at_ns, kBegin + 2 * kSecond);
  EXPECT_EQ(lines[3].at_ns, kBegin + 2 * kSecond);
  EXPECT_EQ(lines[3].text, "no time");
  EXPECT_THAT(ParseStampedLines(""), IsEmpty());
}

TEST(PodLogTest, WhatIsAskedFor) {
  const LogQuery tail = QueryOf({.lines = 7, .bytes_max = 100}, 3);
  EXPECT_TRUE(tail.timestamps);
  EXPECT_EQ(tail.tail_lines, 3u);
  EXPECT_EQ(tail.bytes_max, 200u);
  EXPECT_EQ(tail.since_time, "");
  const LogQuery since = QueryOf({.offset = kBegin + 999}, 3);
  EXPECT_EQ(since.since_time, "2026-11-26T13:30:00Z");
  EXPECT_EQ(since.tail_lines, std::nullopt);
}

TEST(PodLogTest, PiecesFollowEachOther) {
  const std::vector<StampedLine> lines{{10, "a"}, {20, "b"}, {20, "c"}, {30, "d"}};
  const LogPiece first = PieceOf(lines, {.offset = 0, .lines = 2}, false);
  EXPECT_THAT(first.lines, ElementsAre("a", "b", "c")) << "what has one time stays together";
  EXPECT_EQ(first.offset, 0u);
  EXPECT_EQ(first.next_offset, 20u);
  const LogPiece next = PieceOf(lines, {.offset = 20, .lines = 2}, false);
  EXPECT_THAT(next.lines, ElementsAre("d"));
  const LogPiece none = PieceOf(lines, {.offset = 30, .lines = 2}, false);
  EXPECT_THAT(none.lines, IsEmpty());
  EXPECT_EQ(none.next_offset, 30u);
  EXPECT_FALSE(none.skipped);
}

TEST(PodLogTest, TheLastLines) {
  const std::vector<StampedLine> lines{{10, "a"}, {20, "b"}, {30, "d"}};
  const LogPiece piece = PieceOf(lines, {.lines = 2}, false);
  EXPECT_THAT(piece.lines, ElementsAre("b", "d"));
  EXPECT_EQ(piece.offset, 19u);
  EXPECT_EQ(piece.next_offset, 30u);
}

TEST(PodLogTest, TheLastLinesOfALogWithoutTimes) {
  const LogPiece piece = PieceOf(ParseStampedLines("a\nb\n"), {.lines = 2}, false);
  EXPECT_THAT(piece.lines, ElementsAre("a", "b"));
  EXPECT_EQ(piece.offset, 0u);
}

TEST(PodLogTest, APieceHasItsLimitOfBytesButOneLine) {
  const std::vector<StampedLine> lines{{10, "aaaaaaaaaa"}, {20, "b"}};
  EXPECT_THAT(PieceOf(lines, {.offset = 0, .bytes_max = 3}, false).lines,
              ElementsAre("aaaaaaaaaa"));
}

TEST(PodLogTest, ASecondThatIsTooLongIsSkipped) {
  const LogPiece piece = PieceOf({{kBegin + 5, "seen"}}, {.offset = kBegin + 5}, true);
  EXPECT_TRUE(piece.skipped);
  EXPECT_EQ(piece.next_offset, kBegin + kSecond - 1);
}

TEST(PodLogTest, DeadPodsAreNotAskedForever) {
  PodFacts pod;
  EXPECT_TRUE(MayHaveLinesAfter(pod, kBegin));
  pod.ended_at = std::chrono::microseconds(kBegin / 1000);
  EXPECT_TRUE(MayHaveLinesAfter(pod, kBegin + kSecond));
  EXPECT_FALSE(MayHaveLinesAfter(pod, kBegin + 2 * kSecond));
}

TEST(PodLogTest, TheLogsOfANodesPodsAreOneLog) {
  std::vector<PodFacts> pods(3);
  pods[0].name = "new";
  pods[1].name = "none";
  pods[2].name = "old";
  std::vector<std::string> asked;
  absl::Status trouble = ToStatus({.kind = ApiErrorKind::kNotFound});
  const auto read = [&](const std::string& pod, const LogQuery& query) {
    asked.push_back(fmt::format("{} {}", pod, query.tail_lines.value_or(0)));
    if (pod == "none") return absl::StatusOr<std::string>(trouble);
    return absl::StatusOr<std::string>(pod == "new" ? "2026-11-26T13:30:02Z c\n"
                                                    : "2026-11-26T13:30:00Z a\n"
                                                      "2026-11-26T13:30:01Z b\n");
  };
  const absl::StatusOr<LogPiece> all = ReadPodLogs(pods, {.lines = 3}, read);
  ASSERT_THAT(all, muster::testing::IsOk());
  EXPECT_THAT(all->lines, ElementsAre("a", "b", "c"));
  EXPECT_THAT(asked, ElementsAre("new 3", "none 2", "old 2"));
  trouble = absl::UnavailableError("away");
  EXPECT_THAT(ReadPodLogs(pods, {.lines = 3}, read),
              testing::StatusIs(absl::StatusCode::kUnavailable, ::testing::_));
  asked.clear();
  EXPECT_THAT(ReadPodLogs(pods, {.lines = 1}, read), testing::IsOk());
  EXPECT_THAT(asked, ElementsAre("new 1"));
}

}  // namespace
}  // namespace muster::kubernetes
