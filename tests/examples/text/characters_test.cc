#include "examples/text/characters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace text {
namespace {

TEST(CharactersTest, NumbersOfTheWholeAlphabetAndBack) {
  std::string all = "\t";
  for (char c = ' '; c < 127; ++c) all += c;
  ASSERT_EQ(all.size(), kCharacters);
  std::vector<uint8_t> numbers;
  EXPECT_EQ(AppendNumbers(all, kCharacters, numbers), std::nullopt);
  for (size_t i = 0; i < kCharacters; ++i) EXPECT_EQ(numbers[i], i);
  all[0] = '\n';
  EXPECT_EQ(TextOf(numbers), all);
}

TEST(CharactersTest, RecordsThatAreNoneAreRefusedAndAddNothing) {
  std::vector<uint8_t> numbers = {7};
  EXPECT_EQ(AppendNumbers("abc", 4, numbers), "3 characters, not 4");
  EXPECT_EQ(AppendNumbers("ab\xc3\xa4", 4, numbers),
            "character 3 has the code 195, which is not in the alphabet");
  EXPECT_EQ(AppendNumbers("\x7f", 1, numbers),
            "character 1 has the code 127, which is not in the alphabet");
  EXPECT_THAT(numbers, testing::ElementsAre(7));
}

}  // namespace
}  // namespace text
