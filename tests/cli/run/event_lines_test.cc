#include "cli/run/event_lines.h"

#include <gmock/gmock.h>

#include "base/text.h"

namespace muster {
namespace {

using ::testing::ElementsAre;

MasterEvent Told(uint64_t wall_us, std::string kind, std::string node, std::string text) {
  return {.wall_us = wall_us,
          .kind = std::move(kind),
          .node = std::move(node),
          .text = std::move(text)};
}

std::vector<std::string> Texts(const std::vector<MasterEvent>& events, uint64_t since = 0) {
  std::vector<std::string> texts;
  for (const EventLine& line : EventLines(events, since)) texts.push_back(line.text);
  return texts;
}

TEST(EventLinesTest, AnEventIsALine) {
  EXPECT_THAT(Texts({Told(5, "node-exited", "ps-0", "exit 1\nits log"), Told(6, "note", "", "")}),
              ElementsAre("node-exited ps-0: exit 1", "note"));
  EXPECT_THAT(Texts({Told(4, "note", "", "before"), Told(5, "note", "", "after")}, 5),
              ElementsAre("note: after"));
}

TEST(EventLinesTest, RejectedRecordsAreOneLine) {
  const auto rejected = [](uint64_t wall_us, const std::string& text) {
    return Told(wall_us, "record-rejected", "worker-1", text);
  };
  EXPECT_THAT(Texts({rejected(1, "a.csv:1: no number")}),
              ElementsAre("record-rejected worker-1: a.csv:1: no number"));
  EXPECT_THAT(Texts({rejected(1, "a.csv:1: of a former run"), rejected(2, "a.csv:2: no number"),
                     Told(3, "note", "", "other"), rejected(4, "a.csv:9: too long"),
                     rejected(5, "a.csv:7: no label")},
                    2),
              ElementsAre("note: other",
                          "record-rejected worker-1: a.csv:7: no label (the newest of 3 rejected "
                          "records)"));
}

TEST(EventLinesTest, WhatOthersTellIsMarked) {
  const auto lines = EventLines({Told(1, "job-ended", "", "well"), Told(1, "note", "master", ""),
                                 Told(1, "note", "scaler", ""), Told(1, "note", "ps-0", "")},
                                0);
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_TRUE(lines[0].told_elsewhere && lines[1].told_elsewhere && lines[2].told_elsewhere);
  EXPECT_FALSE(lines[3].told_elsewhere);
}

TEST(DecisionLineTest, OrdersAndOutcomesOfThisRunAreTold) {
  scaler::rest::Event event;
  event.id = 7;
  event.kind = "decision";
  event.target = "worker-1";
  event.because = "it\x1bhangs\nand more";
  event.wall_us = 100;
  EXPECT_EQ(DecisionLine(event, 100), "#7 decision worker-1: " + Printable("it\x1bhangs"));
  event.verdict = "kept";
  EXPECT_EQ(DecisionLine(event, 100)->substr(0, 24), "#7 decision kept worker-");
  EXPECT_EQ(DecisionLine(event, 101), std::nullopt) << "of a former run";
  event.kind = "exit";
  EXPECT_EQ(DecisionLine(event, 100), std::nullopt);
}

}  // namespace
}  // namespace muster
