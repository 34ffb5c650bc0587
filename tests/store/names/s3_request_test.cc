#include "store/names/s3_request.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(S3RequestTest, UrlsOfBothStyles) {
  S3Place place{"bucket", "jobs/a", {.endpoint = "https://s3.example.org:9000"}};
  EXPECT_EQ(S3Url(place, "p1/x.sst", {}), "https://bucket.s3.example.org:9000/jobs/a/p1/x.sst");
  EXPECT_EQ(S3Url(place, "", {{"prefix", "jobs/a/"}, {"list-type", "2"}}),
            "https://bucket.s3.example.org:9000/?list-type=2&prefix=jobs%2Fa%2F");
  place.options.path_style = true;
  EXPECT_EQ(S3Url(place, "x y", {{"uploads", ""}}),
            "https://s3.example.org:9000/bucket/jobs/a/x%20y?uploads=");
  EXPECT_EQ(S3Url(place, "", {}), "https://s3.example.org:9000/bucket");
  EXPECT_EQ(AwsEndpoint("eu-1"), "https://s3.eu-1.amazonaws.com");
}

TEST(S3RequestTest, KeysAndNames) {
  const S3Place place{"bucket", "jobs/a", {}};
  EXPECT_EQ(KeyOf(place, "x"), "jobs/a/x");
  EXPECT_EQ(NameOf(place, "jobs/a/p1/x"), "p1/x");
  EXPECT_EQ(NameOf(place, "jobs/ab/x"), "");
  EXPECT_EQ(NameOf(place, "jobs/a"), "");
  const S3Place whole{"bucket", "", {}};
  EXPECT_EQ(KeyOf(whole, "x"), "x");
  EXPECT_EQ(NameOf(whole, "p1/x"), "p1/x");
}

TEST(S3RequestTest, Parts) {
  EXPECT_EQ(PartBytes(100, 16), 16u);
  EXPECT_EQ(PartBytes(160'001, 16), 17u) << "at most 10,000 parts";
  EXPECT_EQ(CompleteDocument({"\"a\"", "<&>"}),
            "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>\"a\"</ETag></Part>"
            "<Part><PartNumber>2</PartNumber><ETag>&lt;&amp;&gt;</ETag></Part>"
            "</CompleteMultipartUpload>");
}

TEST(S3RequestTest, ADocumentOfObjectsToDelete) {
  EXPECT_EQ(DeleteDocument({"a", "b&<c>"}),
            "<Delete><Quiet>true</Quiet><Object><Key>a</Key></Object>"
            "<Object><Key>b&amp;&lt;c&gt;</Key></Object></Delete>");
}

}  // namespace
}  // namespace muster
