#include "cli/show/fit.h"

#include <gmock/gmock.h>

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(FitTest, FieldsWithoutRoomAreLeftOutWhole) {
  const std::vector<LineField> fields = {
      {"train", 0}, {" [####]", 3}, {" 25.0 %", 1}, {"  250 / 1,000", 2}};
  EXPECT_EQ(FitLine(fields, 0), "train [####] 25.0 %  250 / 1,000");
  EXPECT_EQ(FitLine(fields, 32), "train [####] 25.0 %  250 / 1,000");
  EXPECT_EQ(FitLine(fields, 31), "train 25.0 %  250 / 1,000");
  EXPECT_EQ(FitLine(fields, 24), "train 25.0 %");
  EXPECT_EQ(FitLine(fields, 11), "train");
  EXPECT_EQ(FitLine(fields, 4), "t...");
  EXPECT_EQ(FitLine({{"a", 0}, {"b", 1}, {"c", 1}}, 2), "ab") << "the last of one rank goes first";
  EXPECT_EQ(FitLine({}, 10), "");
}

TEST(FitTest, TextIsCutBetweenWordsAndSeenToBe) {
  struct Row {
    const char* text;
    size_t columns;
    const char* shown;
  };
  for (const Row& row :
       {Row{"its best was 0.816", 0, "its best was 0.816"},
        Row{"its best was 0.816", 18, "its best was 0.816"},
        Row{"its best was 0.816", 17, "its best was ..."},
        Row{"its best was 0.816", 16, "its best was ..."},
        Row{"its best was 0.816", 15, "its best ..."}, Row{"  unbelievable", 10, "  unbel..."},
        Row{"unbelievable", 3, "..."}, Row{"unbelievable", 1, "."},
        Row{"a\nb\x1b[2J", 0, "a b [2J"}, Row{"\xc3\xa4\xc3\xa4\xc3\xa4", 5, "\xc3\xa4..."}}) {
    EXPECT_EQ(CutText(row.text, row.columns), row.shown) << row.columns;
  }
}

TEST(FitTest, ColumnsWithoutRoomAreLeftOutAndCounted) {
  const std::vector<Column> columns = {{"WORKER", 0}, {"RATE", 1}, {"PULLS", 3}, {"MEMORY", 2}};
  const std::vector<std::vector<std::string>> rows = {{"worker-0", "123", "5 %", "200 MiB"}};
  EXPECT_THAT(FitTable(columns, rows, 0),
              ElementsAre("WORKER    RATE  PULLS  MEMORY", "worker-0  123   5 %    200 MiB"));
  EXPECT_THAT(FitTable(columns, rows, 30),
              ElementsAre("WORKER    RATE  PULLS  MEMORY", "worker-0  123   5 %    200 MiB"));
  EXPECT_THAT(FitTable(columns, rows, 29),
              ElementsAre("WORKER    RATE  +2 columns", "worker-0  123"));
  EXPECT_THAT(FitTable(columns, rows, 20), ElementsAre("WORKER  +3 columns", "worker-0"));
  EXPECT_THAT(FitTable(columns, rows, 7), ElementsAre("WORK...", "work..."));
  EXPECT_THAT(FitTable({}, {}, 10), ElementsAre(IsEmpty()));
}

TEST(FitTest, TableIsAligned) {
  EXPECT_EQ(FormatTable({{"A", "LONG"}, {"wide cell", "x"}}), "A          LONG\nwide cell  x\n");
  EXPECT_EQ(FormatTable({}), "");
}

}  // namespace
}  // namespace muster
