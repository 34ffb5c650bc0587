#include "examples/text/arguments.h"

#include <gtest/gtest.h>

#include <vector>

namespace text {
namespace {

/// The first error after the arguments `number` and `real` were taken.
std::optional<std::string> ErrorOf(std::vector<const char*> words) {
  Arguments arguments(words);
  arguments.Number("number", 1, 2, 10);
  arguments.Real("real", 1, 0.5F, 2);
  return arguments.Error();
}

TEST(ArgumentsTest, ValuesAndDefaults) {
  const std::vector<const char*> words = {"--a", "5", "--b", "0.25", "--c", "--d"};
  Arguments arguments(words);
  EXPECT_EQ(arguments.Number("a", 1, 0, 5), 5);
  EXPECT_EQ(arguments.Number("x", 9, 0, 5), 9);
  EXPECT_EQ(arguments.Real("b", 1, 0, 1), 0.25F);
  EXPECT_EQ(arguments.Text("c", "?"), "--d");
  EXPECT_EQ(arguments.Text("y", "?"), "?");
  EXPECT_EQ(arguments.Error(), std::nullopt);
  EXPECT_FALSE(arguments.help());
}

TEST(ArgumentsTest, HelpIsNoPair) {
  const std::vector<const char*> words = {"--a", "5", "--help"};
  EXPECT_TRUE(Arguments(words).help());
}

TEST(ArgumentsTest, SayWhatIsWrong) {
  EXPECT_EQ(ErrorOf({"--number", "2", "--real", "2"}), std::nullopt);
  EXPECT_EQ(ErrorOf({"--number", "11"}), "--number is '11', not a number from 2 to 10");
  EXPECT_EQ(ErrorOf({"--number", "1"}), "--number is '1', not a number from 2 to 10");
  EXPECT_EQ(ErrorOf({"--number", "5x"}), "--number is '5x', not a number from 2 to 10");
  EXPECT_EQ(ErrorOf({"--number", "-5"}), "--number is '-5', not a number from 2 to 10");
  EXPECT_EQ(ErrorOf({"--real", "nan"}), "--real is 'nan', not a number from 0.5 to 2");
  EXPECT_EQ(ErrorOf({"--real", "3"}), "--real is '3', not a number from 0.5 to 2");
  EXPECT_EQ(ErrorOf({"--numbr", "5"}), "unknown argument --numbr");
  EXPECT_EQ(ErrorOf({"number", "5"}), "'number' is not the name of an argument");
  EXPECT_EQ(ErrorOf({"--number"}), "--number has no value");
  EXPECT_EQ(ErrorOf({"--number", "2", "--number", "3"}), "--number is given twice");
}

}  // namespace
}  // namespace text
