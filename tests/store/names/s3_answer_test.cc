#include "store/names/s3_answer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/status_matchers.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::IsOk;
using testing::StatusIs;

TEST(S3AnswerTest, Listings) {
  const auto page = ParseKeys(
      "<?xml version=\"1.0\"?><ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">"
      "<IsTruncated>true</IsTruncated><NextContinuationToken>n&amp;1</NextContinuationToken>"
      "<Contents><Key>a/b&lt;1</Key><Size>3</Size></Contents><Contents><Key>c</Key></Contents>"
      "</ListBucketResult>");
  ASSERT_THAT(page, IsOk());
  EXPECT_THAT(page->keys, ElementsAre("a/b<1", "c"));
  EXPECT_EQ(page->next, "n&1");
  const auto last =
      ParseKeys("<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>");
  ASSERT_THAT(last, IsOk());
  EXPECT_EQ(last->next, "");
  EXPECT_THAT(ParseKeys("<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>"),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("incomplete")));
  for (const char* wrong : {"", "<html>login</html>", "<ListBucketResult><Contents>"}) {
    EXPECT_THAT(ParseKeys(wrong), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("S3 server")))
        << wrong;
  }
}

TEST(S3AnswerTest, Uploads) {
  const auto page = ParseUploads(
      "<ListMultipartUploadsResult><IsTruncated>true</IsTruncated>"
      "<NextKeyMarker>k&amp;</NextKeyMarker><NextUploadIdMarker>7</NextUploadIdMarker>"
      "<Upload><Key>k</Key>"
      "<UploadId>7</UploadId></Upload></ListMultipartUploadsResult>");
  ASSERT_THAT(page, IsOk());
  ASSERT_EQ(page->uploads.size(), 1u);
  EXPECT_EQ(page->uploads[0].key, "k");
  EXPECT_EQ(page->uploads[0].id, "7");
  EXPECT_TRUE(page->truncated);
  EXPECT_EQ(page->next_key, "k&");
  EXPECT_EQ(page->next_id, "7");
  EXPECT_THAT(ParseUploads("<ListMultipartUploadsResult><IsTruncated>true</IsTruncated>"
                           "</ListMultipartUploadsResult>"),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("incomplete")));
  EXPECT_EQ(*ParseUploadId("<InitiateMultipartUploadResult><UploadId>u</UploadId>"
                           "</InitiateMultipartUploadResult>"),
            "u");
  EXPECT_THAT(ParseUploadId("<InitiateMultipartUploadResult/>"),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("no id")));
  EXPECT_TRUE(IsErrorDocument("<Error><Code>InternalError</Code></Error>"));
  EXPECT_FALSE(IsErrorDocument("<CompleteMultipartUploadResult/>"));
}

TEST(S3AnswerTest, EndsOfUploads) {
  // A service that works for long keeps the connection open with spaces.
  EXPECT_THAT(CheckCompleted("  \n <?xml version=\"1.0\"?>\n<CompleteMultipartUploadResult/>"),
              IsOk());
  for (const char* wrong : {"", "  ", "<html/>", "<Error/>"}) {
    EXPECT_THAT(CheckCompleted(wrong), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("S3")));
  }
}

TEST(S3AnswerTest, WhatALongListOfDeletionsLeaves) {
  const auto left = ParseUndeleted(
      "<DeleteResult><Error><Key>a&amp;b</Key><Code>AccessDenied</Code><Message>no</Message>"
      "</Error></DeleteResult>");
  ASSERT_THAT(left, IsOk());
  ASSERT_EQ(left->size(), 1u);
  EXPECT_EQ(left->front().key, "a&b");
  EXPECT_EQ(left->front().error.code, "AccessDenied");
  EXPECT_TRUE(ParseUndeleted("<DeleteResult/>")->empty());
  EXPECT_THAT(ParseUndeleted("<html/>"), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("S3")));
}

absl::Status StatusOf(int http, std::string_view document) {
  return ToStatus(ParseS3Error(http, document), "cannot write s3://b/x");
}

TEST(S3AnswerTest, ErrorsHaveACodeAndAdvice) {
  EXPECT_THAT(StatusOf(404, "<Error><Code>NoSuchBucket</Code></Error>"),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("cannot write s3://b/x"), HasSubstr("Create it"))));
  EXPECT_THAT(StatusOf(400,
                       "<Error><Code>AuthorizationHeaderMalformed</Code><Message>m</Message>"
                       "<Region>eu-2</Region></Error>"),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("the bucket is in eu-2"), HasSubstr(": m"))));
  EXPECT_TRUE(absl::IsNotFound(StatusOf(404, "")));
  EXPECT_TRUE(absl::IsPermissionDenied(StatusOf(403, "")));
  EXPECT_TRUE(absl::IsAlreadyExists(StatusOf(412, "")));
  EXPECT_TRUE(absl::IsUnimplemented(StatusOf(501, "")));
  EXPECT_TRUE(absl::IsUnavailable(StatusOf(503, "<Error><Code>SlowDown</Code></Error>")));
  EXPECT_TRUE(absl::IsFailedPrecondition(StatusOf(418, "a teapot")));
}

TEST(S3AnswerTest, WhatMayPass) {
  const auto may_pass = [](int http, std::string code) {
    return MayPass(S3Error{.http = http, .code = std::move(code)});
  };
  EXPECT_TRUE(may_pass(500, ""));
  EXPECT_TRUE(may_pass(503, "SlowDown"));
  EXPECT_TRUE(may_pass(429, ""));
  EXPECT_TRUE(may_pass(400, "RequestTimeout"));
  EXPECT_TRUE(may_pass(400, "BadDigest"));
  EXPECT_TRUE(may_pass(409, "ConditionalRequestConflict"));
  EXPECT_FALSE(may_pass(501, "NotImplemented"));
  EXPECT_FALSE(may_pass(403, "AccessDenied"));
  EXPECT_FALSE(may_pass(404, ""));
}

TEST(S3AnswerTest, WordsFromOutsideAreBounded) {
  const std::string document =
      "<Error><Code>X</Code><Message>a\n" + std::string(5000, 'b') + "</Message></Error>";
  const S3Error error = ParseS3Error(400, document);
  EXPECT_LE(error.message.size(), 300u);
  EXPECT_EQ(error.message.find('\n'), std::string::npos);
}

TEST(S3AnswerTest, Ranges) {
  EXPECT_EQ(ParseContentRange("bytes 0-9/25"), (ContentRange{0, 9, 25}));
  EXPECT_EQ(ParseContentRange("bytes 20-24/25"), (ContentRange{20, 24, 25}));
  for (const char* other :
       {"", "bytes", "bytes */25", "bytes 0-9/*", "bytes 5-4/25", "bytes 0-25/25", "bytes 0-9/25 ",
        "bytes -9/25", "lines 0-9/25", "bytes 0-9/99999999999999999999"}) {
    EXPECT_FALSE(ParseContentRange(other).has_value()) << other;
  }
}

}  // namespace
}  // namespace muster
