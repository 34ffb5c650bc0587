#include "sharding/lines/file_start.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/status_matchers.h"

namespace muster {
namespace {

using std::string_view_literals::operator""sv;
using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::IsOk;
using testing::StatusIs;

TEST(FileStartTest, WhatHasNoLinesOfTextIsNamed) {
  const std::pair<std::string_view, const char*> rows[] = {
      {"\xff\xfe"
       "1\0"sv,
       "UTF-16"},
      {"\xfe\xff\0"
       "1"sv,
       "UTF-16"},
      {"\xff\xfe\0\0"
       "1\0\0\0"sv,
       "UTF-32"},
      {"\0\0\xfe\xff"sv, "UTF-32"},
      {"\x1f\x8b\x08\0\0"sv, "gzip"},
      {"\x28\xb5\x2f\xfd\x04"sv, "zstd"},
      {"\xfd\x37zXZ\0\0"sv, "xz"},
      {"BZh91AY&SY\x01"sv, "bzip2"},
      {"\x04\x22\x4d\x18"sv, "lz4"},
      {"\xff\x06\0\0sNaPpY"sv, "snappy"},
      {"PK\x03\x04"sv, "zip"},
      {"PAR1\x15"sv, "Parquet"},
      {"Obj\x01\x04"sv, "Avro"},
  };
  for (const auto& [beginning, what] : rows) {
    EXPECT_THAT(CheckFileStart("data/1.csv", beginning),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("data/1.csv"), HasSubstr(what))));
  }
}

TEST(FileStartTest, TextIsText) {
  for (const std::string_view text : {""sv,
                                      "\xef\xbb\xbf"
                                      "1 2\n"sv,
                                      "BZhang,1\n"sv, "PK,1\n"sv, "Object\n"sv, "PARIS\n"sv,
                                      "\xef\xbb"sv, "\xff"sv, "caf\xe9\n"sv, "\0\0\0"sv}) {
    EXPECT_THAT(CheckFileStart("x", text), IsOk()) << text;
  }
}

TEST(FileStartTest, OneMarkIsDropped) {
  EXPECT_EQ(WithoutMark("\xef\xbb\xbf"
                        "key,value"),
            "key,value");
  EXPECT_EQ(WithoutMark("\xef\xbb\xbf\xef\xbb\xbfx"), "\xef\xbb\xbfx");
  EXPECT_EQ(WithoutMark("\xef\xbb"), "\xef\xbb");
  EXPECT_EQ(WithoutMark(""), "");
}

}  // namespace
}  // namespace muster
