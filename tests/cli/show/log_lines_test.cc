#include "cli/show/log_lines.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

/// What a log is shown as that comes in these pieces.
std::string Shown(LogForm form) {
  LogLines log("worker-0", form);
  std::string text;
  for (const std::string_view piece : {"a\nb", "", "c\n", "\nd \"e\"", "\xff"}) {
    text += log.Take(piece);
  }
  text += log.Finish();
  return text + log.Finish();
}

TEST(LogLinesTest, AsItIs) {
  EXPECT_EQ(Shown(LogForm::kAsItIs), "a\nbc\n\nd \"e\"\xff");
}

TEST(LogLinesTest, TheLastLineGetsAnEnd) {
  EXPECT_EQ(Shown(LogForm::kLines), "a\nbc\n\nd \"e\"\xff\n");
}

TEST(LogLinesTest, WithTheNode) {
  EXPECT_EQ(Shown(LogForm::kWithNode),
            "[worker-0] a\n[worker-0] bc\n[worker-0] \n[worker-0] d \"e\"\xff\n");
}

TEST(LogLinesTest, AnObjectALine) {
  EXPECT_EQ(Shown(LogForm::kJson),
            "{\"line\":\"a\",\"node\":\"worker-0\"}\n{\"line\":\"bc\",\"node\":\"worker-0\"}\n"
            "{\"line\":\"\",\"node\":\"worker-0\"}\n"
            "{\"line\":\"d \\\"e\\\"\xEF\xBF\xBD\",\"node\":\"worker-0\"}\n");
}

TEST(LogLinesTest, ALineWaitsForItsRest) {
  LogLines log("worker-0", LogForm::kWithNode);
  EXPECT_EQ(log.Take("half"), "");
  EXPECT_EQ(log.Take(" and half\nnext"), "[worker-0] half and half\n");
}

}  // namespace
}  // namespace muster
