#include <gmock/gmock.h>

#include "tests/store/s3_fixture.h"

/// What the store does when the service answers wrong.
namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::IsOk;
using testing::StatusIs;

// The rows of "What a server may answer wrong" in store/README.md.

TEST_F(S3StoreTest, TheEndOfAnUploadMayBeAnErrorInASuccess) {
  const std::string text = Text(11 << 20);
  Faults(R"([{"kind": "200", "code": "InternalError", "method": "POST", "match": "uploadId",
              "times": 2}])");
  ASSERT_THAT(Put("large", text), IsOk());
  EXPECT_TRUE(*Fetched("large") == text);
  limits_.retries.total = std::chrono::milliseconds(5);
  store_ = Open();
  Faults(R"([{"kind": "200", "code": "InternalError", "method": "POST", "match": "uploadId",
              "times": 1000000}])");
  EXPECT_THAT(Put("other", text),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("InternalError")));
  Faults("[]");
  EXPECT_THAT(List(), ElementsAre("large"));
}

TEST_F(S3StoreTest, AnEndOfAnUploadThatSaysNothingIsLookedUp) {
  const std::string text = Text(11 << 20);
  Faults(R"([{"kind": "answer", "body": "", "method": "POST", "match": "uploadId"}])");
  EXPECT_THAT(Put("large", text), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("large")));
  Faults(R"([{"kind": "answer", "body": "<html>welcome</html>", "method": "POST",
              "match": "uploadId"}])");
  EXPECT_THAT(Put("large", text), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("large")));
  Faults("[]");
  EXPECT_THAT(List(), IsEmpty());
  EXPECT_EQ(*store_->DeleteUnfinished(Any), 0u);
}

TEST_F(S3StoreTest, AServiceThatWorksOnTheEndOfAnUploadIsWaitedFor) {
  ASSERT_EQ(limits_.stall_timeout, std::chrono::seconds(1));
  const std::string text = Text(11 << 20);
  const uint64_t requests = Seen("requests");
  Faults(R"([{"kind": "slow", "seconds": 3, "method": "POST", "match": "uploadId"}])");
  ASSERT_THAT(Put("large", text), IsOk());
  EXPECT_EQ(Seen("requests"), requests + 5) << "begin, three parts, one end";
}

TEST_F(S3StoreTest, AnAnswerToAWriteWithoutAnEntityTagIsNotBelieved) {
  Faults(R"([{"kind": "answer", "body": "<html>log in first</html>", "method": "PUT"}])");
  EXPECT_THAT(Put("object", "x"),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("is the endpoint an S3 server?")));
  EXPECT_THAT(List(), IsEmpty());
}

TEST_F(S3StoreTest, AListingWithoutAnEndIsAnError) {
  Faults(R"([{"kind": "answer", "method": "GET", "times": 1000000, "body":
              "<ListBucketResult><IsTruncated>true</IsTruncated>)"
         R"(<NextContinuationToken>a</NextContinuationToken></ListBucketResult>"}])");
  EXPECT_THAT(store_->List(""), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("no end")));
  Faults(R"([{"kind": "answer", "method": "GET", "times": 1000000, "body":
              "<ListMultipartUploadsResult><IsTruncated>true</IsTruncated>)"
         R"(<NextKeyMarker>a</NextKeyMarker></ListMultipartUploadsResult>"}])");
  EXPECT_THAT(store_->DeleteUnfinished(Any),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("no end")));
}

TEST_F(S3StoreTest, UnfinishedUploadsAreFoundBehindManyForeignOnes) {
  const std::string key = place_.prefix;
  Faults(R"([{"kind": "answer", "method": "GET", "match": "key-marker", "body":
              "<ListMultipartUploadsResult><Upload><Key>)" +
         key +
         R"(/ours</Key><UploadId>2</UploadId></Upload></ListMultipartUploadsResult>"},
             {"kind": "answer", "method": "GET", "match": "uploads", "body":
              "<ListMultipartUploadsResult><IsTruncated>true</IsTruncated>)"
         R"(<NextKeyMarker>m</NextKeyMarker><NextUploadIdMarker>1</NextUploadIdMarker>)"
         R"(<Upload><Key>)" +
         key + R"(/foreign</Key><UploadId>1</UploadId></Upload></ListMultipartUploadsResult>"}])");
  const auto ended =
      store_->DeleteUnfinished([](const std::string& name) { return name == "ours"; });
  ASSERT_THAT(ended, IsOk());
  EXPECT_EQ(*ended, 1u);
}

