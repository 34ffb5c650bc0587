#include "store/names/place.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/status_matchers.h"

namespace muster {
namespace {

using ::testing::HasSubstr;
using testing::IsOk;
using testing::StatusIs;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

TEST(PlaceTest, AFolderIsNoBucket) {
  EXPECT_FALSE(IsS3Place("/srv/snapshots"));
  EXPECT_FALSE(IsS3Place("s3:/a"));
  EXPECT_TRUE(IsS3Place("s3://a"));
  EXPECT_EQ(ShownPlace("/srv/a?b"), "/srv/a?b");
}

TEST(PlaceTest, TextAndBack) {
  const S3Place place{"my-bucket",
                      "jobs/flights",
                      {.endpoint = "http://127.0.0.1:9000",
                       .region = "eu-1",
                       .path_style = true,
                       .credentials_file = "/etc/a b&c=%d",
                       .ca_file = "/etc/ca.pem"}};
  const std::string text = ToText(place);
  const auto parsed = ParseS3Place(text);
  ASSERT_THAT(parsed, IsOk());
  EXPECT_EQ(*parsed, place);
  EXPECT_EQ(ShownPlace(text), "s3://my-bucket/jobs/flights");
  EXPECT_EQ(ToText(*ParseS3Place("s3://bucket")), "s3://bucket");
  EXPECT_EQ(ToText(*ParseS3Place("s3://bucket/a/")), "s3://bucket/a");
}

TEST(PlaceTest, WhatIsWrongIsSaid) {
  EXPECT_THAT(ParseS3Place("s3://"), StatusIs(kInvalid, HasSubstr("name of a bucket")));
  EXPECT_THAT(ParseS3Place("s3://Bucket/a"), StatusIs(kInvalid, HasSubstr("'Bucket'")));
  for (const char* prefix : {"a//b", "../a", "a/./b", "a b", "/a", "a/.."}) {
    EXPECT_THAT(ParseS3Place(std::string("s3://bucket/") + prefix),
                StatusIs(kInvalid, HasSubstr("not a prefix")))
        << prefix;
  }
  EXPECT_THAT(ParseS3Place("s3://bucket/a?colour=red"), StatusIs(kInvalid, HasSubstr("colour")));
  EXPECT_THAT(ParseS3Place("s3://bucket/a?region"), StatusIs(kInvalid, HasSubstr("no value")));
  EXPECT_THAT(ParseS3Place("s3://bucket/a?region=a:b"), StatusIs(kInvalid, HasSubstr("'a:b'")));
  EXPECT_THAT(ParseS3Place("s3://bucket/a?endpoint=ftp"), StatusIs(kInvalid, HasSubstr("'ftp'")));
}

TEST(PlaceTest, AnEndpointIsSchemeAndHost) {
  EXPECT_THAT(CheckEndpoint("https://s3.example.org"), IsOk());
  EXPECT_THAT(CheckEndpoint("http://127.0.0.1:9000"), IsOk());
  for (const char* wrong :
       {"", "s3.example.org", "https://", "https://a/b", "https://u@h", "ftp://a"}) {
    EXPECT_THAT(CheckEndpoint(wrong), StatusIs(kInvalid, HasSubstr("expected an endpoint")))
        << wrong;
  }
}

TEST(PlaceTest, OptionsAreAddedToAnAddress) {
  EXPECT_EQ(*PlaceWithOptions("s3://bucket/a", {.region = "eu-1"}), "s3://bucket/a?region=eu-1");
  EXPECT_THAT(PlaceWithOptions("s3://bucket/a?region=x", {}), StatusIs(kInvalid, HasSubstr("'?'")));
}

}  // namespace
}  // namespace muster
