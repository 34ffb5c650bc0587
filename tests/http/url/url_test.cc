#include "http/url/url.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(UrlTest, WhatHasAMeaningIsEncoded) {
  EXPECT_EQ(UrlEncode("worker-1_a.b~Z9"), "worker-1_a.b~Z9");
  EXPECT_EQ(UrlEncode("a/b?c%\xc3\xa4 +"), "a%2Fb%3Fc%25%C3%A4%20%2B");
  EXPECT_EQ(UrlEncode("a/b c+\xc3\xa9~", "/"), "a/b%20c%2B%C3%A9~");
}

TEST(UrlTest, DecodingIsTheInverse) {
  EXPECT_EQ(UrlDecode("a%2fb%20c%C3%A9"), "a/b c\xc3\xa9");
  EXPECT_EQ(UrlDecode("100%"), "100%");
  EXPECT_EQ(UrlDecode("%4"), "%4");
  EXPECT_EQ(UrlDecode("%zz%41"), "%zzA");
  std::string all;
  for (int c = 0; c < 256; ++c) all += static_cast<char>(c);
  EXPECT_EQ(UrlDecode(UrlEncode(all)), all);
}

}  // namespace
}  // namespace muster
