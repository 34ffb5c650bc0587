#include "cli/steer/event_text.h"

#include <gmock/gmock.h>

#include <limits>

namespace muster::steer {
namespace {

using scaler::rest::Event;
using scaler::rest::Explanation;
using ::testing::HasSubstr;
using ::testing::Not;

Event Decision() {
  return {.id = 17,
          .wall_us = 1'767'225'600'000'000,
          .kind = "decision",
          .policy = "out-of-memory",
          .target = "ps-0",
          .action = "restart",
          .before = {{"memory_bytes", 268435456.0}, {"cpus", 1}},
          .after = {{"memory_bytes", 402653184.0}, {"cpus", 1}},
          .evidence = {{"memory peak", 268435456.0, "bytes", 30}, {"ends", 1, "", 0}},
          .because = "the kernel killed ps-0",
          .cause_id = 16};
}

TEST(EventTextTest, FiguresWithTheirUnits) {
  EXPECT_EQ(FigureText(268435456, "bytes"), "256 MiB");
  EXPECT_EQ(FigureText(1048576, "bytes/s"), "1 MiB/s");
  EXPECT_EQ(FigureText(-1048576, "bytes/s"), "-1 MiB/s");
  EXPECT_EQ(FigureText(0.254, "ratio"), "25.4 %");
  EXPECT_EQ(FigureText(2.5, "ratio"), "2.5 times");
  EXPECT_EQ(FigureText(12345, "records/s"), "12,345 records/s");
  EXPECT_EQ(FigureText(12345.6, "records/s"), "12,346 records/s");
  EXPECT_EQ(FigureText(12345, ""), "12345") << "a pid";
  EXPECT_EQ(FigureText(0.123456, "s"), "0.123 s");
  EXPECT_EQ(FigureText(3, ""), "3");
  EXPECT_EQ(FigureText(std::numeric_limits<double>::quiet_NaN(), "bytes"), "-");
  EXPECT_EQ(FigureText(std::numeric_limits<double>::infinity(), "s"), "-");
}

TEST(EventTextTest, ALineHasNumberTargetChangeAndReason) {
  EXPECT_EQ(EventLine(Decision()),
            "2026-01-01T00:00:00.000Z  #17 decision ps-0  restart, cpus 1, memory 256 MiB -> "
            "384 MiB (out-of-memory): the kernel killed ps-0\n");
  Event dry = Decision();
  dry.dry_run = true;
  EXPECT_THAT(EventLine(dry), HasSubstr("[dry run: not done]"));
  EXPECT_EQ(EventWords({.kind = "outcome", .because = "up", .cause_id = 3, .verdict = "worse"}),
            "worse (of #3): up");
  EXPECT_EQ(EventWords({}), "");
  EXPECT_EQ(ChangeText({.before = {{"memory_bytes", 0}, {"workers", 0}},
                        .after = {{"memory_bytes", 1048576}, {"workers", 2}}}),
            "memory not limited -> 1 MiB, workers 0 -> 2");
  EXPECT_EQ(EventWords({.because = "two\nlines, \x1b[2J"}), "two lines,  [2J");
}

TEST(EventTextTest, AnExplanationHasCauseEvidenceAndOutcome) {
  Explanation explanation{.event = Decision()};
  std::string text = ExplanationText(explanation);
  EXPECT_THAT(text, HasSubstr("#17 at 2026-01-01T00:00:00.000Z: decision of the policy "
                              "out-of-memory\n"));
  EXPECT_THAT(text, HasSubstr("  change   cpus 1, memory 256 MiB -> 384 MiB\n"));
  EXPECT_THAT(text, HasSubstr("  memory peak  256 MiB  over 30 s\n"));
  EXPECT_THAT(text, HasSubstr("  ends         1        at that moment\n"));
  EXPECT_THAT(text, HasSubstr("#16, which is not kept any more"));
  EXPECT_THAT(text, HasSubstr("its outcome is not known yet"));
  explanation.cause = Event{.id = 16, .kind = "exit", .target = "ps-0", .because = "killed"};
  explanation.effects = {{.id = 18,
                          .kind = "outcome",
                          .target = "ps-0",
                          .evidence = {{"rate after", 150, "records/s", 10}},
                          .because = "it serves again",
                          .cause_id = 17,
                          .verdict = "helped"}};
  text = ExplanationText(explanation);
  EXPECT_THAT(text, HasSubstr("WHAT LED TO IT\n  #16 "));
  EXPECT_THAT(text, HasSubstr("rate after  150 records/s  over 10 s"));
  EXPECT_THAT(text, HasSubstr("It helped."));
  EXPECT_THAT(text, Not(HasSubstr("not known yet")));
}

TEST(EventTextTest, WhatWasNotDoneHasNoOutcome) {
  Explanation explanation{.event = Decision()};
  explanation.event.dry_run = true;
  EXPECT_THAT(ExplanationText(explanation), HasSubstr("nothing: it was not done"));
  explanation.event = {.id = 3, .kind = "exit", .target = "ps-0"};
  EXPECT_THAT(ExplanationText(explanation), Not(HasSubstr("WHAT CAME OF IT")));
}

}  // namespace
}  // namespace muster::steer