class S3DeletionsTest : public S3StoreTest {
 protected:
  void SetUp() override {
    S3StoreTest::SetUp();
    for (const std::string& name : names_) ASSERT_THAT(Put(name, "x"), IsOk());
    requests_ = Seen("requests");
  }
  /// Of which the proxy knows since the objects were made.
  uint64_t Requests() { return Seen("requests") - requests_; }

  const std::vector<std::string> names_{"a", "b & <c>", "d"};
  uint64_t requests_ = 0;
};

TEST_F(S3DeletionsTest, ManyObjectsAreOneRequest) {
  const auto left = store_->DeleteAll({"a", "b & <c>", "absent"});
  EXPECT_THAT(left.why, IsOk());
  EXPECT_THAT(left.names, IsEmpty());
  EXPECT_EQ(Requests(), 1u);
  EXPECT_THAT(List(), ElementsAre("d"));
  limits_.deletes_at_once = 2;
  EXPECT_THAT(Open()->DeleteAll({"d", "e", "f", "g"}).why, IsOk());
  EXPECT_THAT(List(), IsEmpty());
}

TEST_F(S3DeletionsTest, AServiceWithoutListsDeletesOneByOne) {
  Faults(R"([{"kind": "501", "code": "NotImplemented", "method": "POST"}])");
  EXPECT_THAT(store_->DeleteAll(names_).why, IsOk());
  EXPECT_THAT(List(), IsEmpty());
  const uint64_t before = Requests();
  EXPECT_THAT(store_->DeleteAll({"x", "y"}).why, IsOk());
  EXPECT_EQ(Requests(), before + 2) << "it is not asked again";
}

TEST_F(S3DeletionsTest, AnAnswerThatIsNoneDeletesOneByOne) {
  Faults(R"([{"kind": "answer", "body": "<html/>", "method": "POST"}])");
  EXPECT_THAT(store_->DeleteAll(names_).why, IsOk());
  EXPECT_THAT(List(), IsEmpty());
}

TEST_F(S3DeletionsTest, WhatStaysIsNamed) {
  Faults(R"([{"kind": "answer", "method": "POST", "body":
              "<DeleteResult><Error><Key>)" +
         place_.prefix + R"(/d</Key><Code>AccessDenied</Code></Error></DeleteResult>"}])");
  const auto left = store_->DeleteAll(names_);
  EXPECT_THAT(left.names, ElementsAre("d"));
  EXPECT_THAT(left.why, StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("/d")));
}

TEST_F(S3DeletionsTest, AnAnswerAboutAnotherObjectIsNotBelieved) {
  Faults(R"([{"kind": "answer", "method": "POST", "body":
              "<DeleteResult><Error><Key>elsewhere/x</Key>)"
         R"(<Code>AccessDenied</Code></Error></DeleteResult>"}])");
  EXPECT_THAT(store_->DeleteAll(names_).why, IsOk());
  EXPECT_THAT(List(), IsEmpty()) << "one by one";
}

TEST_F(S3DeletionsTest, AnAbsentServiceIsAskedOnceForAll) {
  limits_.retries.total = std::chrono::milliseconds(5);
  limits_.deletes_at_once = 2;
  store_ = Open();
  Faults(R"([{"kind": "200", "code": "InternalError", "times": 1000000}])");
  const auto left = store_->DeleteAll(names_);
  EXPECT_EQ(left.names, names_);
  EXPECT_THAT(left.why, StatusIs(absl::StatusCode::kUnavailable, HasSubstr("InternalError")));
  Faults("[]");
  EXPECT_THAT(List(), ElementsAre("a", "b & <c>", "d"));
}

}  // namespace
}  // namespace muster
