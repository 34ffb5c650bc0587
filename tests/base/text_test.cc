#include "base/text.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(TextTest, KeepsWhatIsValidAndReplacesTheRest) {
  EXPECT_EQ(ValidUtf8("plain"), "plain");
  EXPECT_EQ(ValidUtf8("Z\xc3\xbcrich \xe2\x82\xac \xf0\x9f\x99\x82"),
            "Z\xc3\xbcrich \xe2\x82\xac \xf0\x9f\x99\x82");
  EXPECT_EQ(ValidUtf8("Z\xfcrich"), "Z?rich");       // Latin-1
  EXPECT_EQ(ValidUtf8("\xc0\xaf"), "??");            // overlong
  EXPECT_EQ(ValidUtf8("\xe0\x80\xaf"), "???");       // overlong
  EXPECT_EQ(ValidUtf8("\xed\xa0\x80"), "???");       // surrogate
  EXPECT_EQ(ValidUtf8("\xf4\x90\x80\x80"), "????");  // above U+10FFFF
  EXPECT_EQ(ValidUtf8("end\xe2\x82"), "end??");      // cut inside a character
}

TEST(TextTest, WhatIsKeptAsItIsIsValid) {
  const std::string all = "a\xc3\xbc\xe2\x82\xac\xf0\x9f\x99\x82\xed\x80\xff\xf4\xc0";
  for (size_t begin = 0; begin <= all.size(); ++begin) {
    for (size_t size = 0; begin + size <= all.size(); ++size) {
      const std::string text = all.substr(begin, size);
      EXPECT_EQ(IsValidUtf8(text), ValidUtf8(text) == text) << text;
    }
  }
  EXPECT_TRUE(IsValidUtf8(""));
  EXPECT_FALSE(IsValidUtf8("Z\xfcrich"));
}

TEST(TextTest, CutsAtTheBorderOfACharacter) {
  EXPECT_EQ(ValidUtf8("ab\xe2\x82\xac", 4), "ab");
  EXPECT_EQ(ValidUtf8("ab\xe2\x82\xac", 5), "ab\xe2\x82\xac");
  EXPECT_EQ(ValidUtf8("abc", 0), "");
}

TEST(TextTest, ExcerptIsOneShortLine) {
  EXPECT_EQ(Excerpt("plain", 5), "plain");
  EXPECT_EQ(Excerpt("two\nlines\x1b[2J\x7f", 60), "two lines [2J ");
  EXPECT_EQ(Excerpt("ab\xe2\x82\xac", 4), "ab...");
}

}  // namespace
}  // namespace muster
